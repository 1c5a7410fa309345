"""Comparisons of a widened integer column with a value that is known only at execution, asked of the column itself.

    CAST(f AS BIGINT) < ?   →   f <= CASE WHEN ? > 32767 THEN 32767 WHEN ? > -32768 THEN CAST(? AS SMALLINT) - 1 END

A value beyond the column's type leaves all values or none: the type's own end, or NULL, which nothing satisfies. So no
cast fails, and the index is asked for what the comparison means. Of a value that may have a fraction, `f = FLOOR(?)`,
the whole number below it is asked for, or the one above; none equals it if it has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Call, Case, Cast, Expression, Literal, call
from remuda.plan.bounds import Bound, End, Interval, Points
from remuda.types import INTEGER_RANGES, to_stored

if TYPE_CHECKING:
    from remuda.types import SqlType


def narrowed_bound(operator: str, value: Expression, narrow: SqlType) -> Bound:
    """What `column operator value` says of a column of the type `narrow`; the value's type has all of its values."""
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
