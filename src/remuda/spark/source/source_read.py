"""Reading maps into Spark SQL: few tasks over one pinned snapshot, with pruning and indexes where filters allow it.

Spark plans a read in a Python process of its own, which opens the folder, pins a snapshot and chooses the access path;
the tasks open that snapshot and run the one scan. The files of the snapshot are kept for the tasks by a lease that
outlives the planning process.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition

from remuda.catalog.catalog import DEFAULT_SCHEMA
from remuda.errors import SqlError, missing_column, nearest, not_found
from remuda.exec import ExecContext, IterationResult, build_operator
from remuda.exec.batch import conformed
from remuda.exec.scan.concrete_bounds import pruned_partitions
from remuda.expr import Call, Column, Literal, Parameters, conjunction
from remuda.optimizer.access_paths import access_paths
from remuda.plan import logical
from remuda.plan.traits import Convention, Traits
from remuda.spark.driver.tasks import freeze_garbage
from remuda.storage import SnapshotDescription, Store, open_snapshot
from remuda.types import BOOLEAN, to_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql.datasource import Filter

    from remuda.catalog import MapDefinition
    from remuda.expr import Expression
    from remuda.plan.physical import ScanNode

# Filters that Spark pushes down, as expressions of the engine. What cannot be said exactly stays with Spark.


_COMPARISONS: dict[type[Any], str] = {
    datasource.EqualTo: "=",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
}


def as_expression(pushed: Filter, columns: Mapping[str, Column]) -> Expression | None:
    """None where the filter names a field of a struct, or a value that the column's type cannot hold."""
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    column = columns.get(path[0]) if len(path) == 1 else None
    if column is None:
        return None
    match pushed:
        case datasource.IsNull():
            return Call("is null", (column,), BOOLEAN)
        case datasource.IsNotNull():
            return Call("is not null", (column,), BOOLEAN)
        case datasource.In():
            values = [_literal(value, column) for value in pushed.value]
            return None if not values or None in values else Call("in", (column, *values), BOOLEAN)  # type: ignore[arg-type]
        case _ if type(pushed) in _COMPARISONS:
            literal = _literal(pushed.value, column)  # type: ignore[attr-defined]
            return None if literal is None else Call(_COMPARISONS[type(pushed)], (column, literal), BOOLEAN)
        case _:
            return None


def _literal(value: Any, column: Column) -> Literal | None:
    if value is None:
        return None
    try:
        return Literal(to_stored(column.type, value), column.type)
    except SqlError:
        return None


KEPT_SECONDS = 3600.0
"""How long the files of a planned read are kept for tasks that have not begun."""


def is_true(options: Mapping[str, str], name: str) -> bool:
    """Tell whether an option is given as true."""
    return options.get(name, "false").casefold() == "true"


def open_reader(options: Mapping[str, str]) -> Store:
    """The store, for planning, wherever it is: a folder, or an address such as `s3://bucket/shop.remuda`.

    Its files are not verified: each query would begin to read all of them, in a process that goes on from query to
    query. That is left to whoever has the folder open for longer.
    """
    path = options["path"]
    if "://" not in path:
        return Store.open(Path(path).expanduser().absolute(), read_only=True, verifies=False)
    from remuda.storage.remote.remote_location import open_address

    found = open_address(path, cache=options.get("cache"), sole_writer=is_true(options, "soleWriter"))
    if isinstance(found, Path):
        return Store.open(found, read_only=True, verifies=False)
    try:
        return Store.open(read_only=True, remote=found, verifies=False)
    except BaseException:
        found.close()
        raise


def find_map(store: Store, name: str) -> MapDefinition:
    schema, _, short = name.rpartition(".")
    found = store.catalog.find_map(short, (schema or DEFAULT_SCHEMA,))
    if found is None:
        names = [definition.name for definition in store.catalog.maps.values()]
        raise not_found(f"unknown table: {name}", suggestion=nearest(short, names))
    return found


