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

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from remuda.errors import option_error, state_error
from remuda.exec.batch import conformed
from remuda.spark.driver.arrow_types import spark_type
from remuda.spark.driver.tasks import freeze_garbage
from remuda.spark.source.partition_scan import PlannedScan, arrow_schema, scanned_columns
from remuda.spark.source.pinned_read import from_anywhere, open_reader, running_execution
from remuda.spark.source.planned_map import PlannedMap, made_anew
from remuda.spark.source.shared_query import SharedQuery, plan_of
from remuda.storage.load.new_map import column_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np
    from pyspark.sql.types import StructType

    from remuda.catalog import MapDefinition
    from remuda.expr import Column
    from remuda.plan.result_column import ResultColumn


def read_columns(definition: MapDefinition, names: str | None) -> tuple[Column, ...]:
    """Return the visible columns, or those that the option `columns` names."""
    return scanned_columns(definition, None if names is None else column_names("columns", names))


class MapPartition(InputPartition):
    """The share of one task."""

    def __init__(self, partitions: np.ndarray) -> None:
        super().__init__(None)
        self.partitions = partitions


class MapReader(DataSourceReader):
    """Reads a map. It pickles, and travels to the tasks."""

    def __init__(self, options: Mapping[str, str], tasks: int) -> None:
        self._tasks = task_count(options, tasks)
        planned = PlannedMap(options)
        self._scan = PlannedScan(planned, read_columns(planned.definition, options.get("columns")))

    def refuse_other(self, schema: StructType) -> None:
        """Raise if the map is no longer the one whose columns the frame has: the first query plans the read."""
        if not _same_columns(schema, self._scan.columns):
            raise made_anew(self._scan.planned.definition)

    def partitions(self) -> list[InputPartition]:
        freeze_garbage()
        return [MapPartition(share) for share in self._scan.shares(self._tasks)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the share of a task."""
        yield from self._scan.read(partition.partitions)


class QueryReader(DataSourceReader):
    """Reads the result of a Remuda query: in tasks that share it, or in one with all that the engine knows."""

    def __init__(self, options: Mapping[str, str], tasks: int) -> None:
        self._tasks = task_count(options, tasks)
        self._options = from_anywhere(options)
        with _open_grid(options) as grid:
            plan = plan_of(grid, options["query"])
            self._columns = None if plan is None else plan.columns
            self._shared = SharedQuery.of(plan, options)

    def refuse_other(self, schema: StructType) -> None:
        """Raise if the query has other columns than the frame, which was made before."""
        if self._columns is not None and not _same_columns(schema, self._columns):
            raise _other_columns()

    def partitions(self) -> list[InputPartition]:
        freeze_garbage()
        if self._shared is None:
            return [InputPartition(None)]
        return [MapPartition(share) for share in self._shared.shares(self._tasks)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if self._shared is not None:
            yield from self._shared.read(partition.partitions)
            return
        with _open_grid(self._options, running_execution()) as grid:
            result = grid.sql(self._options["query"])
            schema = arrow_schema(result.columns)
            expected = schema if self._columns is None else arrow_schema(self._columns)
            if (schema.names, schema.types) != (expected.names, expected.types):
                raise _other_columns()
            for batch in pa.RecordBatchReader.from_stream(result):
                yield conformed(batch, schema)
        freeze_garbage()


def _same_columns(schema: StructType, columns: Iterable[Column | ResultColumn]) -> bool:
    return [(each.name, each.dataType) for each in schema] == [(each.name, spark_type(each)) for each in columns]


def _other_columns() -> Exception:
    return state_error("the query has other columns than the data frame, which was made before: make it anew")


def query_columns(options: Mapping[str, str]) -> list[Any]:
    """Return names and types of what a query delivers, from its plan: groups and sums need not be made for them."""
    with _open_grid(options) as grid:
        plan = plan_of(grid, options["query"])
        if plan is not None:
            return list(plan.columns)
        result = grid.sql(options["query"])
        columns = list(result.columns)
        result.close()
        return columns


def _open_grid(options: Mapping[str, str], execution: str | None = None) -> Any:
    """Open a grid by name: it stands above this package, and everything that runs in a worker is found by name."""
    store = open_reader(options, execution)
    try:
        return import_module("remuda.grid.grid").Grid(store)
    except BaseException:
        store.close()
        raise


def default_tasks() -> int:
    return os.cpu_count() or 1


def task_count(options: Mapping[str, str], default: int) -> int:
    """Return the number of tasks that the option `tasks` asks for."""
    given = options.get("tasks", str(default))
    if not given.strip().isdecimal() or int(given) == 0:
        raise option_error(f"tasks must be a whole number of at least 1, not {given!r}")
    return int(given)
