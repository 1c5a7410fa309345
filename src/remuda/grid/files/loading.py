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
from remuda.grid.files.progress_bar import ProgressBar
from remuda.grid.write_rows import generated_keys
from remuda.sql import bind_condition
from remuda.storage import LoadMode
from remuda.storage.load.change_format import change_format, refuse_generated_key
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.load.conforming import order_column
from remuda.storage.load.new_map import MapRequest, suggest_create
from remuda.storage.state.applied_batches import BatchId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.catalog import MapDefinition
    from remuda.grid.files.load_source import LoadSource
    from remuda.storage import MapStore, Store
    from remuda.storage.load.change_format import ChangeFormat
    from remuda.storage.load.merge_changes import ChangeCounts

Missing = Literal["error", "null"]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How data is loaded: the arguments of `Grid.load`, checked."""

    mode: LoadMode = "append"
    request: MapRequest = MapRequest()
    missing: Missing = "error"
    progress: bool | None = None
    order_by: str | None = None
    form: ChangeFormat | None = None
    """How the data tells changes, where it does or where a condition says which rows are written."""
    condition: str | None = None
    batch: BatchId | None = None

    @classmethod
    def checked(
        cls,
        mode: Any,
        request: MapRequest,
        missing: Any,
        progress: bool | None,
        order_by: str | None = None,
        *,
        operation: str | None = None,
        changes: str | None = None,
        condition: str | None = None,
        batch_id: Any = None,
    ) -> LoadOptions:
        """Return the options; raise where a word is none that they take."""
        for option, given, words in (("mode", mode, get_args(LoadMode)), ("missing", missing, get_args(Missing))):
            if str(given) not in words:
                raise option_error(f"{option} must be one of {', '.join(words)}, not {given!r}")
        if order_by is not None and mode not in {"upsert", "apply"}:
            raise option_error(f"order_by says which row of an upsert wins: mode is {mode}")
        form = change_format(mode, operation, order_by, changes, condition)
        return cls(mode, request, missing, progress, order_by, form, condition, BatchId.checked(batch_id))

    def rules(self, definition: MapDefinition) -> ChangeRules:
        """Return how changes meet the rows of this map."""
        condition = None if self.condition is None else bind_condition(self.condition, definition)
        return ChangeRules(None if self.form is None else self.form.order_name, condition, self.batch)

    def row_schema(self, definition: MapDefinition | None, schema: pa.Schema) -> pa.Schema:
        """Return the columns that go into the map, of data with this schema."""
        return schema if self.form is None else self.form.row_schema(definition, schema)


def load_data(
    store: Store, name: str, known: MapDefinition | None, data: Any, options: LoadOptions
) -> int | ChangeCounts:
    """Load data into the map of this name, which is created if it is absent and `key` is given."""
    if known is not None:
        options.request.refuse_other(known)
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
    schema = options.row_schema(None, schema)
    if options.request.key is None:
        hint = suggest_create(name, schema)
        raise not_found(f"unknown table: {name}", suggestion=hint)
    return options.request.define(name, schema, store.partitions, store.catalog)


def _create(
    store: Store, definition: MapDefinition, fill: Callable[[MapStore], int | ChangeCounts]
) -> int | ChangeCounts:
    """Create a map with its rows: no reader sees it without them, and it is not there if they are refused."""
    rows: list[int | ChangeCounts] = []
    store.create_map(definition, lambda target: rows.append(fill(target)))
    return rows[0]


def _fill(target: MapStore, source: LoadSource, options: LoadOptions, *, created: bool = False) -> int | ChangeCounts:
    """Load all tables of the source. A few rows go through the log, but not those of a map that is being created: the
    records of the log belong to maps that are in the catalog."""
    definition = target.definition
    tables = _complete(definition, source.tables, options)
    bar = ProgressBar(f"loading {definition.name}", source.rows, shown=options.progress)
    try:
        with source.naming_files():
            if options.form is not None:
                refuse_generated_key(definition)
                rules = options.rules(definition)
                return _told(options, target.load_changes(tables, options.form, rules, bar.advance))
            order_by, batch = order_column(definition, options.order_by), options.batch
            tables = with_keys(definition, tables)
            few = not created and source.rows is not None and source.rows <= TABLE_ROWS
            first = list(islice(tables, 2 if few else 0))
            if len(first) == 1:
                return target.load(first[0], options.mode, order_by, batch)
            return target.load_tables(chain(first, tables), options.mode, bar.advance, order_by, batch)
    finally:
        bar.finish()


def _told(options: LoadOptions, counts: ChangeCounts) -> int | ChangeCounts:
    """Return what the user is told: of an upsert under a condition how many rows it wrote."""
    return counts if options.mode == "apply" else counts.inserted + counts.updated


def _load_spark(target: MapStore, data: Any, options: LoadOptions) -> int | ChangeCounts:
    from remuda.spark.load.change_job import load_changed_frame
    from remuda.spark.load.load_job import load_dataframe
    from remuda.spark.load.matching import frame_schema

    definition = target.definition
    bar = ProgressBar(f"loading {definition.name}", None, shown=options.progress)
    try:
        if options.form is not None:
            refuse_generated_key(definition)
            names = options.row_schema(definition, frame_schema(data.schema)).names
            _refuse_missing(definition, names, options.missing)
            return _told(options, load_changed_frame(target, data, options.form, options.rules(definition), bar))
        _refuse_missing(definition, data.columns, options.missing)
        order_by = order_column(definition, options.order_by)
        return load_dataframe(target, data, options.mode, generated_keys, bar, order_by, options.batch)
    finally:
        bar.finish()


def _create_from_spark(store: Store, name: str, data: Any, options: LoadOptions) -> int | ChangeCounts:
    """Load through Spark, whose tasks write into the folder of a map that exists.

    A new map is made empty first, and dropped if they fail.
    """
    from remuda.spark.load.matching import frame_schema

    store.create_map(_new_definition(store, name, frame_schema(data.schema), options))
    created = store.catalog.find_map(name, (DEFAULT_SCHEMA,))
    assert created is not None
    try:
        return _load_spark(store.map(created), data, options)
    except BaseException:
        store.drop_map(created)
        raise


def _complete(definition: MapDefinition, tables: Iterable[pa.Table], options: LoadOptions) -> Iterator[pa.Table]:
    def checked(table: pa.Table) -> pa.Table:
        if table.num_columns:  # a file of text without rows has no columns either
            _refuse_missing(definition, options.row_schema(definition, table.schema).names, options.missing)
        return table

    return map(checked, tables)


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
    """Yield the tables, with generated keys where the map has no PRIMARY KEY and the data no column for it.

    By `map`, here and above: a generator would hold a table until it has got the next one.
    """
    hidden = next((column.name for column in definition.columns if column.hidden), None)

    def complete(table: pa.Table) -> pa.Table:
        if hidden is None or hidden in table.column_names:
            return table
        keys = generated_keys(table.num_rows)
        return table.append_column(hidden, pa.array(np.arange(keys.start, keys.stop)))

    return map(complete, tables)
