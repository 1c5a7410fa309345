"""Binding of CAST, `::` and TRY_CAST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import SqlError, cast_error, unknown_function, unknown_object
from remuda.expr import Cast, Expression, Literal, can_cast, evaluate_constant
from remuda.expr.cast.cast import cast_can_fail
from remuda.sql.bind.bind_context import COMMON_PARTS, Binders, Parts
from remuda.sql.bind.expression.exact_comparison import adapt_literal
from remuda.sql.bind.expression.literals import interval_literal, interval_type
from remuda.sql.parse.spans import span_of
from remuda.sql.parse.type_names import length_of, type_named
from remuda.types import BIGINT, DATE, VARCHAR

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType


def _bind_cast(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    span = span_of(node)
    is_interval, unit = _interval_unit(node)
    if is_interval and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _interval_value(node, unit)
    target = interval_type(unit) if is_interval else _cast_target(node)
    # A string that is written out would have to be one of the type; whether it is, TRY_CAST asks, and CAST of a DATE.
    asks = isinstance(node, exp.TryCast) or (target == DATE and isinstance(node.this, exp.Literal))
    told = not asks or isinstance(node.this, exp.Placeholder)
    operand = self.bind(node.this, target if told else None)
    lenient = isinstance(node, exp.TryCast) and cast_can_fail(operand.type, target)
    if isinstance(operand, Literal) and operand.type == VARCHAR and target.is_temporal and not lenient:
        return _read_moment(operand, target, span_of(node.this))
    if not can_cast(operand.type, target):
        raise cast_error(f"{operand.type} cannot be cast to {target}", span=span)
    cast = operand if operand.type == target else Cast(operand, target, span, lenient)
    length = _length(node) if target == VARCHAR else None
    return cast if length is None else self.call("left", node, cast, Literal(length, BIGINT))


def _read_moment(text: Literal, target: SqlType, span: Span | None) -> Expression:
    """Read a moment from text; a cast to DATE drops a time of day, a string compared with a DATE may not have one."""
    if target != DATE or text.value is None:
        return adapt_literal(text, target, span)
    try:
        return Literal(evaluate_constant(Cast(text, DATE)), DATE)
    except SqlError as error:
        raise error.restated(span=span) from error


def _interval_value(node: Any, unit: Any) -> Expression:
    try:
        return interval_literal(str(node.this.this), unit, span_of(node))
    except SqlError:
        if not isinstance(node, exp.TryCast):
            raise
        return Literal(None, interval_type(unit))


def _interval_unit(node: Any) -> tuple[bool, Any]:
    """Return whether the target is an INTERVAL, and the unit that is written with it."""
    if isinstance(node.to.this, exp.Interval):
        return True, node.to.this.args.get("unit")
    return node.to.this == exp.DataType.Type.INTERVAL, None


def _length(node: Any) -> int | None:
    """Return the number of characters that the cast leaves of a text."""
    arguments = [int(argument.name) for argument in node.to.expressions]
    return length_of("CHAR" if node.to.this in _OF_ONE_CHARACTER else "VARCHAR", arguments)


_OF_ONE_CHARACTER = {exp.DataType.Type.CHAR, exp.DataType.Type.NCHAR}


def _cast_target(node: Any) -> SqlType:
    # PostgreSQL has no TINYINT: written in its dialect it would be a SMALLINT.
    is_tiny = node.to.this == exp.DataType.Type.TINYINT
    written = "TINYINT" if is_tiny else node.to.sql("postgres").upper()
    name, _, rest = written.partition("(")
    arguments = [part.strip() for part in rest.rstrip(")").split(",")] if rest else []
    is_plain = all(part.args.get("expression") is None for part in node.to.expressions)
    if not is_plain or not all(argument.isdecimal() for argument in arguments):
        raise unknown_object(f"unknown type: {written}", span=span_of(node))
    return type_named(name.strip(), [int(argument) for argument in arguments], span_of(node))


def _bind_date(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    """Bind `date(x)` as `CAST(x AS DATE)`."""
    if node.this is None:
        raise unknown_function("DATE takes one argument", span=span_of(node))
    cast = exp.Cast(this=node.this.copy(), to=exp.DataType(this=exp.DataType.Type.DATE))
    cast.meta.update(node.meta)
    return _bind_cast(self, cast, expected)


NODES: Binders = {exp.Cast: _bind_cast, exp.TryCast: _bind_cast, exp.Date: _bind_date}
PARTS: Parts = {
    exp.Cast: COMMON_PARTS | {"to", "_type"},
    exp.TryCast: COMMON_PARTS | {"to", "_type", "safe"},
    exp.Date: COMMON_PARTS,
}
