"""EXPLAIN ANALYZE: runs the query to its end, throws its rows away, and says what each operator did."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.dataclass import dataclass
from remuda.exec.metrics import Instrumentation, OperatorMetrics
from remuda.grid.plan_cache import CachedPlan
from remuda.grid.rows import RowShape
from remuda.grid.statement_writer import StatementWriter
from remuda.grid.statements.explain_decisions import (
    hides_key,
    matching_nodes,
    modified_partitioning,
)
from remuda.plan import physical
from remuda.plan.traits import Convention
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.grid.query_run import Call
    from remuda.grid.statements.explain_decisions import Decisions
    from remuda.plan.fragments import Fragment, Plan
    from remuda.storage import Store


@dataclass(frozen=True, slots=True)
class Job:
    """What Spark ran for a query, and how long the query took beside the work of its operators.

    Of tasks that run beside each other the longest counts: the rest is the start of jobs, and rows on their way.
    """

    tasks: int
    stages: int
    seconds_outside_operators: float

    def __str__(self) -> str:
        outside = milliseconds(self.seconds_outside_operators)
        return f"tasks={self.tasks} stages={self.stages} outside operators={outside}"

    def values(self) -> dict[str, Any]:
        outside = self.seconds_outside_operators
        return {"tasks": self.tasks, "stages": self.stages, "seconds_outside_operators": outside}


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a run did: `metrics` by the identity of nodes, be they the tree's or a fragment's."""

    seconds: float = 0.0
    metrics: dict[int, OperatorMetrics] = field(default_factory=dict)
    job: Job | None = None

    def figures(self, node: Any) -> list[str]:
        """Return the figures of a node in pieces that stay in one line: how much and how long, where, by whom."""
        metrics = self.metrics.get(id(node))
        if metrics is None:
            return []
        where: list[str] = []
        if isinstance(node, physical.ScanNode):
            entries, rows = metrics.index_entries, metrics.rows_read
            where.append(f"partitions={metrics.partitions}")
            where.append(f"index entries={entries}" if entries else f"rows read={rows}")
        elif isinstance(node, physical.Modify) and metrics.partitions:
            where.append(f"partitions={metrics.partitions}")
        if metrics.setups:
            where.append(f"members={metrics.setups}")
        names = [f"({', '.join(metrics.members)})"] if metrics.members else []
        decided = [f"  decided: {'; '.join(metrics.decisions)}"] if metrics.decisions else []
        measured = f"actual: rows={metrics.rows} batches={metrics.batches} time={milliseconds(metrics.seconds)}"
        return [measured, *([" ".join(where)] if where else []), *names, *decided]

    def values(self, node: Any) -> dict[str, Any] | None:
        metrics = self.metrics.get(id(node))
        if metrics is None:
            return None
        return {
            "rows": metrics.rows,
            "batches": metrics.batches,
            "seconds": metrics.seconds,
            "members": metrics.setups,
            "member_names": list(metrics.members),
            "partitions": metrics.partitions,
            "index_entries": metrics.index_entries,
            "rows_read": metrics.rows_read,
            "decisions": metrics.decisions,
        }


NOT_RUN = Analysis()


def analyze(call: Call, plan: Plan, values: tuple[Any, ...], decisions: Decisions) -> Analysis:
    """Run a plan with every operator measured. A statement that writes does write."""
    measures = Instrumentation()
    entry = CachedPlan(plan, RowShape(plan.columns), None, call.session.engine.plans.epoch)
    entry.code = measures
    store = call.session.store
    writer = None
    started = time.perf_counter()
    with ExitStack() as writing:
        if plan.modifies is not None:
            writing.enter_context(store.map(plan.modifies).writing())
            writer = writing.enter_context(_WatchedWriter(store, plan.modification))
        execution = call.session.engine.start(
            entry,
            values,
            call.token,
            call.session.settings.memory_limit,
            writer,
            spill_folder=call.session.settings.spill_folder,
        )
        while execution.next_batch() is not None:
            pass
    seconds = time.perf_counter() - started
    metrics: dict[int, OperatorMetrics] = {}
    for node, own in matching_nodes(plan):
        found = measures.of_node(own)
        if found is None:
            continue
        if isinstance(node, physical.Modify) and writer is not None and writer.partitions:
            found = replace(found, partitions=len(writer.partitions))
            if node.commits:
                owners = decisions.owners(node.map, writer.partitions)
                found = replace(found, members=owners, setups=len(owners))
        metrics[id(node)] = metrics[id(own)] = found
    return Analysis(seconds, metrics, _job(plan, measures, seconds))


class _WatchedWriter(StatementWriter):
    """Notes the partitions that rows lie in; none where a map is everywhere, or makes its keys by itself."""

    def __init__(self, store: Store, node: physical.Modify) -> None:
        super().__init__(store, node)
        self.partitions: set[int] = set()
        self._watches = not (node.map.replicated or hides_key(node.map))
        self._ordinals = modified_partitioning(node)

    def count(self, batch: RowBatch) -> None:
        super().count(batch)
        definition = self.node.map
        if self._watches and len(self.partitions) < definition.partitions:
            columns = [batch.arrow().column(ordinal) for ordinal in self._ordinals]
            hashes = hash_columns(columns, [definition.column(name).type for name in definition.partitioned_by])
            self.partitions.update(np.unique(hashes % definition.partitions).tolist())


def _job(plan: Plan, measures: Instrumentation, seconds: float) -> Job | None:
    """Sum up what ran in tasks; None where nothing did. A fragment's stage is told by the edges up to the root."""
    levels: list[list[Fragment]] = []
    above = [plan.root]
    while above := [plan.fragments[edge] for fragment in above for edge in fragment.received]:
        on_spark = [fragment for fragment in above if fragment.convention is Convention.SPARK]
        if on_spark:
            levels.append(on_spark)
    if not levels:
        return None
    taken = [[measures.task_seconds(fragment.node) for fragment in level] for level in levels]
    tasks = sum(max(map(len, level)) for level in taken)
    root = measures.of_node(plan.root.node)
    busy = sum(max(each, default=0.0) for level in taken for each in level) + (0.0 if root is None else root.seconds)
    return Job(tasks, len(levels), max(0.0, seconds - busy))


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
