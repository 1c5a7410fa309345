"""EXPLAIN (FORMAT JSON): the same as the text, for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from remuda.plan import physical
from remuda.plan.explain import describe, describe_logical
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.plan import logical


def explain_json(
    node: physical.PhysicalNode, measured: Callable[[Any], dict[str, Any] | None] | None = None, **more: Any
) -> str:
    """`measured` adds, for EXPLAIN ANALYZE, what an operator really did; `more` stands beside the plan."""
    return _text({"plan": _physical(node, measured), **more})


def explain_logical_json(node: logical.LogicalNode) -> str:
    return _text({"plan": _logical(node)})


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _physical(node: Any, measured: Callable[[Any], dict[str, Any] | None] | None) -> dict[str, Any]:
    head, details = describe(node)
    found: dict[str, Any] = {
        "operator": type(node).__name__,
        "description": head,
        "details": details,
        "distribution": str(node.traits.distribution),
        "convention": node.traits.convention.value,
        "columns": [column.name for column in node.columns],
        "estimated_rows": node.estimate.rows,
        "estimated_cost": node.estimate.cost,
    }
    found.update(_runtime_decisions(node))
    actual = None if measured is None else measured(node)
    if actual is not None:
        found["actual"] = actual
    return {**found, "inputs": [_physical(child, measured) for child in inputs(node)]}


def _runtime_decisions(node: Any) -> dict[str, Any]:
    """What the operator decides when it runs, and by which counts."""
    found: dict[str, Any] = {}
    match node:
        case physical.HashJoin():
            found["build_side"] = node.build_side.value
            if (made := node.runtime_keys) is not None:
                keys = [getattr(key, made.side.value).name for key in made.keys]
                found["runtime_filter"] = {
                    "number": made.number,
                    "side": made.side.value,
                    "keys": keys,
                    "most_rows": made.most_rows,
                }
        case physical.RuntimeFilter():
            found["runtime_filter"] = {"number": node.number, "keys": [column.name for column in node.keys]}
        case physical.MapScan(zone_order=physical.ZoneOrder() as order):
            found["zone_order"] = {"bound": order.number, "rows_for_each": order.rows_for_each}
        case physical.TopN(bound=int() as bound):
            found["bound"] = bound
        case physical.LocalExchange():
            found["fork_rows"] = node.fork_rows
            if (rule := node.partial_rule) is not None:
                found["partial_aggregation"] = {"sample_rows": rule.sample_rows, "group_rows": rule.group_rows}
    if (cutover := getattr(node, "row_cutover", None)) is not None:
        found["row_cutover"] = cutover
    return found


def _logical(node: Any) -> dict[str, Any]:
    return {
        "operator": type(node).__name__,
        "description": describe_logical(node),
        "columns": [column.name for column in node.columns],
        "inputs": [_logical(child) for child in inputs(node)],
    }