def read_columns(definition: MapDefinition, names: str | None) -> tuple[Column, ...]:
    """The visible columns, or those that the option `columns` names, in its order."""
    visible = definition.visible_columns
    if names is not None:
        chosen = []
        for name in (part.strip() for part in names.split(",")):
            column = definition.find_column(name)
            if column is None:
                hint = nearest(name, [each.name for each in visible])
                raise missing_column(f"{definition.name} has no column {name}", suggestion=hint)
            chosen.append(column)
        visible = tuple(chosen)
    return tuple(Column(number, each.name, each.type, each.nullable) for number, each in enumerate(visible))


class MapPartition(InputPartition):
    """The share of one task. It carries the scan: Spark has pickled the reader when it asks for the partitions."""

    def __init__(self, scan: ScanNode, partitions: np.ndarray) -> None:
        super().__init__(None)
        self.scan = scan
        self.partitions = partitions


class MapReader(DataSourceReader):
    """Reads a map. It pickles, and travels to the tasks."""

    def __init__(self, options: Mapping[str, str], tasks: int) -> None:
        self._filters: list[Expression] = []
        self._tasks = int(options.get("tasks", tasks))
        store = open_reader(options)
        try:
            definition = find_map(store, options["map"])
            (snapshot,) = store.snapshot([definition])
            store.keep_files(KEPT_SECONDS)
            self._snapshot: SnapshotDescription = snapshot.describe()
            self._statistics = store.map(definition).statistics()
            self._columns = read_columns(definition, options.get("columns"))
        finally:
            store.close()

    def partitions(self) -> list[InputPartition]:
        """The partitions that the filters leave, in contiguous blocks, one for each task."""
        scan = self._chosen_path()
        definition = self._snapshot.definition
        needed = None if scan.pruning is None else pruned_partitions(definition, scan.pruning, ())
        if needed is None:
            needed = np.arange(definition.partitions, dtype=np.int64)
        blocks = np.array_split(needed, max(1, min(self._tasks, len(needed))))
        freeze_garbage()
        return [MapPartition(scan, block) for block in blocks]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        snapshot = open_snapshot(self._snapshot)
        operator = build_operator(partition.scan)
        context = ExecContext(Parameters(), {snapshot.definition.id: snapshot}, partition.partitions)
        operator.setup(context)
        schema = _arrow_schema(self._columns)
        while True:
            result = operator.advance()
            assert result is not IterationResult.WAIT, "a scan has nobody to wait for"
            if operator.current_batch.row_count:
                yield conformed(operator.current_batch.arrow(), schema)
            if result is IterationResult.FETCHED_DONE:
                freeze_garbage()
                return

    def _push(self, filters: list[Filter]) -> Iterable[Filter]:
        by_name = {column.name: column for column in self._columns}
        for pushed in filters:
            expression = as_expression(pushed, by_name)
            if expression is None:
                yield pushed
            else:
                self._filters.append(expression)

    def _chosen_path(self) -> ScanNode:
        scan = logical.Scan(self._snapshot.definition, self._columns, conjunction(self._filters))
        paths = access_paths(scan, Traits(), (Convention.LOCAL,), self._statistics)
        return min(paths, key=lambda path: path.estimate.cost)


class FilteringMapReader(MapReader):
    """Takes filters from Spark. A class of its own: Spark refuses a reader with this method where pushing is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        return list(self._push(filters))


class QueryReader(DataSourceReader):
    """Reads the result of a Remuda query, which runs in one task with all that the engine knows."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with _open_grid(self._options) as grid:
            result = grid.sql(self._options["query"])
            schema = _arrow_schema(result.columns)
            for batch in pa.RecordBatchReader.from_stream(result):
                yield conformed(batch, schema)
        freeze_garbage()


def query_columns(options: Mapping[str, str]) -> list[Any]:
    """Names and types of what a query delivers."""
    with _open_grid(options) as grid:
        result = grid.sql(options["query"])
        columns = list(result.columns)
        result.close()
        return columns


def _open_grid(options: Mapping[str, str]) -> Any:
    """The grid stands above this package, so it is found by name, as everything is that runs in a worker."""
    return import_module("remuda.grid").open_grid(options["path"], read_only=True, cache=options.get("cache"))


def _arrow_schema(columns: Iterable[Any]) -> pa.Schema:
    """As Spark compares it with what it was promised: nullability included."""
    return pa.schema([pa.field(column.name, column.type.arrow, column.nullable) for column in columns])


def default_tasks() -> int:
    return os.cpu_count() or 1
