"""EXPLAIN: the plan, the normalised logical tree, or the memo of a query, as text or as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.optimizer.optimize import FAST_PATH
from remuda.plan.explain import explain, explain_logical
from remuda.plan.explain_json import explain_json, explain_logical_json
from remuda.plan.fragments import ResultColumn
from remuda.plan.walk import inputs
from remuda.sql import Explain, ExplainFormat, ExplainMode, bind
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from remuda.grid.planner import Planner
    from remuda.optimizer import Optimized


def explain_query(planner: Planner, text: str, statement: Explain) -> str:
    """Without running the query; see `analyze` for EXPLAIN ANALYZE."""
    bound = bind(statement.query, planner.catalog, planner.search_path)
    if statement.mode is ExplainMode.MEMO:
        # Whoever wants to see the memo of a lookup wants the search that it is spared.
        planner = replace(planner, disabled_rules=planner.disabled_rules | {FAST_PATH})
    optimized = planner.optimize(bound)
    as_json = statement.format is ExplainFormat.JSON
    match statement.mode:
        case ExplainMode.PLAN:
            tree = planner.finish(text, bound, optimized).tree
            return explain_json(tree) if as_json else explain(tree)
        case ExplainMode.LOGICAL:
            normalized = optimized.normalized
            return explain_logical_json(normalized) if as_json else explain_logical(normalized)
        case ExplainMode.MEMO:
            return explain_memo_json(optimized) if as_json else explain_memo(optimized)


def explain_memo(optimized: Optimized) -> str:
    """Each group with its expressions and the winner for every set of traits that was asked of it."""
    lines: list[str] = []
    for group in _groups(optimized):
        lines.append(f"{group['group']}: {', '.join(group['expressions'])}   rows≈{group['rows']:.6g}")
        for winner in group["winners"]:
            best = "none" if winner["operator"] is None else f"{winner['operator']} cost≈{winner['cost']:.6g}"
            lines.append(f"    {winner['traits']} → {best}")
    return "\n".join(lines)


def explain_memo_json(optimized: Optimized) -> str:
    return json.dumps({"groups": _groups(optimized)}, indent=2, ensure_ascii=False)


def _groups(optimized: Optimized) -> list[dict[str, Any]]:
    """The top group first. With several members a place by columns names them: that is what was asked for."""
    return [
        {
            "group": f"G{group.number}",
            "expressions": [_expression(expression) for expression in group.expressions],
            "rows": group.rows,
            "winners": [
                {
                    "traits": _traits(traits, {column.id: column.name for column in group.columns}),
                    "operator": None if winner is None else type(winner).__name__,
                    "cost": None if winner is None else winner.estimate.cost,
                }
                for traits, winner in group.winners.items()
            ],
        }
        for group in reversed(optimized.memo.groups)
    ]


def _traits(traits: Any, names: dict[int, str]) -> str:
    by = ", ".join(names.get(id_, "?") for id_ in traits.distribution.columns)
    return f"{traits}{f' by {by}' if by else ''}{' ordered' if traits.collation else ''}"


def _expression(expression: object) -> str:
    below = ", ".join(f"G{reference.group}" for reference in inputs(expression))
    name = type(expression).__name__
    return f"{name}({below})" if below else name


def explain_result(text: str, statement: Explain) -> Result:
    """Text has a row for each line, JSON is one value."""
    shape = RowShape((ResultColumn("plan", VARCHAR, nullable=False),))
    lines = [text] if statement.format is ExplainFormat.JSON else text.split("\n")
    return Result(shape, [(line,) for line in lines])
