"""The top of a query: its result columns, DISTINCT, the order of its rows, and how many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import bad_limit, bad_reference, parsing_error, type_error
from remuda.expr import Call, Column, Expression, Literal, call, coerce
from remuda.plan import logical
from remuda.plan.logical import Assignment
from remuda.plan.traits import SortKey
from remuda.plan.windows import WindowCall
from remuda.sql.bind.aggregation import column_for
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.functions.window_calls import numbered
from remuda.sql.bind.scope import Scope
from remuda.sql.parse.spans import refuse_unknown_parts, span_of, unsupported
from remuda.types import BIGINT, BOOLEAN, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.logical import LogicalNode
    from remuda.plan.traits import Collation
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.order_by import OrderEntry
    from remuda.sql.bind.select_list import SelectItem

# LIMIT, OFFSET and FETCH, on top of ORDER BY.


_LIMIT_PARTS = frozenset({"expression"})
_FETCH_PARTS = frozenset({"direction", "count", "limit_options"})


def sort_and_limit(binding: BindContext, node: Any, tree: LogicalNode, collation: Collation) -> LogicalNode:
    """ORDER BY and LIMIT of a query, over the rows that have the columns it is ordered by."""
    offset = _row_count(binding, node, "offset")
    limit = node.args.get("limit")
    count: Expression | None
    if isinstance(limit, exp.Fetch):
        fetched = count = _fetch_count(binding, limit)
        if limit.args["limit_options"].args.get("with_ties"):
            if not collation:
                raise parsing_error("WITH TIES needs an ORDER BY", span=span_of(limit))
            tree = _with_ties(binding, tree, collation, fetched, offset)
            count = None
    else:
        count = _row_count(binding, node, "limit")
    if collation:
        tree = logical.Sort(tree, collation)
    return tree if count is None and offset is None else logical.Limit(tree, count, offset)


def _fetch_count(binding: BindContext, node: Any) -> Expression:
    refuse_unknown_parts(node, _FETCH_PARTS)
    if node.args.get("limit_options") is None:
        raise parsing_error("FETCH ends with ROWS ONLY or ROWS WITH TIES", span=span_of(node))
    if node.args["limit_options"].args.get("percent"):
        raise unsupported(node, "PERCENT")
    count = node.args.get("count")
    return Literal(1, BIGINT) if count is None else _whole_number(binding, count, "FETCH")


def _with_ties(
    binding: BindContext, tree: LogicalNode, collation: Collation, count: Expression, offset: Expression | None
) -> LogicalNode:
    """Keep the rows that tie with the last one: those whose rank is not above the count."""
    rank = binding.new_column("rank", BIGINT, nullable=False)
    last: Expression | None = count if offset is None else call("+", count, offset)
    assert last is not None, "both are whole numbers"
    ranked = logical.Window(tree, (), collation, (WindowCall(rank, "rank"),))
    return logical.Filter(ranked, Call("<=", (rank, last), BOOLEAN))


def _row_count(binding: BindContext, node: Any, clause: str) -> Expression | None:
    limit = node.args.get(clause)
    if limit is None or (isinstance(limit.expression, exp.Var) and limit.expression.name.upper() == "ALL"):
        return None
    refuse_unknown_parts(limit, _LIMIT_PARTS)
    return _whole_number(binding, limit.expression, clause.upper())


def _whole_number(binding: BindContext, node: Any, clause: str) -> Expression:
    bound = ExpressionBinder(binding, Scope(()), clause=clause).bind(node, BIGINT)
    span = span_of(node)
    if bound.type.kind is not Kind.NULL and not bound.type.is_integer:
        raise type_error(f"{clause} must be a whole number, this is {bound.type}", span=span)
    if isinstance(bound, Literal) and (bound.value is None or bound.value < 0):
        raise bad_limit(f"{clause} must not be {'NULL' if bound.value is None else 'negative'}", span=span)
    return coerce(bound, BIGINT) if not isinstance(bound, Literal) else Literal(bound.value, BIGINT)


def finish(
    binding: BindContext,
    node: Any,
    tree: LogicalNode,
    items: Sequence[SelectItem],
    order: Sequence[OrderEntry],
    *,
    distinct: bool = False,
    distinct_on: Sequence[Expression] | None = None,
) -> logical.Root:
    """Apply the ORDER BY and LIMIT of `node`; the expressions are over the columns of the tree."""
    outputs = [
        Assignment(_result_column(binding, item, items[:ordinal]), item.expression)
        for ordinal, item in enumerate(items)
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
        raise bad_reference("ORDER BY of a SELECT DISTINCT must name result columns", span=span_of(node.args["order"]))
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


def _result_column(binding: BindContext, item: SelectItem, before: Sequence[SelectItem]) -> Column:
    """Return the column of a result expression.

    A column of the query stays itself where it is first in the result; any other expression gets a new one.
    """
    expression = item.expression
    if not isinstance(expression, Column):
        return binding.new_column(item.name, expression.type)
    if expression.outer or any(other.expression == expression for other in before):
        return binding.new_column(item.name, expression.type, nullable=expression.nullable)
    return expression
