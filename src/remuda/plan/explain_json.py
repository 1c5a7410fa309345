"""EXPLAIN (FORMAT JSON): the same as the text, for programs. docs/queries.md has the shape, which only grows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from remuda.plan import physical
from remuda.plan.explain import edge_of
from remuda.plan.operator_attributes import describe, describe_logical, head_of, partitioning_columns
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.plan import logical
    from remuda.plan.explain import Decide
    from remuda.plan.fragments import Fragment, Plan

    Measured = Callable[[Any], dict[str, Any] | None]


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def physical_json(node: Any, decide: Decide, measured: Measured) -> dict[str, Any]:
    """Return a physical tree as values; `measured` adds, for EXPLAIN ANALYZE, what an operator really did."""
    description = describe(node)
    found: dict[str, Any] = {
        "operator": type(node).__name__,
        "description": head_of(node),
        "details": description.details,
        "attributes": {name: text for line in description.lines for name, text in line.items()},
        "distribution": str(node.traits.distribution),
        "partitioned_by": list(partitioning_columns(node)),
        "convention": node.traits.convention.value,
        "columns": [column.name for column in node.columns],
        "estimated_rows": node.estimate.rows,
        "estimated_cost": node.estimate.cost,
        **_runtime_decisions(node),
        **decide(node).values(),
    }
    actual = measured(node)
    if actual is not None:
        found["actual"] = actual
    return {**found, "inputs": [physical_json(child, decide, measured) for child in inputs(node)]}


def _runtime_decisions(node: Any) -> dict[str, Any]:
    """Describe what the operator decides when it runs, and by which counts."""
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
        case physical.MapScan(dynamic_lookup=lookup, dynamic_pruning=pruning) if lookup or pruning:
            if lookup is not None:
                way = None if lookup.index is None else lookup.index.name
                found["dynamic_lookup"] = {"filter": lookup.number, "columns": list(lookup.columns), "index": way}
            if pruning is not None:
                found["dynamic_pruning"] = {"filter": pruning.number, "columns": list(pruning.columns)}
        case physical.MapScan(zone_order=physical.ZoneOrder() as order):
            found["zone_order"] = {"bound": order.number, "rows_for_each": order.rows_for_each}
        case physical.IndexScan(candidates=candidates) if candidates:
            found["candidates"] = [{"index": each.index.name, "type": each.index.type.value} for each in candidates]
            if node.sort_rule is not None:
                found["sort_share"] = node.sort_rule.share
        case physical.TopN(bound=int() as bound):
            found["bound"] = bound
        case physical.LocalExchange():
            found["fork_rows"] = node.fork_rows
            if (rule := node.partial_rule) is not None:
                found["partial_aggregation"] = {"sample_rows": rule.sample_rows, "group_rows": rule.group_rows}
    if isinstance(node, physical.LookupJoin) and node.written:
        found["dynamic_pruning"] = {"columns": list(node.map.partitioned_by)}
    if (cutover := getattr(node, "row_cutover", None)) is not None:
        found["row_cutover"] = cutover
    return found


def fragments_json(
    plan: Plan, members: Callable[[Fragment], tuple[str, ...] | None], decide: Decide, measured: Measured
) -> dict[str, Any]:
    """Return the fragments, each with the members that run it, and the edges between them."""
    edges = [edge for fragment in plan.fragments if (edge := edge_of(plan, fragment)) is not None]
    return {
        "fragments": [
            {
                "fragment": fragment.number,
                "convention": fragment.convention.value,
                "members": None if (names := members(fragment)) is None else list(names),
                "receives": sorted(fragment.received),
                "plan": physical_json(fragment.node, decide, measured),
            }
            for fragment in plan.fragments
        ],
        "edges": [
            {
                "edge": edge.sender,
                "from": edge.sender,
                "to": edge.receiver,
                "route": edge.route.value,
                "keys": [column.name for column in edge.keys],
            }
            for edge in edges
        ],
    }


def logical_json(node: logical.LogicalNode) -> dict[str, Any]:
    return {
        "operator": type(node).__name__,
        "description": describe_logical(node),
        "columns": [column.name for column in node.columns],
        "inputs": [logical_json(child) for child in inputs(node)],
    }
