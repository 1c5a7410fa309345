"""How a plan came about: which rules fired. For golden plans and authors of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda import sql
from remuda.expr.cancellation import CancellationToken
from remuda.grid.query_run import Call
from remuda.grid.statements.explain_statement import explain_query

if TYPE_CHECKING:
    from remuda.grid import Grid


def explain_with_trace(grid: Grid, text: str, disabled: frozenset[str] = frozenset()) -> tuple[str, frozenset[str]]:
    """Return the plan with some rules disabled and every step checked, and the names of the rules that fired.

    For EXPLAIN LOGICAL it is the normalised tree instead of the plan.
    """
    statement = sql.parse(text)
    if isinstance(statement, sql.Query):
        statement = sql.Explain(statement)
    assert isinstance(statement, sql.Explain)
    planner = grid.default_session.planner(disabled_rules=disabled, checked=True)
    optimized = planner.optimize(sql.bind(statement.query, planner.catalog, planner.search_path))
    call = Call(grid.default_session, text, (), {}, CancellationToken())
    explained = explain_query(call, statement, disabled_rules=disabled, checked=True)
    return explained, frozenset(optimized.fired)
