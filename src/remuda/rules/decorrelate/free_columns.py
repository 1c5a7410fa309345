"""Which columns a tree names that nothing below delivers: those that tie a sub-query to the query around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from remuda.expr import Column, columns_of
from remuda.plan import logical
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.plan.logical import LogicalNode


def free_columns(node: Any) -> dict[int, Column]:
    """The free columns of a tree by id, in the order of their first use, whichever outer query they belong to.

    The right side of an `Apply` may name what its left side delivers, so those are free in the side alone.
    """
    free: dict[int, Column] = {}
    for child in inputs(node):
        free.update(free_columns(child))
    free.update(columns_of(*expressions_of(node)))
    delivered = {column.id for child in inputs(node) for column in child.columns}
    return {id_: column for id_, column in free.items() if id_ not in delivered}


def expressions_of(node: LogicalNode) -> tuple[Expression, ...]:
    """Every expression of a node, where columns can be named that its inputs do not deliver."""
    match node:
        case logical.Scan():
            # What a scan's filter names are columns of its map, delivered or not.
            return ()
        case logical.Values():
            return tuple(value for row in node.rows for value in row)
        case logical.Filter():
            return (node.condition,)
        case logical.Project():
            return tuple(item.expression for item in node.assignments)
        case logical.Aggregate():
            return (*node.keys, *(argument for call in node.calls for argument in call.arguments))
        case logical.Limit():
            return tuple(part for part in (node.count, node.offset) if part is not None)
        case logical.Join() | logical.Apply():
            return tuple(part for part in (node.condition, node.compared) if part is not None)
        case logical.Window():
            return (*node.partition, *(argument for call in node.calls for argument in call.arguments))
        case logical.Expand():
            return tuple(expression for projection in node.projections for expression in projection)
        case logical.Series():
            return node.call.arguments
        case (
            logical.Sort()
            | logical.Union()
            | logical.Recursive()
            | logical.WorkingTable()
            | logical.Modify()
            | logical.Root()
        ):
            return ()
        case _:
            assert_never(node)
