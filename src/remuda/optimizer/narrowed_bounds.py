"""Comparisons of a widened column as bounds of the column itself: of integers exactly, of DECIMALs by rounding.

CAST(f AS BIGINT) < ?   →   f <= CASE WHEN ? > 32767 THEN 32767 WHEN ? > -32768 THEN CAST(? AS SMALLINT) - 1 END
CAST(d AS DECIMAL(20, 10)) > ?   →   d >= CAST(? AS DECIMAL(10, 2)), and the comparison itself is asked as well
CAST(d AS DOUBLE) > 997.755e0    →   d >= 997.74, and the comparison itself
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from remuda.dataclass import replace
from remuda.expr import Call, Case, Cast, Column, Expression, Literal, call, is_constant
from remuda.expr.column_comparison import MIRRORED
from remuda.plan.bounds import Bound, End, Interval, Points
from remuda.types import INTEGER_RANGES, MAXIMUM_PRECISION, Kind, is_widening, to_stored

if TYPE_CHECKING:
    from remuda.types import SqlType

BOUNDING = MIRRORED.keys() - {"<>"}
"""The comparisons that bound a column."""
FLOATING_DIGITS = 14
"""Digits of a DECIMAL whose neighbours lie far enough apart that no conversion to DOUBLE takes one for the other."""

# Comparisons of a widened integer column with a value that is known only at execution, as bounds of the column itself.
#
#     CAST(f AS BIGINT) < ?   →   f <= CASE WHEN ? > 32767 THEN 32767 WHEN ? > -32768 THEN CAST(? AS SMALLINT) - 1 END
#
# A value beyond the column's type leaves all values or none: the type's own end, or NULL, which nothing satisfies. So
# no cast fails, and the index is searched for what the comparison means. Of a value that may have a fraction, `f =
# FLOOR(?)`, the whole number below it is the bound, or the one above; none equals it if it has one.


def narrowed_bound(operator: str, value: Expression, narrow: SqlType) -> Bound:
    """Return the bound of `column operator value` for a column of the type `narrow`.

    The value's type has all values of `narrow`.
    """
    low, high = (Literal(to_stored(value.type, end), value.type) for end in INTEGER_RANGES[narrow.kind])
    least, most = (Literal(end, narrow) for end in INTEGER_RANGES[narrow.kind])
    is_whole = value.type.is_integer
    floor, ceiling = (Cast(value if is_whole else _call(name, value), narrow) for name in ("floor", "ceil"))
    one = Literal(1, narrow)
    match operator:
        case "=":
            within = _call("and", _call(">=", value, low), _call("<=", value, high))
            if not is_whole:
                within = _call("and", within, _call("=", _call("floor", value), value))
            return Points((_choice(narrow, (within, floor)),))
        case "<":
            below = _call("-", ceiling, one)
            return _most(_choice(narrow, (_call(">", value, high), most), (_call(">", value, low), below)))
        case "<=":
            return _most(_choice(narrow, (_call(">", value, high), most), (_call(">=", value, low), floor)))
        case ">":
            above = _call("+", floor, one)
            return _least(_choice(narrow, (_call("<", value, low), least), (_call("<", value, high), above)))
        case _:
            return _least(_choice(narrow, (_call("<", value, low), least), (_call("<=", value, high), ceiling)))


def _choice(type_: SqlType, *branches: tuple[Expression, Expression]) -> Case:
    return Case(branches, Literal(None, type_), type_)


def _most(value: Expression) -> Interval:
    return Interval(highs=(End(value, inclusive=True),))


def _least(value: Expression) -> Interval:
    return Interval(lows=(End(value, inclusive=True),))


def _call(function: str, *arguments: Expression) -> Call:
    made = call(function, *arguments)
    assert isinstance(made, Call), f"{function} takes numbers"
    return made


def rounded_bound(predicate: Expression) -> tuple[Column, Bound] | None:
    """Return a bound of a DECIMAL column that has all rows for which a comparison of the widened column holds.

    The value is rounded to the scale of the column, to a neighbour below or above: `d > 1.005` and `d > 1.00` hold for
    the same numbers of two digits, and both are within `d >= 1.00` and within `d >= 1.01` or one number more.
    """
    match predicate:
        case Call(arguments=(Cast(argument=Column() as column) as cast, value)) if (
            predicate.function in BOUNDING and column.type.kind is Kind.DECIMAL and is_constant(value)
        ):
            bound = None
            if value.type.kind is Kind.DECIMAL and is_widening(column.type, cast.type):
                bound = _bound_of_decimal(predicate.function, value, column.type)
            elif value.type.kind is Kind.DOUBLE and isinstance(value, Literal):
                bound = _bound_of_floating(predicate.function, value.value, column.type)
            return None if bound is None else (column, bound)
        case Call(arguments=(value, Cast(argument=Column()) as cast)) if predicate.function in BOUNDING and is_constant(
            value
        ):
            return rounded_bound(replace(predicate, function=MIRRORED[predicate.function], arguments=(cast, value)))
    return None


def _bound_of_decimal(operator: str, value: Expression, narrow: SqlType) -> Bound:
    """Round the value: a number of the column above it is not below it rounded, whether that is up or down."""
    greatest = _greatest(narrow)
    least, most = Literal(-greatest, narrow), Literal(greatest, narrow)
    rounded = Cast(value, narrow)
    match operator:
        case "=":
            within = _call("and", _call(">=", value, least), _call("<=", value, most))
            return Points((_choice(narrow, (within, rounded)),))
        case "<" | "<=":
            return _most(_choice(narrow, (_call(">", value, most), most), (_call(">=", value, least), rounded)))
        case _:
            return _least(_choice(narrow, (_call("<", value, least), least), (_call("<=", value, most), rounded)))


def _bound_of_floating(operator: str, value: float | None, narrow: SqlType) -> Bound | None:
    """Leave one unit on either side of the value rounded: a conversion to DOUBLE may round as well."""
    if value is None or not math.isfinite(value) or narrow.precision > FLOATING_DIGITS:
        return None
    unit, greatest = Decimal(1).scaleb(-narrow.scale), _greatest(narrow)
    if abs(value) > greatest:
        return None
    with localcontext() as context:
        context.prec = 2 * MAXIMUM_PRECISION
        nearest = Decimal(value).quantize(unit)
        low, high = (
            Literal(to_stored(narrow, end), narrow)
            for end in (max(nearest - unit, -greatest), min(nearest + unit, greatest))
        )
    match operator:
        case "=":
            return Interval((End(low, inclusive=True),), (End(high, inclusive=True),))
        case "<" | "<=":
            return _most(high)
        case _:
            return _least(low)


def _greatest(narrow: SqlType) -> Decimal:
    with localcontext() as context:
        context.prec = MAXIMUM_PRECISION + 1
        return Decimal(10**narrow.precision - 1).scaleb(-narrow.scale)
