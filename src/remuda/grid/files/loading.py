"""Loading data into a map, which is created where it is absent: open, check the columns, fill, all or nothing."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa

from remuda.catalog import DEFAULT_SCHEMA
from remuda.dataclass import dataclass
from remuda.errors import missing_column, not_found, option_error, wrong_object
from remuda.grid.files.inputs import is_spark_dataframe, open_source
from remuda.grid.files.load_source import TABLE_ROWS
from remuda.grid.files.new_map import definition_for, key_names, suggest_create
from remuda.grid.files.progress import ProgressBar
from remuda.grid.write_rows import generated_keys
from remuda.storage import LoadMode
from remuda.storage.load.conforming import order_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.catalog import MapDefinition
    from remuda.grid.files.load_source import LoadSource
    from remuda.storage import MapStore, Store

Missing = Literal["error", "null"]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How data is loaded: the arguments of `Grid.load`, checked."""

    mode: LoadMode = "append"
    key: tuple[str, ...] | None = None
    missing: Missing = "error"
    progress: bool | None = None
    order_by: str | None = None

    @classmethod
    def checked(
        cls, mode: Any, key: Any, missing: Any, progress: bool | None, order_by: str | None = None
    ) -> LoadOptions:
        """Return the options; raise where a word is none that they take."""
        for option, given, words in (("mode", mode, get_args(LoadMode)), ("missing", missing, get_args(Missing))):
            if str(given) not in words:
                raise option_error(f"{option} must be one of {', '.join(words)}, not {given!r}")
        if order_by is not None and mode != "upsert":
            raise option_error(f"order_by says which row of an upsert wins: mode is {mode}")
        return cls(mode, None if key is None else key_names(key), missing, progress, order_by)


def load_data(store: Store, name: str, known: MapDefinition | None, data: Any, options: LoadOptions) -> int:
    """Load data into the map of this name, which is created if it is absent and `key` is given."""
    if known is not None:
        _refuse_other_key(known, options.key)
        if is_spark_dataframe(data):
            return _load_spark(store.map(known), data, options)
        return _fill(store.map(known), open_source(data, known.columns), options)
    if store.catalog.find_view(name, (DEFAULT_SCHEMA,)) is not None:
        raise wrong_object(f"{name} is a view: rows are loaded into tables")
    if is_spark_dataframe(data):
        return _create_from_spark(store, name, data, options)
    source = open_source(data)
    definition = _new_definition(store, name, source.schema, options)
    if source.needs_columns:
        source = open_source(data, definition.columns)
    return _create(store, definition, lambda target: _fill(target, source, options, created=True))


def _new_definition(store: Store, name: str, schema: pa.Schema, options: LoadOptions) -> MapDefinition:
    if options.key is None:
        hint = suggest_create(name, schema)
        raise not_found(f"unknown table: {name}", suggestion=hint)
    return definition_for(name, schema, options.key, store.partitions)


def _create(store: Store, definition: MapDefinition, fill: Callable[[MapStore], int]) -> int:
    """Create a map with its rows: no reader sees it without them, and it is not there if they are refused."""
    rows: list[int] = []
    store.create_map(definition, lambda target: rows.append(fill(target)))
    return rows[0]


def _fill(target: MapStore, source: LoadSource, options: LoadOptions, *, created: bool = False) -> int:
    """Load all tables of the source. A few rows go through the log, but not those of a map that is being created: the
    records of the log belong to maps that are in the catalog."""
    definition = target.definition
    order_by = order_column(definition, options.order_by)
    tables = with_keys(definition, _complete(definition, source.tables, options.missing))
    bar = ProgressBar(f"loading {definition.name}", source.rows, shown=options.progress)
    try:
        with source.naming_files():
            few = not created and source.rows is not None and source.rows <= TABLE_ROWS
            first = list(islice(tables, 2 if few else 0))
            if len(first) == 1:
                return target.load(first[0], options.mode, order_by)
            return target.load_tables(chain(first, tables), options.mode, bar.advance, order_by)
    finally:
        bar.finish()


def _load_spark(target: MapStore, data: Any, options: LoadOptions) -> int:
    from remuda.spark.load.load_job import load_dataframe

    _refuse_missing(target.definition, data.columns, options.missing)
    order_by = order_column(target.definition, options.order_by)
    bar = ProgressBar(f"loading {target.definition.name}", None, shown=options.progress)
    try:
        return load_dataframe(target, data, options.mode, generated_keys, bar.advance, order_by)
    finally:
        bar.finish()


def _create_from_spark(store: Store, name: str, data: Any, options: LoadOptions) -> int:
    """Spark's tasks write into the folder of a map that is there: an empty one first, which goes if they fail."""
    schema = data.limit(0).toArrow().schema
    store.create_map(_new_definition(store, name, schema, options))
    created = store.catalog.find_map(name, (DEFAULT_SCHEMA,))
    assert created is not None
    try:
        return _load_spark(store.map(created), data, options)
    except BaseException:
        store.drop_map(created)
        raise


def _refuse_other_key(definition: MapDefinition, key: tuple[str, ...] | None) -> None:
    if key is not None and [name.casefold() for name in key] != [name.casefold() for name in definition.key]:
        raise option_error(f"the key of {definition.name} is ({', '.join(definition.key)}), not ({', '.join(key)})")


def _complete(definition: MapDefinition, tables: Iterable[pa.Table], missing: Missing) -> Iterator[pa.Table]:
    for table in tables:
        if table.num_columns:  # a file of text without rows has no columns either
            _refuse_missing(definition, table.column_names, missing)
        yield table


def _refuse_missing(definition: MapDefinition, names: Iterable[str], missing: Missing) -> None:
    """Raise where the data lacks columns of the map, unless they are to be NULL."""
    listed = [name.casefold() for name in names]
    given = set(listed)
    if len(given) < len(listed):
        return  # a column that is given twice is refused where columns are conformed
    lacking = [each.name for each in definition.columns if not each.hidden and each.name.casefold() not in given]
    if lacking and missing == "error":
        raise missing_column(
            f"the data lacks columns of {definition.name}: {', '.join(lacking)}",
            suggestion='missing="null" loads NULL for them.',
        )


def with_keys(definition: MapDefinition, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables, with generated keys where the map has no PRIMARY KEY and the data no column for it."""
    hidden = next((column.name for column in definition.columns if column.hidden), None)
    for table in tables:
        if hidden is None or hidden in table.column_names:
            yield table
        else:
            keys = generated_keys(table.num_rows)
            yield table.append_column(hidden, pa.array(np.arange(keys.start, keys.stop)))
