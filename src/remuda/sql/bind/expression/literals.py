"""Binding of literals: numbers, strings, truth values, bytes."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import SqlError, parsing_error, shown
from remuda.expr import Expression, Literal
from remuda.sql.bind.expression.comparison import adapt_literal
from remuda.sql.bind.expression.intervals import bind_interval
from remuda.sql.parse.places import place_of
from remuda.types import BOOLEAN, DOUBLE, INTEGER, NULL, VARBINARY, VARCHAR, type_of_value

if TYPE_CHECKING:
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.sql.bind.nodes import Binders, Parts
    from remuda.types import SqlType


def is_untyped_text(node: Any) -> bool:
    """Whether a node is a text as written, whose type is that of the values it stands beside, as in PostgreSQL."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string)


def _bind_literal(_: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    if node.is_string:
        literal = Literal(node.this, VARCHAR)
        return adapt_literal(literal, expected, place_of(node)) if expected is not None else literal
    try:
        return number_literal(node.this)
    except SqlError:
        raise parsing_error("a number has 38 digits at most", span=place_of(node)) from None
    except (ValueError, ArithmeticError):
        raise parsing_error(f"{shown(node.this)[1:-1]} is not a number", span=place_of(node)) from None


def number_literal(text: str) -> Literal:
    """
    >>> str(number_literal("7").type), str(number_literal("1.50").type), str(number_literal("1e3").type)
    ('INTEGER', 'DECIMAL(3, 2)', 'DOUBLE')
    """
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    if "." in text:
        value = Decimal(text)
        return Literal(value, type_of_value(value))
    whole = int(text)
    natural = INTEGER if abs(whole) < 2**31 else type_of_value(whole)
    return Literal(whole if natural.is_integer else Decimal(whole), natural)


def _bind_constant(_: ExpressionBinder, node: Any, _expected: SqlType | None) -> Expression:
    return Literal(bool(node.this), BOOLEAN) if isinstance(node, exp.Boolean) else Literal(None, NULL)


def _bind_bytes(_: ExpressionBinder, node: Any, _expected: SqlType | None) -> Expression:
    digits = str(node.this)
    if len(digits) % 2:
        raise parsing_error("bytes are written with two digits each", span=place_of(node))
    return Literal(bytes.fromhex(digits), VARBINARY)


def _bind_dollar_text(_: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    """`$$it's$$`: text in which nothing has another meaning."""
    literal = Literal(str(node.this), VARCHAR)
    return adapt_literal(literal, expected, place_of(node)) if expected is not None else literal


NODES: Binders = {
    exp.Literal: _bind_literal,
    exp.RawString: _bind_dollar_text,
    exp.Boolean: _bind_constant,
    exp.Null: _bind_constant,
    exp.HexString: _bind_bytes,
    exp.Interval: bind_interval,
}
PARTS: Parts = {
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Interval: frozenset({"this", "unit", "fraction_in_string"}),
}
