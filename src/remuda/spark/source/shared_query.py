"""Queries of the option `query` whose rows are those of the partitions, one after the other: tasks share them.

A filter and expressions over a full scan need to see one row at a time, so each task runs the plan over its partitions.
Whatever brings rows together, reads by key or index, or has an order or a limit runs in one task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import SqlError
from remuda.plan import physical
from remuda.plan.walk import change_inputs, walk
from remuda.spark.source.partition_scan import arrow_schema, run_share, shares_of
from remuda.spark.source.planned_map import PlannedMap, made_anew

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    import pyarrow as pa

    from remuda.plan.fragments import Plan
    from remuda.plan.result_column import ResultColumn

_EXCHANGES = physical.LocalExchange | physical.RootExchange
_ROW_BY_ROW = physical.Root | physical.Filter | physical.Project
LEAST_ROWS = 200_000
"""Fewer rows are scanned in a few milliseconds, which is what a task costs."""


def plan_of(grid: Any, text: str) -> Plan | None:
    """Return the plan of a query; None for another statement, and for one with parameters, which has no values."""
    from remuda import sql

    try:
        query = sql.parse(text)
        if not isinstance(query, sql.Query) or len(query.parameters):
            return None
        plan: Plan = grid.default_session.plan(text, query).plan
    except SqlError as error:
        error.with_text(text)
        raise
    return None if plan.modifies is not None else plan


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """What the tasks run, as a value that pickles."""

    planned: PlannedMap
    scan: physical.MapScan
    root: physical.Root
    columns: tuple[ResultColumn, ...]

    @classmethod
    def of(cls, plan: Plan | None, options: Mapping[str, str]) -> SharedQuery | None:
        """Return what tasks can share of a plan, None where one task has to run it."""
        if plan is None or plan.parameters or plan.views:
            return None  # the clock is a parameter, and a query has one moment; a view may be replaced meanwhile
        scans = [node for node in walk(plan.tree) if isinstance(node, physical.MapScan)]
        others = [node for node in walk(plan.tree) if not isinstance(node, physical.MapScan)]
        if len(scans) != 1 or not all(isinstance(node, _ROW_BY_ROW | _EXCHANGES) for node in others):
            return None
        (scan,) = scans
        if scan.zone_order is not None or scan.dynamic_pruning is not None or scan.dynamic_lookup is not None:
            return None
        planned = PlannedMap({**options, "map": f"{scan.map.schema}.{scan.map.name}"})
        if planned.rows < LEAST_ROWS and "tasks" not in options:
            return None
        return cls(planned, scan, _without_exchanges(plan.tree), plan.columns)

    def shares(self, tasks: int) -> list[np.ndarray]:
        return shares_of(self.scan.map, tasks)

    def read(self, partitions: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Run the plan over some partitions. Runs in a task."""
        with self.planned.snapshot() as snapshot:
            found, expected = snapshot.definition, self.scan.map
            if (found.id, found.columns, found.partitions) != (expected.id, expected.columns, expected.partitions):
                raise made_anew(found)
            yield from run_share(self.root, snapshot, partitions, arrow_schema(self.columns))


def _without_exchanges(node: Any) -> Any:
    return _without_exchanges(node.input) if isinstance(node, _EXCHANGES) else change_inputs(node, _without_exchanges)
