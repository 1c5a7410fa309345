"""Binding of aggregates: where they are allowed, what they take, and that one asked for twice is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.plan.aggregates import AGGREGATES
from remuda.sql.places import place_of, unsupported
from remuda.types import BIGINT

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.sql.expression import ExpressionBinder
    from remuda.types import SqlType

AGGREGATE_NODES: dict[type[exp.Expression], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}


def bind_aggregate(binder: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    name = AGGREGATE_NODES[type(node)]
    span = place_of(node)
    if binder.calls is None:
        raise parsing_error(f"{name.upper()} is not allowed in {binder.clause}", span=span)
    if binder.inside_aggregate:
        raise parsing_error("an aggregate within an aggregate", span=span)
    operand, distinct = node.this, False
    if isinstance(operand, exp.Distinct):
        operand, distinct = operand.expressions[0] if operand.expressions else None, True
        if len(node.this.expressions) != 1 or name not in {"count", "min", "max"}:
            raise unsupported(node, f"{name.upper()}(DISTINCT ...)")
    binder.inside_aggregate = True
    argument = None if operand is None or isinstance(operand, exp.Star) else binder.bind(operand)
    binder.inside_aggregate = False
    if argument is None and name != "count":
        raise parsing_error(f"{name.upper()} needs an argument", span=span)
    result = AGGREGATES[name].result(None if argument is None else argument.type)
    if result is None and argument is not None:
        raise parsing_error(f"{name.upper()} does not take {argument.type}", span=span)
    distinct = distinct and name == "count"
    for known_name, known_argument, known_distinct, column in binder.calls:
        if (known_name, known_argument, known_distinct) == (name, argument, distinct):
            return column
    column = binder.binding.new_column(name, result or BIGINT, nullable=name != "count")
    binder.calls.append((name, argument, distinct, column))
    return column
