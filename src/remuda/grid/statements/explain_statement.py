"""EXPLAIN: the plan, the normalised logical tree, or the memo of a query, as text or as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.settings import Engine
from remuda.optimizer.explain_memo import explain_memo, explain_memo_json
from remuda.optimizer.optimize import FAST_PATH
from remuda.plan import physical
from remuda.plan.explain import explain, explain_logical
from remuda.plan.explain_json import explain_json, explain_logical_json
from remuda.plan.fragments import ResultColumn
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.sql import Explain, ExplainFormat, ExplainMode, bind
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from remuda.grid.planner import Planner
    from remuda.optimizer import Optimized
    from remuda.sql import BoundQuery


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
            choice = explain_choice(planner, bound, optimized)
            if as_json:
                return _with_choice(explain_json(tree), choice)
            return explain(tree) if choice is None else f"{explain(tree)}\n{choice}"
        case ExplainMode.LOGICAL:
            normalized = optimized.normalized
            return explain_logical_json(normalized) if as_json else explain_logical(normalized)
        case ExplainMode.MEMO:
            return explain_memo_json(optimized.memo) if as_json else explain_memo(optimized.memo)


def explain_choice(planner: Planner, bound: BoundQuery, optimized: Optimized) -> str | None:
    """Which backend runs the query and why; None for a grid that has but one."""
    if not planner.has_spark:
        return None
    name = _engine(optimized)
    if planner.settings.engine is not Engine.AUTO:
        return f"engine: {name}   (SET engine = {planner.settings.engine.value})"
    costs = {each: planner.optimize(bound, (each,)).tree.estimate.cost for each in (Convention.LOCAL, Convention.SPARK)}
    listed = ", ".join(f"{each.value.casefold()} cost≈{round(cost)}" for each, cost in costs.items())
    return f"engine: {name}   ({listed})"


def _engine(optimized: Optimized) -> str:
    """`spark, by shuffle` where rows meet in tasks; else what tasks make is finished in this process."""
    on_spark = [node for node in walk(optimized.tree) if node.traits.convention is Convention.SPARK]
    if not on_spark:
        return Convention.LOCAL.value.casefold()
    shuffled = any(isinstance(node, physical.HashExchange | physical.BroadcastExchange) for node in on_spark)
    return f"{Convention.SPARK.value.casefold()}{', by shuffle' if shuffled else ''}"


def _with_choice(document: str, choice: str | None) -> str:
    if choice is None:
        return document
    return json.dumps({**json.loads(document), "engine": choice.removeprefix("engine: ")}, indent=2, ensure_ascii=False)


def explain_result(text: str, statement: Explain) -> Result:
    """Text has a row for each line, JSON is one value."""
    shape = RowShape((ResultColumn("plan", VARCHAR, nullable=False),))
    lines = [text] if statement.format is ExplainFormat.JSON else text.split("\n")
    return Result(shape, [(line,) for line in lines])
