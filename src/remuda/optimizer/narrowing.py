"""Comparisons of a widened integer column with a value that is known only at execution, asked of the column itself.

    CAST(f AS BIGINT) < ?   →   f <= CASE WHEN ? > 32767 THEN 32767 WHEN ? > -32768 THEN CAST(? - 1 AS SMALLINT) END

A value beyond the column's type leaves all values or none: the type's own end, or NULL, which nothing satisfies. So no
cast fails, and the index is asked for what the comparison means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Call, Case, Cast, Expression, Literal, call
from remuda.plan.bounds import Bound, End, Interval, Points
from remuda.types import INTEGER_RANGES

if TYPE_CHECKING:
    from remuda.types import SqlType


def narrowed_bound(operator: str, value: Expression, narrow: SqlType) -> Bound:
    """What `column operator value` says of a column of the type `narrow`; the value is a wider integer."""
    low, high = (Literal(end, value.type) for end in INTEGER_RANGES[narrow.kind])
    least, most = (Literal(end.value, narrow) for end in (low, high))
    one, same = Literal(1, value.type), Cast(value, narrow)
    match operator:
        case "=":
            within = _call("and", _call(">=", value, low), _call("<=", value, high))
            return Points((_choice(narrow, (within, same)),))
        case "<":
            below = Cast(_call("-", value, one), narrow)
            return _most(_choice(narrow, (_call(">", value, high), most), (_call(">", value, low), below)))
        case "<=":
            return _most(_choice(narrow, (_call(">", value, high), most), (_call(">=", value, low), same)))
        case ">":
            above = Cast(_call("+", value, one), narrow)
            return _least(_choice(narrow, (_call("<", value, low), least), (_call("<", value, high), above)))
        case _:
            return _least(_choice(narrow, (_call("<", value, low), least), (_call("<=", value, high), same)))


def _choice(type_: SqlType, *branches: tuple[Expression, Expression]) -> Case:
    return Case(branches, Literal(None, type_), type_)


def _most(value: Expression) -> Interval:
    return Interval(highs=(End(value, inclusive=True),))


def _least(value: Expression) -> Interval:
    return Interval(lows=(End(value, inclusive=True),))


def _call(function: str, *arguments: Expression) -> Call:
    made = call(function, *arguments)
    assert isinstance(made, Call), f"{function} takes integers"
    return made
