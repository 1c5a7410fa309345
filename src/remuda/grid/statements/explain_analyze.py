"""EXPLAIN ANALYZE: runs the query to its end, throws its rows away, and shows what each operator did."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from remuda.errors import SqlError
from remuda.exec.metrics import Instrumentation, OperatorMetrics
from remuda.grid.parameters import arrange, to_stored_values
from remuda.grid.plan_cache import CachedPlan
from remuda.grid.rows import RowShape
from remuda.plan import physical
from remuda.plan.explain import explain
from remuda.plan.explain_json import explain_json
from remuda.plan.walk import inputs
from remuda.sql import Explain, ExplainFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.grid.queries import Queries
    from remuda.plan.fragments import Plan

MAXIMUM_TRIES = 5


def analyze_query(
    queries: Queries,
    text: str,
    statement: Explain,
    positional: tuple[Any, ...] = (),
    named: Mapping[str, Any] | None = None,
) -> str:
    """A statement that writes does write."""
    tries = 0
    while True:
        try:
            return _analyze_once(queries, text, statement, positional, named or {})
        except SqlError as error:
            tries += 1
            if not error.invalidates_plan or tries == MAXIMUM_TRIES:
                raise


def _analyze_once(
    queries: Queries, text: str, statement: Explain, positional: tuple[Any, ...], named: Mapping[str, Any]
) -> str:
    started = time.perf_counter()
    plan = queries.planner().plan(text, statement.query)
    given = arrange(plan.parameter_names, len(plan.parameters) - plan.reads_clock, positional, named)
    if plan.reads_clock:
        given = (*given, datetime.now(UTC))
    stored, errors = to_stored_values(plan.parameters, given)
    if errors:
        literals = {number: given[number] for number in errors}
        plan = queries.planner().plan(text, statement.query, literals)
    planned = time.perf_counter()
    measures = Instrumentation()
    entry = CachedPlan(plan, RowShape(plan.columns), None, queries.plans.epoch)
    entry.code = measures
    writing = nullcontext() if plan.modifies is None else queries.store.map(plan.modifies).writing()
    with writing:
        execution = queries.execute(entry, stored)
        while execution.next_batch() is not None:
            pass
    done = time.perf_counter()
    found = {id_: measures.of_node(node) for id_, node in _fragment_nodes(plan).items()}
    if statement.format is ExplainFormat.JSON:
        return explain_json(
            plan.tree,
            lambda node: _as_values(found.get(id(node))),
            planning_seconds=planned - started,
            execution_seconds=done - planned,
        )
    tree = explain(plan.tree, lambda node: _as_text(node, found.get(id(node))))
    return f"{tree}\nplanned in {_milliseconds(planned - started)}, run in {_milliseconds(done - planned)}"


def _fragment_nodes(plan: Plan) -> dict[int, Any]:
    """For each node of the tree, by its identity, the node of a fragment that ran for it.

    An exchange is what its receiving end got.
    """
    found: dict[int, Any] = {}

    def align(node: Any, own: Any) -> None:
        found[id(node)] = own
        if isinstance(own, physical.Receive):
            own = plan.fragments[own.edge].node
        for child, lower in zip(inputs(node), inputs(own), strict=True):
            align(child, lower)

    align(plan.tree, plan.root.node)
    return found


def _as_text(node: Any, measure: OperatorMetrics | None) -> str:
    if measure is None:
        return ""
    parts = [f"rows={measure.rows}", f"batches={measure.batches}", f"time={_milliseconds(measure.seconds)}"]
    if isinstance(node, physical.ScanNode):
        parts.append(f"partitions={measure.partitions}")
        parts.append(
            f"index entries={measure.index_entries}" if measure.index_entries else f"rows read={measure.rows_read}"
        )
    if measure.places:
        parts.append(f"members={measure.places}")
    decided = f"   decided: {'; '.join(measure.decisions)}" if measure.decisions else ""
    return f"actual: {' '.join(parts)}{decided}"


def _as_values(measure: OperatorMetrics | None) -> dict[str, Any] | None:
    if measure is None:
        return None
    return {
        "rows": measure.rows,
        "batches": measure.batches,
        "seconds": measure.seconds,
        "members": measure.places,
        "partitions": measure.partitions,
        "index_entries": measure.index_entries,
        "rows_read": measure.rows_read,
        "decisions": measure.decisions,
    }


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
