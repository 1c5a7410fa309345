"""Reading maps into Spark SQL: few tasks, all of which read the version that their execution has pinned.

Spark plans a read in a Python process of its own, and keeps the plan as long as the data frame: it says which columns
and partitions a task reads, and not which version (`pinned_read`). Only jobs without an execution read the version that
was found when they were planned; its files are kept by a lease that outlives the planning process.

Filters are not taken over. Spark keeps what one query pushed down with the data frame, where later queries without
filters find it, so that `orders.where("id = 7")` and then `orders.limit(9)` would both find one row.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from remuda.catalog.catalog import DEFAULT_SCHEMA
from remuda.errors import StorageError, missing_column, nearest, not_found, option_error, state_error
from remuda.exec import ExecContext, IterationResult, build_operator
from remuda.exec.batch import conformed
from remuda.expr import Column, Parameters
from remuda.plan.physical import MapScan
from remuda.plan.traits import Traits
from remuda.spark.driver.tasks import freeze_garbage
from remuda.spark.source.pinned_read import open_reader, pinned_store, running_execution
from remuda.storage import SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from remuda.catalog import MapDefinition
    from remuda.storage import MapSnapshot, Store

KEPT_SECONDS = 3600.0
"""How long the files of a planned read are kept for the tasks of jobs without an execution."""


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
    """The share of one task."""

    def __init__(self, partitions: np.ndarray) -> None:
        super().__init__(None)
        self.partitions = partitions


class MapReader(DataSourceReader):
    """Reads a map. It pickles, and travels to the tasks."""

    def __init__(self, options: Mapping[str, str], tasks: int) -> None:
        self._options = dict(options)
        self._tasks = task_count(options, tasks)
        store = open_reader(options)
        try:
            definition = find_map(store, options["map"])
            (snapshot,) = store.snapshot([definition])
            store.keep_files(KEPT_SECONDS)
            self._planned: SnapshotDescription = snapshot.describe()
            self._columns = read_columns(definition, options.get("columns"))
        finally:
            store.close()

    def partitions(self) -> list[InputPartition]:
        """Contiguous blocks of partitions, one for each task."""
        every = np.arange(self._planned.definition.partitions, dtype=np.int64)
        freeze_garbage()
        return [MapPartition(block) for block in np.array_split(every, min(self._tasks, len(every)))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Runs in a task: the version that its execution has pinned, else the one that was found in planning."""
        with pinned_store(self._options) as store:
            snapshot = self._planned_snapshot() if store is None else self._newest_snapshot(store)
            scan = MapScan(snapshot.definition, self._columns, None, None, Traits())
            operator = build_operator(scan)
            operator.setup(ExecContext(Parameters(), {snapshot.definition.id: snapshot}, partition.partitions))
            schema = _arrow_schema(self._columns)
            while True:
                result = operator.advance()
                assert result is not IterationResult.WAIT, "a scan has nobody to wait for"
                if operator.current_batch.row_count:
                    yield conformed(operator.current_batch.arrow(), schema)
                if result is IterationResult.FETCHED_DONE:
                    break
        freeze_garbage()

    def _newest_snapshot(self, store: Store) -> MapSnapshot:
        definition = find_map(store, self._options["map"])
        columns = read_columns(definition, self._options.get("columns"))
        if columns != self._columns or definition.partitions != self._planned.definition.partitions:
            raise state_error(f"the map {definition.name} was made anew with other columns: make the data frame anew")
        (snapshot,) = store.snapshot([definition])
        return snapshot

    def _planned_snapshot(self) -> MapSnapshot:
        try:
            return open_snapshot(self._planned)
        except FileNotFoundError as error:
            raise StorageError(
                "the version that this data frame was planned for is gone: make the data frame anew, and run it within "
                f"{KEPT_SECONDS / 60:.0f} minutes, or by an action of Spark SQL, which reads the newest version",
                error.filename,
                sqlstate="40001",
            ) from error


class QueryReader(DataSourceReader):
    """Reads the result of a Remuda query, which runs in one task with all that the engine knows."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with _open_grid(self._options, running_execution()) as grid:
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


def _open_grid(options: Mapping[str, str], execution: str | None = None) -> Any:
    """The grid stands above this package, so it is found by name, as everything is that runs in a worker."""
    store = open_reader(options, execution)
    try:
        return import_module("remuda.grid.grid").Grid(store)
    except BaseException:
        store.close()
        raise


def _arrow_schema(columns: Iterable[Any]) -> pa.Schema:
    """As Spark compares it with what it was promised: nullability included."""
    return pa.schema([pa.field(column.name, column.type.arrow, column.nullable) for column in columns])


def default_tasks() -> int:
    return os.cpu_count() or 1


def task_count(options: Mapping[str, str], default: int) -> int:
    """Return the number of tasks that the option `tasks` asks for."""
    given = options.get("tasks", str(default))
    if not given.strip().isdecimal() or int(given) == 0:
        raise option_error(f"tasks must be a whole number of at least 1, not {given!r}")
    return int(given)
