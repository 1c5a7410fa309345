"""Which columns a tree names that nothing below delivers: those that tie a sub-query to the query around it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from remuda.expr import Call, Column, Literal, columns_of
from remuda.plan import logical
from remuda.plan.logical import Aggregate, Assignment
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.logical import LogicalNode
    from remuda.rules.construct import NewColumns

# What aggregates without keys are where there is no row: COUNT is 0, the others are NULL.
#
# An aggregate without keys has one row over nothing. Computed for many outer rows at once it has keys, and nothing
# gives no row; after an outer join its columns are NULL there, which is right for SUM and wrong for COUNT.


COUNTS = frozenset({"count", "count_if", "approx_count_distinct", "regr_count"})
"""The aggregates that are 0 over no rows."""


def with_defaults(
    aggregate: Aggregate, calls: tuple[AggregateCall, ...], new_columns: NewColumns
) -> tuple[Aggregate, tuple[Assignment, ...]]:
    """Rename the counts of an aggregate, and return what each call is above an outer join with it."""
    renamed: list[AggregateCall] = []
    items: list[Assignment] = []
    for call in calls:
        if call.function not in COUNTS:
            renamed.append(call)
            items.append(Assignment(call.column, call.column))
            continue
        found = new_columns.copy(call.column)
        renamed.append(replace(call, column=found))
        value = Call("coalesce", (found, Literal(0, found.type)), found.type)
        items.append(Assignment(call.column, value))
    return replace(aggregate, calls=tuple(renamed)), tuple(items)


def free_columns(node: Any) -> dict[int, Column]:
    """Return the free columns of a tree by id, in the order of their first use, for all outer queries.

    The right side of an `Apply` may name what its left side delivers, so those are free in the side alone.
    """
    free: dict[int, Column] = {}
    for child in inputs(node):
        free.update(free_columns(child))
    free.update(columns_of(*expressions_of(node)))
    delivered = {column.id for child in inputs(node) for column in child.columns}
    return {id_: column for id_, column in free.items() if id_ not in delivered}


def expressions_of(node: LogicalNode) -> tuple[Expression, ...]:
    """Return every expression of a node that may name columns which its inputs do not deliver."""
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
