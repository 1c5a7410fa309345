"""What `Grid.load` takes: anything that can be had as Arrow, whole or batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import kind_of, not_supported, option_error, value_error
from remuda.grid.files.file_sources import delta_source, open_files
from remuda.grid.files.load_source import LoadSource, dataset_source, gathered
from remuda.grid.files.python_rows import as_mapping, table_of_columns, tables_of_rows

if TYPE_CHECKING:
    from remuda.catalog import ColumnDefinition
    from remuda.sql import CsvOptions

TAKEN = "an Arrow table, a data frame, batches, a list of dictionaries, a dictionary of lists or a path"

_BY_ARROW = "Let Arrow read it: grid.load(name, pyarrow.dataset.dataset(address), key=...)."


def is_spark_dataframe(data: Any) -> bool:
    """Tell a Spark data frame by the name of its package, so that pyspark is not imported to find out."""
    return any(base.__module__.startswith("pyspark.sql") for base in type(data).__mro__)


def open_source(
    data: Any, columns: Sequence[ColumnDefinition] = (), *, kind: str | None = None, csv: CsvOptions | None = None
) -> LoadSource:
    """Open data of any kind that can be loaded.

    `columns` are those of the map, where it is there: text and Python's values are read for them. `kind` says what the
    files at a path are, where their names do not. Packages are told by their names: none is imported to find out.
    """
    if isinstance(data, str) and "://" in data:
        raise not_supported(f"{data} is an address, and files are loaded from paths", suggestion=_BY_ARROW)
    if isinstance(data, str | os.PathLike):
        return open_files(Path(data).expanduser(), columns, kind, csv)
    package = type(data).__module__.partition(".")[0]
    if package == "deltalake" and hasattr(data, "to_pyarrow_dataset"):
        return delta_source(data)
    if type(data).__module__ == "pyarrow._dataset":
        return dataset_source(data) if hasattr(data, "schema") else _open_stream(data.to_reader())
    if package == "polars" and hasattr(data, "collect_batches"):  # a LazyFrame
        return _open_lazy(data)
    if package == "pandas":
        data = _arrow_of_pandas(data)
    elif isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif isinstance(data, Mapping):
        data = table_of_columns(data, columns)
    if isinstance(data, pa.Table):
        return LoadSource(data.schema, iter([data]), data.num_rows)
    if hasattr(data, "__arrow_c_stream__"):
        return _open_stream(data)
    if isinstance(data, Iterable) and not isinstance(data, bytes) and getattr(data, "shape", ...) != ():
        known = len(data) if isinstance(data, Sequence) else None
        return _open_pieces(iter(data), known, columns)
    raise value_error(f"{kind_of(data)} cannot be loaded: give {TAKEN}")


def _open_stream(data: Any) -> LoadSource:
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowException as error:
        raise value_error(f"{kind_of(data)} has no columns with names: give a data frame") from error
    # A relation of DuckDB would run its query once more to count its rows, and cannot while the first one runs.
    counts = hasattr(data, "__len__") and not type(data).__module__.startswith(("duckdb", "_duckdb"))
    return LoadSource(reader.schema, gathered(reader, reader.schema), len(data) if counts else None)


def _open_lazy(frame: Any) -> LoadSource:
    """Compute a Polars LazyFrame batch by batch."""
    schema = frame.limit(0).collect().to_arrow().schema
    batches = (batch for piece in frame.collect_batches() for batch in piece.to_arrow().to_batches())
    return LoadSource(schema, gathered(batches, schema), None)


def _arrow_of_pandas(frame: Any) -> pa.Table:
    """Convert a pandas data frame. Index levels that have names are columns; those without are row numbers."""
    if not hasattr(frame, "columns"):
        raise value_error(f"{kind_of(frame)} of pandas is not a data frame")
    named = [name for name in frame.index.names if name is not None]
    twice = [name for name in named if name in frame.columns]
    if twice:
        raise value_error(
            f"the data frame has an index and a column called {twice[0]}",
            suggestion="Leave the index out with reset_index(drop=True).",
        )
    try:
        return pa.Table.from_pandas(frame.reset_index(named) if named else frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise value_error(f"the data frame cannot be read: {error.args[-1]}") from error


def _open_pieces(pieces: Iterator[Any], known: int | None, columns: Sequence[ColumnDefinition]) -> LoadSource:
    """Open rows with names, or batches and tables in any mixture, told by the first of them."""
    first = next(pieces, None)
    if first is None:
        raise option_error("there are no rows or batches to load: their columns cannot be known")
    pieces = chain([first], pieces)
    if as_mapping(first) is not None:
        tables = tables_of_rows(pieces, columns)
        head = next(tables)
        batches = (batch for table in chain([head], tables) for batch in table.to_batches())
        return LoadSource(head.schema, gathered(batches, head.schema), known)
    if isinstance(first, tuple | list):
        raise value_error("rows without names cannot be loaded: give dictionaries, or a dictionary of lists")
    schema = open_source(first).schema
    return LoadSource(schema, gathered(_record_batches(pieces), schema), None)


def _record_batches(pieces: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        for table in open_source(piece).tables:
            yield from table.to_batches()
