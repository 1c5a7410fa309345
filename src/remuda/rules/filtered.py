"""A relation of which conditions are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import conjunction
from remuda.plan import logical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.expr import Expression
    from remuda.plan.logical import LogicalNode


def filtered(node: LogicalNode, conditions: Iterable[Expression]) -> LogicalNode:
    """Filter(node, all conditions), or the node itself where there are none."""
    condition = conjunction(conditions)
    return node if condition is None else logical.Filter(node, condition)
