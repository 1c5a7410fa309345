"""Binding of + - * / % ^ || and the sign, with the types that literals and parameters take beside a value."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.expr import Expression, Literal
from remuda.sql.nodes import COMMON_PARTS, Binders, Parts
from remuda.types import BIGINT, DOUBLE, INTERVAL_TIME, TIMESTAMP, VARCHAR, Kind, SqlType, to_stored, type_of_value

if TYPE_CHECKING:
    from remuda.sql.expression import ExpressionBinder

BINARY: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


def _bind_arithmetic(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if isinstance(node.this, exp.Placeholder):
        right = self.bind(node.expression)
        left = self.bind(node.this, _beside(right.type, node))
    else:
        left = self.bind(node.this)
        right = self.bind(node.expression, _beside(left.type, node))
    left, right = _adapt_number(left, right.type), _adapt_number(right, left.type)
    return self.call(BINARY[type(node)], node, left, right)


def _beside(other: SqlType, node: Any) -> SqlType:
    """The type of a parameter beside a value: mostly the same, but what is added to a moment is no moment."""
    if other.is_interval:
        return BIGINT if isinstance(node, exp.Mul) else TIMESTAMP
    if other.is_temporal and isinstance(node, exp.Add):
        return BIGINT if other.kind is Kind.DATE else INTERVAL_TIME
    return other


def _adapt_number(expression: Expression, other: SqlType) -> Expression:
    """In `amount * 1.5` the literal is a DOUBLE, as the column is; in `price * 2` it is a DECIMAL of one digit."""
    if not isinstance(expression, Literal) or expression.value is None or not expression.type.is_exact:
        return expression
    if other.is_floating:
        return Literal(to_stored(other, expression.value), other)
    if other.kind is Kind.DECIMAL and expression.type.is_integer:
        value = Decimal(expression.value)
        return Literal(value, type_of_value(value))
    return expression


def _bind_negation(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    operand = self.bind(node.this, expected)
    if isinstance(operand, Literal) and operand.type.is_numeric and operand.value is not None:
        opposite = operand.value.copy_negate() if isinstance(operand.value, Decimal) else -operand.value
        return Literal(opposite, operand.type)
    return self.call("negate", node, operand)


def _bind_concatenation(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.call("||", node, self.bind(node.this, VARCHAR), self.bind(node.expression, VARCHAR))


def _bind_power(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.call("power", node, self.bind(node.this, DOUBLE), self.bind(node.expression, DOUBLE))


NODES: Binders = {
    **dict.fromkeys(BINARY, _bind_arithmetic),
    exp.Neg: _bind_negation,
    exp.Pow: _bind_power,
    exp.DPipe: _bind_concatenation,
}
PARTS: Parts = {exp.Div: COMMON_PARTS | {"typed"}, exp.DPipe: COMMON_PARTS | {"safe"}}
