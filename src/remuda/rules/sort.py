"""Normalise rules for trees with a Sort or a Limit at the root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.expr import Literal
from remuda.plan import logical

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


def merge_sort_into_limit(node: LogicalNode) -> LogicalNode | None:
    """Limit(Sort(x, order), n) → Limit(x, n, order): the first rows of an order need not be found by sorting all."""
    if not (isinstance(node, logical.Limit) and not node.collation and isinstance(node.input, logical.Sort)):
        return None
    return logical.Limit(node.input.input, node.count, node.offset, node.input.collation)


def remove_sort_below_aggregate(node: LogicalNode) -> LogicalNode | None:
    """Aggregate(Sort(x)) → Aggregate(x): groups do not depend on the order of rows."""
    if isinstance(node, logical.Aggregate) and isinstance(node.input, logical.Sort):
        return replace(node, input=node.input.input)
    return None


def remove_sort_below_sort(node: LogicalNode) -> LogicalNode | None:
    """Sort(Sort(x, a), b) → Sort(x, b): the outer order is the one that counts."""
    if isinstance(node, logical.Sort) and isinstance(node.input, logical.Sort):
        return replace(node, input=node.input.input)
    return None


def empty_zero_limit(node: LogicalNode) -> LogicalNode | None:
    """Limit(x, 0) → no rows."""
    if isinstance(node, logical.Limit) and isinstance(node.count, Literal) and node.count.value == 0:
        return logical.Values(node.columns, ())
    return None
