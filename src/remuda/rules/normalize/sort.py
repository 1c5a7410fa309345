"""Normalise rules that remove a Sort."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.plan import logical
from remuda.plan.walk import inputs, with_inputs

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


def remove_sort_below_aggregate(node: LogicalNode) -> LogicalNode | None:
    """Aggregate(Sort(x)) → Aggregate(x): groups do not depend on the order of rows. A Window has its own order."""
    if isinstance(node, logical.Aggregate | logical.Window) and isinstance(node.input, logical.Sort):
        return replace(node, input=node.input.input)
    return None


def remove_sort_below_join(node: LogicalNode) -> LogicalNode | None:
    """Join(Sort(l), Sort(r)) → Join(l, r), and a Union likewise: neither promises an order."""
    if not isinstance(node, logical.Join | logical.Union):
        return None
    old = inputs(node)
    new = tuple(part.input if isinstance(part, logical.Sort) else part for part in old)
    return None if new == old else with_inputs(node, new)


def remove_sort_below_sort(node: LogicalNode) -> LogicalNode | None:
    """Sort(Sort(x, a), b) → Sort(x, b): the outer order is the one that counts."""
    if isinstance(node, logical.Sort) and isinstance(node.input, logical.Sort):
        return replace(node, input=node.input.input)
    return None
