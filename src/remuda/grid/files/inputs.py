"""What `Grid.load` takes: anything that can be had as Arrow, whole or batch by batch."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import (
    SqlError,
    StorageError,
    busy_error,
    file_error,
    option_error,
    text_error,
    value_error,
)
from remuda.expr.cancellation import check_cancelled
from remuda.grid.files.text_files import guess_csv, guess_json, read_csv, read_json
from remuda.grid.files.text_values import WrongValueError, typed_column
from remuda.grid.write_rows import generated_keys
from remuda.types import from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ColumnDefinition, MapDefinition
    from remuda.sql import CsvOptions


TABLE_ROWS = 4_000_000
"""Rows that are held at a time when the data comes in batches."""

TABLE_BYTES = 512 << 20
"""Or so much of them: an Arrow array of strings ends at 2 GiB."""

TEXT_FORMATS = frozenset({"csv", "json"})
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".arrow": "arrow", ".feather": "feather"}


@dataclass(frozen=True, slots=True)
class LoadSource:
    """Data to load: `tables` one after the other, each of `TABLE_ROWS` at most; `rows` in all, where that is known.

    `origins` has the files from which rows were read so far, each with the number of rows before it.
    """

    schema: pa.Schema
    tables: Iterator[pa.Table]
    rows: int | None
    origins: Sequence[tuple[int, Path]] = ()

    @contextmanager
    def naming_files(self) -> Iterator[None]:
        """Give an error that names a row of the load the file of this row, and its number there."""
        try:
            yield
        except SqlError as error:
            counted = _ROW.search(error.message)
            if counted is None or not self.origins:
                raise
            row = int(counted[1])
            first, file = max(origin for origin in self.origins if origin[0] < row)
            if str(file) in error.message:
                raise
            error.message = f"{error.message[: counted.start()]}, row {row - first} of {file}{counted[2]}"
            error.args = (error.message,)
            raise


_ROW = re.compile(r", row (\d+)($|:.*$)", re.DOTALL)


def is_spark_dataframe(data: Any) -> bool:
    """Told by the name of its package, so that pyspark is not imported to find out."""
    return any(base.__module__.startswith("pyspark.sql") for base in type(data).__mro__)


def open_source(
    data: Any, columns: Sequence[ColumnDefinition] = (), *, kind: str | None = None, csv: CsvOptions | None = None
) -> LoadSource:
    """pyarrow, polars, pandas, everything with the Arrow PyCapsule interface, batches one by one, or a path.

    `columns` are those of the map, where it is there: files of text are read for them. `kind` says what the files at a
    path are, where their names do not.
    """
    if isinstance(data, str | Path):
        return _open_file(Path(data), columns, kind, csv)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif type(data).__module__.startswith("pandas"):
        try:
            data = pa.Table.from_pandas(data, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise value_error(f"the data frame cannot be read: {error.args[-1]}") from error
        except AttributeError as error:
            raise value_error(f"a {type(data).__name__} of pandas is not a data frame") from error
    if isinstance(data, pa.Table):
        return LoadSource(data.schema, iter([data]), data.num_rows)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except pa.ArrowException as error:
            raise value_error(f"a {type(data).__name__} has no columns with names: give a data frame") from error
        known = len(data) if hasattr(data, "__len__") else None
        return LoadSource(reader.schema, gathered(reader, reader.schema), known)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | dict) and getattr(data, "shape", ...) != ():
        return _open_batches(iter(data))
    raise value_error(f"a {type(data).__name__} cannot be loaded: give an Arrow table, a data frame, batches or a path")


def _open_batches(batches: Iterator[Any]) -> LoadSource:
    first = next(batches, None)
    if first is None:
        raise option_error("there are no batches to load: their columns cannot be known")
    schema = open_source(first).schema
    return LoadSource(schema, gathered(_record_batches(chain([first], batches)), schema), None)


def _record_batches(pieces: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Batches and tables, in any mixture."""
    for piece in pieces:
        for table in open_source(piece).tables:
            yield from table.to_batches()


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield batches as tables that are worth a segment; other columns than before begin another one.

    A load without any rows is one empty table.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    given = False
    for batch in batches:
        check_cancelled()
        if waiting and not batch.schema.equals(waiting[0].schema):
            yield pa.Table.from_batches(waiting)
            waiting, rows, size, given = [], 0, 0, True
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= TABLE_ROWS or size >= TABLE_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size, given = [], 0, 0, True
    if rows or not given:
        yield pa.Table.from_batches(waiting, schema if not waiting else None)


def _open_file(path: Path, columns: Sequence[ColumnDefinition], kind: str | None, csv: CsvOptions | None) -> LoadSource:
    """Open a file, or the files of a folder: each is read with its own columns, and none is left out."""
    if not path.exists():
        raise StorageError("there is no such file", path, sqlstate="58P01")
    files = [path] if path.is_file() else _files_in(path)
    kinds = {each: kind or FORMATS.get(each.suffix.casefold()) for each in files}
    if not files or None in kinds.values():
        wrong = next((each for each, found in kinds.items() if found is None), path)
        raise option_error(f"{wrong} cannot be loaded: the kinds of files are {', '.join(FORMATS)}")
    if len(set(kinds.values())) > 1:
        raise file_error(f"{path} has files of several kinds: {', '.join(sorted(map(str, set(kinds.values()))))}")
    (kind,) = set(kinds.values())
    with _readable(path):
        if kind in TEXT_FORMATS:
            schema, rows = _guessed_schema(files[0], str(kind), csv) if not columns else pa.schema([]), None
        else:
            schema, rows = _typed_schema(files[0], str(kind)), sum(_count_rows(each, str(kind)) for each in files)
    origins: list[tuple[int, Path]] = []
    batches = _rows_of(path, files, _Reading(str(kind), csv, tuple(columns)), origins)
    return LoadSource(schema, gathered(batches, schema), rows, origins)


