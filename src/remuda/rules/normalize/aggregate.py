"""Normalise rules for trees with an Aggregate at the root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.expr import Column
from remuda.plan import logical
from remuda.plan.aggregates import AGGREGATES
from remuda.plan.logical import Assignment
from remuda.rules.explore.split_aggregate import is_known_of_one_row, without_grouping
from remuda.rules.tree_properties import is_unique

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


def remove_distinct_of_unique(node: LogicalNode) -> LogicalNode | None:
    """Aggregate(x, keys, no calls) → Project(x, keys), where no two rows of x have the same keys.

    SELECT DISTINCT id, name FROM orders: id is the key. Not SELECT DISTINCT name.
    """
    if not isinstance(node, logical.Aggregate) or node.calls or not node.keys:
        return None
    if not is_unique(node.input, (column.id for column in node.keys)):
        return None
    return logical.Project(node.input, tuple(Assignment(column, column) for column in node.keys))


def remove_aggregate_of_unique(node: LogicalNode) -> LogicalNode | None:
    """Aggregate(x, keys, SUM(a), COUNT(b)) → Project(x, keys, a, 1 or 0), where no two rows of x have the same keys.

    SELECT id, SUM(amount) FROM orders GROUP BY id: each group has the one row with that key. Not where a value may not
    fit the type of the result, and not STDDEV and others that are something else of a single row.
    """
    if not isinstance(node, logical.Aggregate) or not node.calls or not node.keys:
        return None
    if not all(map(is_known_of_one_row, node.calls)):
        return None
    return without_grouping(node) if is_unique(node.input, (column.id for column in node.keys)) else None


def remove_distinct_from_calls(node: LogicalNode) -> LogicalNode | None:
    """MAX(DISTINCT a) → MAX(a); COUNT(DISTINCT a) → COUNT(a) where no group has two rows with the same `a`."""
    if not isinstance(node, logical.Aggregate) or not any(call.distinct for call in node.calls):
        return None
    keys = [column.id for column in node.keys]
    calls = tuple(
        replace(call, distinct=False)
        if call.distinct
        and (
            AGGREGATES[call.function].ignores_repetition
            or (is_unique(node.input, (*keys, *(column.id for column in call.arguments))))
        )
        else call
        for call in node.calls
    )
    return None if calls == node.calls else replace(node, calls=calls)


def merge_distinct_into_aggregate(node: LogicalNode) -> LogicalNode | None:
    """Aggregate(Aggregate(x, more keys), keys), both without calls → Aggregate(x, keys): distinct of distinct rows.

    A projection may stand between, if it computes nothing.
    """
    if not isinstance(node, logical.Aggregate) or node.calls or not node.keys:
        return None
    below = node.input
    between = below if isinstance(below, logical.Project) else None
    if between is not None:
        if not all(isinstance(item.expression, Column) for item in between.assignments):
            return None
        below = between.input
    if not isinstance(below, logical.Aggregate) or below.calls or not below.keys:
        return None
    return replace(node, input=below.input if between is None else replace(between, input=below.input))
