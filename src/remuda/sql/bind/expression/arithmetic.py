"""Binding of operators of numbers and of ||, with the types that literals and parameters take beside a value."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import unknown_function
from remuda.expr import Expression, Literal
from remuda.sql.bind.bind_context import COMMON_PARTS, Binders, Parts
from remuda.sql.bind.expression.literals import is_untyped_text
from remuda.sql.parse.spans import span_of
from remuda.types import BIGINT, DOUBLE, INTERVAL_TIME, TIMESTAMP, VARCHAR, Kind, SqlType, to_stored, type_of_value

if TYPE_CHECKING:
    from remuda.sql.bind.expression.expression import ExpressionBinder

BINARY: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}

BITS: dict[type[exp.Expression], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#"}
SHIFTS: dict[type[exp.Expression], str] = {exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>"}


def _bind_arithmetic(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    is_told = is_untyped_text(node.this) and not isinstance(node.expression, exp.Placeholder)
    if is_told or isinstance(node.this, exp.Placeholder):
        right = self.bind(node.expression)
        left = self.bind(node.this, _beside(right.type, node))
    else:
        left = self.bind(node.this)
        right = self.bind(node.expression, _subtracted(left.type, node, expected) or _beside(left.type, node))
    left, right = _adapt_number(left, right.type), _adapt_number(right, left.type)
    return self.call(BINARY[type(node)], node, left, right)


def _subtracted(left: SqlType, node: Any, expected: SqlType | None) -> SqlType | None:
    """Return the type of a parameter in `now() - ?` where a moment is expected: an INTERVAL, else None."""
    is_moment = expected is not None and expected.is_temporal and left.is_temporal and left.kind is not Kind.DATE
    return INTERVAL_TIME if is_moment and isinstance(node, exp.Sub) else None


def _beside(other: SqlType, node: Any) -> SqlType:
    """Return the type of a parameter beside a value: that value's type, but INTERVAL beside a moment."""
    if other.is_interval:
        return BIGINT if isinstance(node, exp.Mul) else TIMESTAMP
    if other.is_temporal and isinstance(node, exp.Add):
        return BIGINT if other.kind is Kind.DATE else INTERVAL_TIME
    return other


def _adapt_number(expression: Expression, other: SqlType) -> Expression:
    """Adapt a numeric literal to its column: `amount * 1.5` has a DOUBLE, `price * 2` a DECIMAL of one digit."""
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


def _bind_whole_division(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind `x

    y`, the division of integers, which `x / y` is too; refuse it for other numbers.
    """
    left, right = self.bind_pair(node.this, node.expression)
    for side in (left, right):
        if side.type.kind is not Kind.NULL and not side.type.is_integer:
            raise unknown_function(f"// does not take ({left.type}, {right.type})", span=span_of(node))
    return self.call("/", node, left, right)


def _bind_bits(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.call(BITS[type(node)], node, *self.bind_pair(node.this, node.expression))


def _bind_opposite_bits(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    return self.call("bitwise not", node, self.bind(node.this, _integer(expected)))


def _bind_shift(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    value, count = self.bind(node.this, _integer(expected)), self.bind(node.expression, BIGINT)
    return self.call(SHIFTS[type(node)], node, value, count)


def _integer(expected: SqlType | None) -> SqlType:
    """Return the type of a bare parameter of a bit operation."""
    return expected if expected is not None and expected.is_integer else BIGINT


NODES: Binders = {
    **dict.fromkeys(BINARY, _bind_arithmetic),
    exp.Neg: _bind_negation,
    exp.Pow: _bind_power,
    exp.IntDiv: _bind_whole_division,
    **dict.fromkeys(BITS, _bind_bits),
    **dict.fromkeys(SHIFTS, _bind_shift),
    exp.BitwiseNot: _bind_opposite_bits,
    exp.DPipe: _bind_concatenation,
}
PARTS: Parts = {exp.Div: COMMON_PARTS | {"typed"}, exp.DPipe: COMMON_PARTS | {"safe"}}
