"""Normalise rules that remove operators over no rows at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.plan import logical

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


def prune_empty(node: LogicalNode) -> LogicalNode | None:
    """Filter, Project, Sort, Limit or grouped Aggregate over no rows → no rows.

    Not an Aggregate without keys: COUNT(*) of nothing is one row with 0.
    """
    if not isinstance(node, logical.Filter | logical.Project | logical.Sort | logical.Limit | logical.Aggregate):
        return None
    if not (isinstance(node.input, logical.Values) and not node.input.rows):
        return None
    if isinstance(node, logical.Aggregate) and not node.keys:
        return None
    return logical.Values(node.columns, ())
