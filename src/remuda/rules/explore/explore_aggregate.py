"""Explore rules for Aggregate: partial results below a union, one DISTINCT in two steps.

The one for joins has a file of its own, `aggregate_below_join`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.plan import logical
from remuda.plan.aggregates import AGGREGATES
from remuda.rules.explore.split_aggregate import put_together, split_calls
from remuda.rules.tree_properties import is_unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.expr import Column
    from remuda.plan.logical import LogicalNode
    from remuda.rules.rule_context import ExploreContext


def aggregate_below_union(node: Any, context: ExploreContext) -> Iterator[LogicalNode]:
    """Aggregate(Union(a, b), keys, SUM(x)) → Aggregate(Union(part of a, part of b), keys, SUM(s)), where each part is
    Aggregate(a, keys, SUM(x) AS s).

    Each input can then be aggregated where it is, or counted by an index. Not where inputs have one row for each group
    already.
    """
    if not isinstance(node, logical.Aggregate) or not isinstance(node.input, logical.Union):
        return
    if not node.calls or not all(call.splits and call.second is None for call in node.calls):
        return
    union = node.input
    split = split_calls(node.calls, context.new_column)
    inputs: list[Any] = []
    sources: list[tuple[Column, ...]] = []
    grouped = True
    for part, names in zip(union.inputs, union.sources, strict=True):
        own = {column.id: source for column, source in zip(union.columns, names, strict=True)}
        keys = tuple(own[key.id] for key in node.keys)
        grouped = grouped and is_unique(part, (key.id for key in keys))
        calls = tuple(
            replace(
                call,
                column=context.new_column(call.column.name, call.column.type),
                argument=None if call.argument is None else own[call.argument.id],
            )
            for call in split.lower
        )
        inputs.append(logical.Aggregate(part, tuple(dict.fromkeys(keys)), calls))
        sources.append((*keys, *(call.column for call in calls)))
    if grouped:
        return
    columns = (*node.keys, *(call.column for call in split.lower))
    yield put_together(node, logical.Union(tuple(inputs), columns, tuple(sources)), split)


def aggregate_distinct_in_two_steps(node: Any, context: ExploreContext) -> Iterator[LogicalNode]:
    """Aggregate(x, keys, COUNT(DISTINCT a), SUM(b)) → Aggregate(Aggregate(x, keys and a, SUM(b) AS s), keys, COUNT(a),
    SUM(s)).

    So it is done in parts, which DISTINCT forbids: two parts may have the same value. Not with two arguments that are
    DISTINCT: COUNT(DISTINCT a), COUNT(DISTINCT b).
    """
    if not isinstance(node, logical.Aggregate):
        return
    distinct = [call for call in node.calls if call.distinct]
    others = [call for call in node.calls if not call.distinct]
    arguments = {call.argument for call in distinct}
    if len(arguments) != 1 or any(call.second is not None or call.order for call in distinct):
        return
    (argument,) = arguments
    if argument is None or not all(call.splits and call.second is None for call in others):
        return
    if not all(AGGREGATES[call.function].partials for call in distinct):
        return
    split = split_calls(others, context.new_column)
    lower = logical.Aggregate(node.input, tuple(dict.fromkeys((*node.keys, argument))), split.lower)
    yield put_together(node, lower, split, tuple(replace(call, distinct=False) for call in distinct))
