"""Normalise rules that remove operators over no rows at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.expr import FALSE, Literal
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


def prune_empty(node: LogicalNode) -> LogicalNode | None:
    """Filter, Project, Sort, Limit, Window, Expand, Series or grouped Aggregate over no rows → no rows.

    Not an Aggregate without keys: COUNT(*) of nothing is one row with 0.
    """
    match node:
        case logical.Aggregate(keys=()):
            return None
        case (
            logical.Filter()
            | logical.Project()
            | logical.Sort()
            | logical.Limit()
            | logical.Aggregate()
            | logical.Window()
            | logical.Expand()
            | logical.Series()
        ):
            return logical.Values(node.columns, ()) if is_empty(node.input) else None
        case _:
            return None


def prune_empty_join(node: LogicalNode) -> LogicalNode | None:
    """A join with a side without rows → the rows of the other side that need no match, with NULLs, or no rows.

    ANTI(l, nothing) is l, MARK(l, nothing) is l with a false mark, LEFT(l, nothing) l with NULLs, and INNER nothing.
    """
    if not isinstance(node, logical.Join):
        return None
    left_empty, right_empty = is_empty(node.left), is_empty(node.right)
    if not left_empty and not right_empty:
        return None
    if (left_empty or not node.kind.keeps_left) and (right_empty or not node.kind.keeps_right):
        return logical.Values(node.columns, ())
    if node.kind is JoinKind.ANTI:
        return node.left  # type: ignore[return-value]
    if node.mark is not None:
        kept = (Assignment(column, column) for column in node.left.columns)
        return logical.Project(node.left, (*kept, Assignment(node.mark, FALSE)))
    rows = node.right if left_empty else node.left
    if not (node.kind.keeps_right if left_empty else node.kind.keeps_left):
        return None
    there = {column.id for column in rows.columns}
    return logical.Project(
        rows,
        tuple(
            Assignment(column, column if column.id in there else Literal(None, column.type)) for column in node.columns
        ),
    )


def prune_empty_recursion(node: LogicalNode) -> LogicalNode | None:
    """Recursive(no rows, step) → no rows: the step has nothing to begin with."""
    if isinstance(node, logical.Recursive) and is_empty(node.inputs[0]):
        return logical.Values(node.columns, ())
    return None


def is_empty(node: Any) -> bool:
    return isinstance(node, logical.Values) and not node.rows
