"""The file formats: one table says how each is called, recognised, read and written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import file_error, option_error
from remuda.grid.files import csv_files, file_writers, json_files, typed_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.catalog import ColumnDefinition
    from remuda.grid.files.file_writers import FileWriter, WriteOptions
    from remuda.sql import CsvOptions

COMPRESSED_ENDINGS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
"""Endings behind that of a text format: `orders.csv.gz`."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of files.

    `read` gets the columns of the map, which a format without types needs and one with types ignores. `schema` tells,
    or guesses, the columns of a file; `count` its rows, where that takes no reading. `compressions` are what
    `COPY ... TO` takes; a text format is compressed as a whole file.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[[Path, CsvOptions | None, Sequence[ColumnDefinition]], Iterator[pa.RecordBatch]]
    schema: Callable[[Path, CsvOptions | None], pa.Schema]
    write: Callable[[Path, pa.Schema, WriteOptions], FileWriter]
    compressions: tuple[str, ...]
    count: Callable[[Path], int] | None = None

    @property
    def is_text(self) -> bool:
        """Whether values have no types of their own, and are read by those of the map."""
        return self.count is None


_WHOLE_FILE = ("none", *COMPRESSED_ENDINGS.values())

FORMATS = (
    FileFormat(
        "parquet",
        (".parquet", ".pq"),
        lambda file, _csv, _columns: typed_files.read_parquet(file),
        lambda file, _csv: typed_files.parquet_schema(file),
        file_writers.ParquetFile,
        ("none", "snappy", "gzip", "brotli", "zstd", "lz4"),
        typed_files.count_parquet,
    ),
    FileFormat(
        "csv",
        (".csv",),
        csv_files.read_csv,
        csv_files.guess_csv,
        file_writers.CsvFile,
        _WHOLE_FILE,
    ),
    FileFormat(
        "json",
        (".json", ".jsonl", ".ndjson"),
        lambda file, _csv, columns: json_files.read_json(file, columns),
        lambda file, _csv: json_files.guess_json(file),
        file_writers.JsonFile,
        _WHOLE_FILE,
    ),
    FileFormat(
        "arrow",
        (".arrow",),
        lambda file, _csv, _columns: typed_files.read_arrow(file),
        lambda file, _csv: typed_files.arrow_schema(file),
        file_writers.ArrowFile,
        ("none", "zstd", "lz4"),
        typed_files.count_arrow,
    ),
    FileFormat(
        "feather",
        (".feather",),
        lambda file, _csv, _columns: typed_files.read_arrow(file),
        lambda file, _csv: typed_files.arrow_schema(file),
        file_writers.ArrowFile,
        ("none", "zstd", "lz4"),
        typed_files.count_arrow,
    ),
)

ENDINGS = {ending: each for each in FORMATS for ending in each.endings}


def format_named(name: str) -> FileFormat | None:
    """Return the format of that name; None where there is none."""
    return next((each for each in FORMATS if each.name == name.casefold()), None)


def format_of(path: Path) -> FileFormat | None:
    """Return the format that the name of a file tells; None where it tells none.

    >>> format_of(Path("a/orders.csv.gz")).name, format_of(Path("orders.PARQUET")).name, format_of(Path("orders.gz"))
    ('csv', 'parquet', None)
    """
    found = ENDINGS.get(path.suffix.casefold())
    if found is None and path.suffix.casefold() in COMPRESSED_ENDINGS:
        found = ENDINGS.get(Path(path.stem).suffix.casefold())
        return found if found is not None and found.is_text else None
    return found


def compression_of(path: Path) -> str | None:
    """Return the compression that the name of a text file tells."""
    return COMPRESSED_ENDINGS.get(path.suffix.casefold())


def one_format(files: Iterable[Path], path: Path) -> FileFormat:
    """Return the format of some files; refuse files whose names tell none, or several."""
    kinds: dict[str, FileFormat] = {}
    for file in files:
        found = format_of(file)
        if found is None:
            raise option_error(f"{file} cannot be loaded: the kinds of files are {known_endings()}")
        kinds[found.name] = found
    if len(kinds) > 1:
        raise file_error(f"{path} has files of several kinds: {', '.join(sorted(kinds))}")
    if not kinds:
        raise option_error(f"{path} cannot be loaded: it has no files; the kinds of files are {known_endings()}")
    return next(iter(kinds.values()))


def known_endings() -> str:
    """List the endings of file names."""
    return f"{', '.join(ENDINGS)}; those of text may end in {', '.join(COMPRESSED_ENDINGS)} as well"
