"""The top of a query: its result columns, DISTINCT, the order of its rows, and how many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import parsing_error
from remuda.expr import Call, Column, Expression, Literal
from remuda.plan import logical
from remuda.plan.logical import Assignment
from remuda.plan.traits import SortKey
from remuda.sql.bind.aggregation import column_for
from remuda.sql.bind.functions.windows import numbered
from remuda.sql.bind.limits import sort_and_limit
from remuda.sql.parse.places import place_of
from remuda.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.logical import LogicalNode
    from remuda.sql.bind.binding import Binding
    from remuda.sql.bind.ordering import OrderEntry
    from remuda.sql.bind.select_list import SelectItem


def finish(
    binding: Binding,
    node: Any,
    tree: LogicalNode,
    items: Sequence[SelectItem],
    order: Sequence[OrderEntry],
    *,
    distinct: bool = False,
    distinct_on: Sequence[Expression] | None = None,
) -> logical.Root:
    """`node` has ORDER BY and LIMIT; the expressions are over the columns of the tree."""
    outputs = [
        Assignment(_result_column(binding, item, items[:place]), item.expression) for place, item in enumerate(items)
    ]
    computed = {output.expression: output.column for output in reversed(outputs)}
    hidden: list[Assignment] = []

    def column_of(expression: Expression) -> Column:
        if expression not in computed:
            computed[expression] = column_for(binding, expression)
            hidden.append(Assignment(computed[expression], expression))
        return computed[expression]

    collation: list[SortKey] = []
    for entry in order:
        if isinstance(entry.expression, Literal):
            continue  # the same for every row
        key = SortKey(column_of(entry.expression).id, entry.descending, entry.nulls_first)
        if all(key.column != other.column for other in collation):
            collation.append(key)
    if distinct and distinct_on is None and hidden:
        raise parsing_error("ORDER BY of a SELECT DISTINCT must name result columns", span=place_of(node.args["order"]))
    chosen = tuple(column_of(part) for part in distinct_on or () if not isinstance(part, Literal))
    tree = logical.Project(tree, (*outputs, *hidden))
    if distinct_on is not None:
        tree, number = numbered(binding, tree, chosen, tuple(collation))
        tree = logical.Filter(tree, Call("=", (number, Literal(1, BIGINT)), BOOLEAN))
    elif distinct:
        tree = logical.Aggregate(tree, tree.columns, ())
    tree = sort_and_limit(binding, node, tree, tuple(collation))
    columns = tuple(output.column for output in outputs)
    return logical.Root(tree, columns, tuple(item.name for item in items), tuple(collation))


def _result_column(binding: Binding, item: SelectItem, before: Sequence[SelectItem]) -> Column:
    """A column of the query stays itself where it comes out first; whatever else gets one of its own."""
    expression = item.expression
    if not isinstance(expression, Column):
        return binding.new_column(item.name, expression.type)
    if expression.outer or any(other.expression == expression for other in before):
        return binding.new_column(item.name, expression.type, nullable=expression.nullable)
    return expression
