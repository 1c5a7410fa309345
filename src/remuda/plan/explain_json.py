"""EXPLAIN (FORMAT JSON): the same as the text, for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from remuda.plan.explain import describe, describe_logical
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.plan import logical, physical


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
    actual = None if measured is None else measured(node)
    if actual is not None:
        found["actual"] = actual
    return {**found, "inputs": [_physical(child, measured) for child in inputs(node)]}


def _logical(node: Any) -> dict[str, Any]:
    return {
        "operator": type(node).__name__,
        "description": describe_logical(node),
        "columns": [column.name for column in node.columns],
        "inputs": [_logical(child) for child in inputs(node)],
    }
