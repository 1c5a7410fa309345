"""What `Grid.load` takes: anything that can be had as Arrow, whole or batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import SqlError, StorageError, data_error
from remuda.expr.going_on import go_on
from remuda.grid.modify import generated_keys
from remuda.grid.text_files import from_text, open_csv, open_json
from remuda.types import from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ColumnDefinition, MapDefinition
    from remuda.sql import CsvOptions

TABLE_ROWS = 4_000_000
"""Rows that are held at a time when the data comes in batches."""

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".arrow": "arrow", ".feather": "feather"}


@dataclass(frozen=True, slots=True)
class LoadSource:
    """Data to load: `tables` one after the other, each of `TABLE_ROWS` at most; `rows` in all, where that is known."""

    schema: pa.Schema
    tables: Iterator[pa.Table]
    rows: int | None


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
            raise data_error(f"the data frame cannot be read: {error.args[-1]}") from error
        except AttributeError as error:
            raise data_error(f"a {type(data).__name__} of pandas is not a data frame") from error
    if isinstance(data, pa.Table):
        return LoadSource(data.schema, iter([data]), data.num_rows)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except pa.ArrowException as error:
            raise data_error(f"a {type(data).__name__} has no columns with names: give a data frame") from error
        known = len(data) if hasattr(data, "__len__") else None
        return LoadSource(reader.schema, gathered(reader, reader.schema), known)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | dict) and getattr(data, "shape", ...) != ():
        return _open_batches(iter(data))
    raise data_error(f"a {type(data).__name__} cannot be loaded: give an Arrow table, a data frame, batches or a path")


def _open_batches(batches: Iterator[Any]) -> LoadSource:
    first = next(batches, None)
    if first is None:
        raise data_error("there are no batches to load: their columns cannot be known")
    schema = open_source(first).schema
    return LoadSource(schema, gathered(_record_batches(chain([first], batches)), schema), None)


def _record_batches(pieces: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Batches and tables, in any mixture."""
    for piece in pieces:
        for table in open_source(piece).tables:
            yield from table.to_batches()


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches as tables that are worth a segment; other columns than before begin another one.

    A load without any rows is one empty table.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    given = False
    for batch in batches:
        go_on()
        if waiting and not batch.schema.equals(waiting[0].schema):
            yield pa.Table.from_batches(waiting)
            waiting, rows, given = [], 0, True
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= TABLE_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows, given = [], 0, True
    if rows or not given:
        yield pa.Table.from_batches(waiting, schema if not waiting else None)


def _open_file(path: Path, columns: Sequence[ColumnDefinition], kind: str | None, csv: CsvOptions | None) -> LoadSource:
    if not path.exists():
        raise StorageError("there is no such file", path)
    inside = [path] if path.is_file() else sorted(path.rglob("*"))
    kind = kind or next((FORMATS[each.suffix] for each in inside if each.suffix in FORMATS), None)
    try:
        match kind:
            case None:
                raise data_error(f"{path} cannot be loaded: the kinds of files are {', '.join(FORMATS)}")
            case "csv":
                dataset, rows = open_csv(path, csv, columns), None
            case "json":
                dataset, rows = open_json(path, columns), None
            case _:
                import pyarrow.dataset as ds

                dataset = ds.dataset(path, format=kind)
                rows, columns = dataset.count_rows(), ()
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from error
    return LoadSource(dataset.schema, gathered(_scanned(dataset, path, columns), dataset.schema), rows)


def _scanned(dataset: Any, path: Path, columns: Sequence[ColumnDefinition]) -> Iterator[pa.RecordBatch]:
    """`columns` where the values are text."""
    try:
        for batch in dataset.to_batches():
            yield from_text(batch, columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> SqlError:
    return data_error(f"{path} cannot be read: {str(error).splitlines()[0]}")


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
