"""What each operator of a running plan really did, for EXPLAIN ANALYZE.

A query that is analysed runs with `Measures` in the place of its `Code`: every operator is wrapped. All others pay
nothing for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from remuda.exec.code import Code
from remuda.exec.operator import Exec, IterationResult
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext


@dataclass(slots=True)
class Measure:
    """`seconds` include the inputs of the operator, as far as they run in the same fragment.

    `places` is how many times it was set up: on how many members, as a rule. The last three are a scan's.
    """

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    places: int = 0
    partitions: int = 0
    index_entries: int = 0
    rows_read: int = 0

    def add(self, other: Measure) -> None:
        self.rows += other.rows
        self.batches += other.batches
        self.seconds += other.seconds
        self.places += other.places
        self.partitions += other.partitions
        self.index_entries += other.index_entries
        self.rows_read += other.rows_read


class Measures(Code):
    """Keeps the operators that were built for each node; each counts for itself, as they run in several threads."""

    __slots__ = ("_measured",)

    def __init__(self) -> None:
        super().__init__()
        self._measured: dict[int, tuple[Any, list[MeasuredExec]]] = {}

    def built(self, node: Any, operator: Exec) -> Exec:
        measured = MeasuredExec(operator, is_leaf=not inputs(node))
        self._measured.setdefault(id(node), (node, []))[1].append(measured)
        return measured

    def of_node(self, node: Any) -> Measure | None:
        """What was measured for a node of a fragment; None where it did not run here."""
        _, operators = self._measured.get(id(node), (node, []))
        ran = [operator.measure for operator in operators if operator.measure.places]
        if not ran:
            return None
        total = Measure()
        for each in ran:
            total.add(each)
        return total


class MeasuredExec(Exec):
    """Passes everything on to the operator, and counts."""

    def __init__(self, operator: Exec, *, is_leaf: bool) -> None:
        self.measure = Measure()
        self._operator = operator
        self._is_leaf = is_leaf

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    @property
    def current_batch(self) -> RowBatch:  # type: ignore[override]
        return self._operator.current_batch

    def expect_rows(self, count: int) -> None:
        self._operator.expect_rows(count)

    def setup(self, context: ExecContext) -> None:
        self._context = context
        self.measure.places += 1
        self._timed(lambda: self._operator.setup(context))

    def advance(self) -> IterationResult:
        result: IterationResult = self._timed(self._operator.advance)
        if result is not IterationResult.WAIT:
            rows = self._operator.current_batch.row_count
            self.measure.rows += rows
            self.measure.batches += rows > 0
        return result

    def _timed(self, step: Any) -> Any:
        measure, activity = self.measure, self._context.activity
        before = (activity.partitions, activity.index_entries, activity.rows_read)
        started = time.perf_counter()
        try:
            return step()
        finally:
            measure.seconds += time.perf_counter() - started
            if self._is_leaf:
                measure.partitions += activity.partitions - before[0]
                measure.index_entries += activity.index_entries - before[1]
                measure.rows_read += activity.rows_read - before[2]
