"""Files to load: one, all of a folder, those that a pattern names, or the current version of a Delta table."""

from __future__ import annotations

import glob
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import StorageError, busy_error, file_error, not_supported, option_error, repeated_column
from remuda.grid.files.formats import FileFormat, format_named, one_format
from remuda.grid.files.load_source import LoadSource, dataset_source, gathered
from remuda.grid.files.partitioned_files import values_in_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import ColumnDefinition
    from remuda.sql import CsvOptions

_PATTERN = frozenset("*?[")
DELTA_LOG = "_delta_log"


def open_files(path: Path, columns: Sequence[ColumnDefinition], kind: str | None, csv: CsvOptions | None) -> LoadSource:
    """Open the files at a path: each is read with its own columns, and none is left out."""
    if (path / DELTA_LOG).is_dir():
        return open_delta(path)
    root, files = _files_at(path)
    found = one_format(files, path) if kind is None else format_named(kind)
    if found is None:
        raise option_error(f"no format of files is called {kind}")
    with readable(path):
        if not found.is_text:
            schema = found.schema(files[0], csv)
        else:
            schema = pa.schema([]) if columns else found.schema(files[0], csv)
        rows = None if found.count is None else sum(map(found.count, files))
        for name, value in values_in_path(root, files[0], columns).items():
            schema = schema.append(pa.field(name, value.type)) if len(schema) else schema
    origins: list[tuple[int, Path]] = []
    batches = _rows_of(root, files, _Reading(found, csv, tuple(columns)), origins)
    return LoadSource(schema, gathered(batches, schema), rows, origins, needs_columns=found.is_text)


def open_delta(path: Path) -> LoadSource:
    """Open the current version of a Delta table."""
    if find_spec("deltalake") is None:
        raise not_supported(f"{path} is a Delta table: the package deltalake reads it. Run: pip install deltalake")
    from deltalake import DeltaTable

    return delta_source(DeltaTable(path))


def delta_source(table: object) -> LoadSource:
    """Read a `deltalake.DeltaTable` through its Arrow interface, which knows what was removed and what is current."""
    try:
        return dataset_source(table.to_pyarrow_dataset())  # type: ignore[attr-defined]
    except Exception as error:
        if not type(error).__module__.startswith(("deltalake", "_internal")):
            raise
        raise file_error(f"the Delta table cannot be read: {error}") from error


def _files_at(path: Path) -> tuple[Path, list[Path]]:
    """Return the files at a path, and the folder from which on the names of folders can be values."""
    if path.exists():
        return path, [path] if path.is_file() else _files_in(path)
    if not _PATTERN & set(str(path)):
        raise StorageError("there is no such file", path, sqlstate="58P01")
    files: list[Path] = []
    # `Path.glob` takes no pattern that begins at the root.
    for each in map(Path, sorted(glob.glob(str(path), recursive=True))):  # noqa: PTH207
        if each.is_file():
            files.append(each)
        elif "**" not in path.parts:  # which has listed what is in the folder by itself
            files += _files_in(each)
    if not files:
        raise StorageError("no file matches", path, sqlstate="58P01")
    parts = path.parts
    fixed = next(number for number, part in enumerate(parts) if _PATTERN & set(part))
    return Path(*parts[:fixed]) if fixed else Path(), files


def _files_in(folder: Path) -> list[Path]:
    """List the files of a folder and its sub-folders. Names that begin with a dot or an underscore, as `_SUCCESS`
    does, are no data."""
    return [
        each
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not any(part[0] in "._" for part in each.relative_to(folder).parts)
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the files of a load are read."""

    kind: FileFormat
    csv: CsvOptions | None
    columns: tuple[ColumnDefinition, ...]


def _rows_of(
    root: Path, files: Sequence[Path], reading: _Reading, origins: list[tuple[int, Path]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files; `origins` is told with which row each of them begins."""
    rows = 0
    for file in files:
        origins.append((rows, file))
        constants = values_in_path(root, file, reading.columns)
        if reading.kind.is_text and not reading.columns:
            raise busy_error(f"{file}: the table was created while the file was opened: load it again")
        with readable(file):
            for batch in reading.kind.read(file, reading.csv, reading.columns):
                rows += batch.num_rows
                yield _with_constants(batch, constants)


def _with_constants(batch: pa.RecordBatch, constants: dict[str, pa.Scalar]) -> pa.RecordBatch:
    for name, value in constants.items():
        if name.casefold() in {each.casefold() for each in batch.schema.names}:
            ordinal = [each.casefold() for each in batch.schema.names].index(name.casefold())
            if batch.column(ordinal).null_count < batch.num_rows:
                raise repeated_column(f"the column {name} is in the name of a folder and in its files")
            batch = batch.remove_column(ordinal)
        batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
    return batch


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what Arrow and the file system raise into an error that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise file_error(f"{path} cannot be read: {str(error).splitlines()[0][:300]}") from error