def _files_in(folder: Path) -> list[Path]:
    """Files whose names, or whose folders' names, begin with a dot or an underscore are no data: `_SUCCESS`."""
    return [
        each
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not any(part[0] in "._" for part in each.relative_to(folder).parts)
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the files of a load are read."""

    kind: str
    csv: CsvOptions | None
    columns: tuple[ColumnDefinition, ...]


def _rows_of(
    root: Path, files: Sequence[Path], reading: _Reading, origins: list[tuple[int, Path]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the files; `origins` is told with which row each of them begins."""
    rows = 0
    for file in files:
        origins.append((rows, file))
        constants = _values_in_path(root, file, reading.columns)
        with _readable(file):
            for batch in _read(file, reading):
                rows += batch.num_rows
                yield _with_constants(batch, constants)


def _with_constants(batch: pa.RecordBatch, constants: dict[str, pa.Scalar]) -> pa.RecordBatch:
    for name, value in constants.items():
        batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
    return batch


def _read(file: Path, reading: _Reading) -> Iterator[pa.RecordBatch]:
    match reading.kind:
        case "csv" | "json" if not reading.columns:
            raise busy_error(f"{file}: the table was created while the file was opened: load it again")
        case "csv":
            yield from read_csv(file, reading.csv, reading.columns)
        case "json":
            yield from read_json(file, reading.columns)
        case "parquet":
            import pyarrow.dataset as ds

            yield from ds.dataset(file, format="parquet").to_batches()
        case _:
            yield from _read_arrow(file)


def _read_arrow(file: Path) -> Iterator[pa.RecordBatch]:
    """Read an Arrow file into memory of its own; nothing in it is used as an offset before it is checked."""
    with pa.OSFile(str(file)) as opened, pa.ipc.open_file(opened) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate(full=True)
            yield batch


def _values_in_path(root: Path, file: Path, columns: Sequence[ColumnDefinition]) -> dict[str, pa.Scalar]:
    """The columns whose values are the names of folders, as Spark and Hive write them: `day=2024-01-31/part.csv`."""
    found: dict[str, pa.Scalar] = {}
    for part in file.relative_to(root).parts[:-1]:
        name, equals, text = part.partition("=")
        if not equals:
            continue
        value = pa.array([None if text == _HIVE_NULL else unquote(text)], pa.string())
        column = next((each for each in columns if each.name.casefold() == unquote(name).casefold()), None)
        try:
            found[unquote(name)] = (value if column is None else typed_column(column, value))[0]
        except WrongValueError as error:
            raise text_error(f"{file}: {error.message}") from error
    return found


def _typed_schema(file: Path, kind: str) -> pa.Schema:
    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.read_schema(file)
    with pa.OSFile(str(file)) as opened, pa.ipc.open_file(opened) as reader:
        return reader.schema


def _count_rows(file: Path, kind: str) -> int:
    import pyarrow.dataset as ds

    return int(ds.dataset(file, format="parquet" if kind == "parquet" else "ipc").count_rows())


def _guessed_schema(file: Path, kind: str, csv: CsvOptions | None) -> pa.Schema:
    """The columns of a file for which there is no map yet, to suggest one."""
    return guess_csv(file, csv) if kind == "csv" else guess_json(file)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what Arrow and the file system raise into an error that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise file_error(f"{path} cannot be read: {str(error).splitlines()[0][:300]}") from error


def with_keys(definition: MapDefinition, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables, with generated keys where the map has no PRIMARY KEY and the data no column for it."""
    hidden = next((column.name for column in definition.columns if column.hidden), None)
    for table in tables:
        if hidden is None or hidden in table.column_names:
            yield table
        else:
            keys = generated_keys(table.num_rows)
            yield table.append_column(hidden, pa.array(np.arange(keys.start, keys.stop)))


def suggest_create(name: str, table_schema: pa.Schema) -> str:
    """The statement that would create a map for data of this schema."""
    columns = [f"{field.name} {_type_name(field.type)}" for field in table_schema]
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY (...))"


def _type_name(arrow: pa.DataType) -> str:
    try:
        return str(from_arrow(arrow))
    except SqlError:
        return "?"


# A progress bar on a terminal; nothing where nobody looks.


_WIDTH = 30
_PERIOD = 0.1
"""Seconds between two drawings."""


class ProgressBar:
    """Draws `label ━━━━━━╸      62 %  6,200,000 rows  3.1 s` over and over, on one line of standard error."""

    def __init__(self, label: str, total: int | None, stream: TextIO | None = None) -> None:
        self._label = label
        self._total = total
        self._stream = stream or sys.stderr
        self._started = self._drawn = time.monotonic()
        self._shown = self._stream.isatty()

    def advance(self, rows: int) -> None:
        """`rows` are done so far."""
        now = time.monotonic()
        if self._shown and now - self._drawn >= _PERIOD:
            self._drawn = now
            self._stream.write("\r" + self.line(rows, now - self._started))
            self._stream.flush()

    def line(self, rows: int, seconds: float) -> str:
        counted = f"{rows:,} rows  {seconds:.1f} s"
        if not self._total:
            return f"{self._label}  {counted}"
        share = min(1.0, rows / self._total)
        filled = int(share * _WIDTH)
        bar = "━" * filled + ("╸" if filled < _WIDTH else "") + " " * (_WIDTH - filled - 1)
        return f"{self._label} {bar} {share:4.0%}  {counted}"

    def finish(self) -> None:
        """Takes the bar off the screen."""
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()
