"""Operator metrics: what each operator of a running plan really did, for EXPLAIN ANALYZE.

A query that is analysed runs with `Instrumentation` in the place of its `ExpressionCache`: every operator is wrapped,
and so are its forks on other threads. It runs as it always does; all other queries pay nothing for it. What ran in
another process is `taken` there and `added` here.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from threading import Lock, local
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.exec.context import OperatorActivity
from remuda.exec.expression_cache import ExpressionCache
from remuda.exec.operator import Exec, ForkableExec, IterationResult, forkable
from remuda.plan.physical import ScanNode
from remuda.plan.walk import inputs, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext


@dataclass(slots=True)
class OperatorMetrics:
    """`seconds` are those of all threads together, without waits; they include the inputs of the operator, as far as
    they run in the same fragment.

    `setups` is how many times it was set up: on how many members, as a rule; 0 where only workers ran it. `members`
    are those of this process by name. Partitions, entries and `rows_read` are a scan's. `decisions` are texts: what the
    operator decided by exact counts.
    """

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    setups: int = 0
    members: tuple[str, ...] = ()
    partitions: int = 0
    index_entries: int = 0
    rows_read: int = 0
    decisions: list[str] = field(default_factory=list)


def _decisions(activities: Iterable[OperatorActivity]) -> list[str]:
    together = OperatorActivity()
    for each in activities:
        for text, counts in each.decisions.items():
            together.decide(text, *counts)
    return [text.format(*counts) for text, counts in together.decisions.items()]


@dataclass(slots=True)
class _Record:
    """What is known of a node: `own_seconds` without its inputs; an activity for each time that it was set up."""

    node: Any
    rows: int = 0
    batches: int = 0
    own_seconds: float = 0.0
    setups: int = 0
    members: list[str] = field(default_factory=list)
    activities: list[OperatorActivity] = field(default_factory=list)


class Instrumentation(ExpressionCache):
    """A record for each node, which the operators that were built for it share, on whichever threads they run."""

    __slots__ = ("_lock", "_records", "_tasks", "_thread")

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[int, _Record] = {}
        self._tasks: dict[int, list[float]] = {}
        """By the node at the root of a fragment, for each task of another process: the seconds of all its operators."""
        self._lock = Lock()
        self._thread = local()
        """In each thread: the seconds of operators that were advanced by the one that is being advanced there."""

    def built(self, node: Any, operator: Exec) -> Exec:
        with self._lock:
            record = self._records.setdefault(id(node), _Record(node))
        return InstrumentedExec(operator, self, record)

    def of_node(self, node: Any) -> OperatorMetrics | None:
        """Return what was measured for a node of a fragment; None where it did not run here."""
        record = self._records.get(id(node))
        if record is None or not (record.setups or record.batches):
            return None
        return OperatorMetrics(
            record.rows,
            record.batches,
            self._seconds(node),
            record.setups,
            tuple(sorted(set(record.members))),
            # A replicated map has the same partitions on every member.
            (max if _is_replicated(node) else sum)(
                each.partitions for each in record.activities or [OperatorActivity()]
            ),
            sum(each.index_entries for each in record.activities),
            sum(each.rows_read for each in record.activities),
            _decisions(record.activities),
        )

    def taken(self, root: Any) -> list[Any]:
        """Return what was measured for a tree of nodes, parents first, as values that pickle: for `add` elsewhere.

        A node that another operator takes the place of has no operator of its own, and nothing is known of it.
        """
        return [replace(self._records.get(id(node), _Record(None)), node=None) for node in walk(root)]

    def add(self, root: Any, taken: list[Any]) -> None:
        """Add what was measured in another process for a copy of this tree."""
        with self._lock:
            self._tasks.setdefault(id(root), []).append(sum(each.own_seconds for each in taken))
            for node, other in zip(walk(root), taken, strict=True):
                record = self._records.setdefault(id(node), _Record(node))
                record.rows += other.rows
                record.batches += other.batches
                record.own_seconds += other.own_seconds
                record.setups += other.setups
                record.activities.extend(other.activities)

    def task_seconds(self, send: Any) -> list[float]:
        """Return the seconds that the operators of a fragment took in each task that ran it."""
        return self._tasks.get(id(send.input), [])

    def _seconds(self, node: Any) -> float:
        record = self._records.get(id(node))
        return (0.0 if record is None else record.own_seconds) + sum(self._seconds(each) for each in inputs(node))

    def timed(self, record: _Record, step: Callable[[], Any]) -> Any:
        thread = self._thread
        inside, thread.seconds = getattr(thread, "seconds", 0.0), 0.0
        started = time.perf_counter()
        try:
            return step()
        finally:
            seconds = time.perf_counter() - started
            with self._lock:
                record.own_seconds += seconds - thread.seconds
            thread.seconds = inside + seconds

    def count(self, record: _Record, rows: int) -> None:
        with self._lock:
            record.rows += rows
            record.batches += rows > 0

    def set_up(self, record: _Record, activity: OperatorActivity, member: str | None) -> None:
        with self._lock:
            record.setups += 1
            record.activities.append(activity)
            if member is not None:
                record.members.append(member)


def _is_replicated(node: Any) -> bool:
    return isinstance(node, ScanNode) and node.map.replicated


class InstrumentedExec(ForkableExec):
    """Passes everything on to the operator, and counts."""

    def __init__(self, operator: Exec, measures: Instrumentation, record: _Record) -> None:
        self._operator = operator
        self._measures = measures
        self._record = record

    @property
    def current_batch(self) -> RowBatch:  # type: ignore[override]
        return self._operator.current_batch

    def setup(self, context: ExecContext) -> None:
        activity = OperatorActivity()
        self._measures.set_up(self._record, activity, context.member)
        own = replace(context, activity=activity)
        self._measures.timed(self._record, lambda: self._operator.setup(own))

    def advance(self) -> IterationResult:
        result: IterationResult = self._measures.timed(self._record, self._operator.advance)
        if result is not IterationResult.WAIT:
            self._measures.count(self._record, self._operator.current_batch.row_count)
        return result

    @property
    def scan_rows(self) -> int:
        return forkable(self._operator).scan_rows

    def prepare(self) -> bool:
        prepared: bool = self._measures.timed(self._record, forkable(self._operator).prepare)
        return prepared

    def fork(self, rows: int | None = None) -> Exec:
        return InstrumentedExec(forkable(self._operator).fork(rows), self._measures, self._record)
