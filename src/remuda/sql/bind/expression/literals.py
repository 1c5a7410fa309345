"""Binding of literals: numbers, strings, truth values, bytes."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import SqlError, bad_interval, number_too_long, parsing_error, shown, type_error
from remuda.expr import Expression, Literal, coerce
from remuda.sql.bind.expression.exact_comparison import adapt_literal
from remuda.sql.parse.spans import span_of, unsupported
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    NULL,
    VARBINARY,
    VARCHAR,
    Kind,
    parse_interval,
    type_of_value,
)

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.sql.bind.bind_context import Binders, Parts
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

# INTERVAL literals: `INTERVAL '1 year 2 months'`, `INTERVAL '3' DAY`, `INTERVAL '1 02:03:04' DAY TO SECOND`.


_SPANS = {"YEAR": {"MONTH"}, "DAY": {"HOUR", "MINUTE", "SECOND"}, "HOUR": {"MINUTE", "SECOND"}, "MINUTE": {"SECOND"}}
"""Which units may stand after TO."""


def is_number(text: str) -> bool:
    return text.strip().lstrip("+-").replace(".", "", 1).isdecimal()


def bind_interval(binder: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    span = span_of(node)
    if not isinstance(node.this, exp.Literal):
        return _bind_number_of_units(binder, node)
    if "literal" not in node.meta:
        raise unsupported(node, "INTERVAL of anything but a literal")
    return interval_literal(str(node.meta["literal"]), node.args.get("unit"), span)


def _bind_number_of_units(binder: ExpressionBinder, node: Any) -> Expression:
    """Bind `INTERVAL (n) DAY` as n times one day."""
    unit = node.args.get("unit")
    if unit is None or isinstance(unit, exp.IntervalSpan):
        raise parsing_error("INTERVAL of an expression needs one unit", span=span_of(node))
    number = binder.bind(node.this, BIGINT)
    if not number.type.is_integer and number.type.kind is not Kind.NULL:
        raise type_error(f"INTERVAL takes a whole number of units, this is {number.type}", span=span_of(node.this))
    return binder.call("*", node, coerce(number, BIGINT), interval_literal("1", unit, span_of(node)))


def interval_literal(text: str, unit: Any, span: Span | None) -> Literal:
    """Bind an interval literal; `unit` is what is written after the text: nothing, a unit or a span of units."""
    first = last = _first_unit(unit)
    is_counted = first is not None and is_number(text) and not isinstance(unit, exp.IntervalSpan)
    if isinstance(unit, exp.IntervalSpan):
        last = unit.expression.name.upper()
        if last not in _SPANS.get(str(first), ()):
            raise bad_interval(f"INTERVAL has no {first} TO {last}", span=span)
        if first == "MINUTE":
            text = f"0:{text.strip()}"  # else the first of two numbers would be hours
    elif is_counted:
        text = f"{text} {str(first).lower()}"
    try:
        type_, value = parse_interval(text)
    except SqlError as error:
        raise error.restated(span=span) from None
    if last is not None and not is_counted and not _is_within(type_, value, last):
        raise bad_interval(f"{text!r} is not an INTERVAL of whole {last.lower()}s", span=span)
    return Literal(value, type_)


def _is_within(type_: SqlType, value: int, unit: str) -> bool:
    """Test whether an interval has no part below its last unit, which PostgreSQL would cut off."""
    unit_type, size = parse_interval(f"1 {unit.lower()}")
    return type_ == unit_type and (unit.startswith("SECOND") or value % size == 0)


def _first_unit(unit: Any) -> str | None:
    if unit is None:
        return None
    return str((unit.this if isinstance(unit, exp.IntervalSpan) else unit).name).upper()


def interval_type(unit: Any) -> SqlType:
    """Return the type of `CAST(x AS INTERVAL unit)`; without a unit, the one that has days and a time."""
    return INTERVAL_MONTHS if _first_unit(unit) in {"YEAR", "MONTH", "QUARTER"} else INTERVAL_TIME


def is_untyped_text(node: Any) -> bool:
    """Test whether a node is a text as written, which takes the type of the values beside it, as in PostgreSQL."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string)


def _bind_literal(_: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    if node.is_string:
        literal = Literal(node.this, VARCHAR)
        return adapt_literal(literal, expected, span_of(node)) if expected is not None else literal
    try:
        return number_literal(node.this)
    except SqlError:
        raise number_too_long("a number has 38 digits at most", span=span_of(node)) from None
    except (ValueError, ArithmeticError):
        raise parsing_error(f"{shown(node.this)[1:-1]} is not a number", span=span_of(node)) from None


def number_literal(text: str) -> Literal:
    """Return the literal of a number, with the narrowest type for its digits.

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
        raise parsing_error("bytes are written with two digits each", span=span_of(node))
    return Literal(bytes.fromhex(digits), VARBINARY)


def _bind_dollar_text(_: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    """Bind `$$it's$$`, a text without escapes."""
    literal = Literal(str(node.this), VARCHAR)
    return adapt_literal(literal, expected, span_of(node)) if expected is not None else literal


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
