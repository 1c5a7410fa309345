"""EXPLAIN: the plan, the normalised logical tree, or the memo of a query as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.plan.explain import explain, explain_logical
from remuda.plan.fragments import ResultColumn
from remuda.sql import Explain, ExplainMode, bind
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from remuda.grid.planner import Planner
    from remuda.optimizer import Optimized


def explain_query(planner: Planner, text: str, statement: Explain) -> str:
    bound = bind(statement.query, planner.catalog, planner.search_path)
    optimized = planner.optimize(bound)
    match statement.mode:
        case ExplainMode.PLAN:
            return explain(planner.finish(text, bound, optimized).tree)
        case ExplainMode.LOGICAL:
            return explain_logical(optimized.normalized)
        case ExplainMode.MEMO:
            return explain_memo(optimized)


def explain_memo(optimized: Optimized) -> str:
    """Each group with its expressions and the winner for every set of traits that was asked of it."""
    lines: list[str] = []
    for group in reversed(optimized.memo.groups):
        expressions = ", ".join(_expression(expression) for expression in group.expressions)
        lines.append(f"G{group.number}: {expressions}   rows≈{group.rows:.6g}")
        for traits, winner in group.winners.items():
            best = "none" if winner is None else f"{type(winner).__name__} cost≈{winner.estimate.cost:.6g}"
            order = " ordered" if traits.collation else ""
            lines.append(f"    {traits}{order} → {best}")
    return "\n".join(lines)


def _expression(expression: object) -> str:
    below = getattr(expression, "input", None)
    name = type(expression).__name__
    return name if below is None else f"{name}(G{below.group})"


def lines_result(text: str) -> Result:
    shape = RowShape((ResultColumn("plan", VARCHAR, nullable=False),))
    return Result(shape, [(line,) for line in text.split("\n")])
