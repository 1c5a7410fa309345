"""DATE_DIFF('unit', start, end): how many borders of a unit lie between two moments, as in DuckDB.

From 23:59 to 00:01 is one day. Every unit numbers its stretches of time; the difference is that of the numbers. Only
weeks, which begin on no agreed day, are counted as seven days each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from remuda.expr.function import Datum, Function, Signature
from remuda.expr.functions.arithmetic import truncating_divide
from remuda.expr.functions.calendar import DAY, day_to_date
from remuda.types import BIGINT, DATE, TIMESTAMP, Kind, common_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.types import SqlType

_SECOND = 1_000_000
_LENGTHS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "day": DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
DIFFERENCES = frozenset({*_LENGTHS, *_MONTHS, "week"})


def _resolve(given: Sequence[SqlType]) -> Signature | None:
    shared = common_type(*given) if len(given) == 2 else None
    if shared is None or shared.kind not in {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}:
        return None
    shared = TIMESTAMP if shared == DATE else shared
    return Signature((shared, shared), BIGINT)


def _number_row(unit: str) -> Callable[[int], int]:
    if unit in _LENGTHS:
        length = _LENGTHS[unit]
        return lambda value: value // length
    months = _MONTHS[unit]

    def number(value: int) -> int:
        day = day_to_date(value // DAY)
        return (day.year * 12 + day.month - 1) // months

    return number


def _number_batch(unit: str) -> Callable[[Datum], Datum]:
    if unit in _LENGTHS:
        length = _LENGTHS[unit]
        return lambda value: _floored(pc.cast(value, pa.int64()), length)
    months = _MONTHS[unit]

    def number(value: Datum) -> Datum:
        plain = pc.cast(value, pa.timestamp("us"))
        month = pc.subtract(pc.add(pc.multiply(pc.year(plain), 12), pc.month(plain)), 1)
        return pc.divide(month, pa.scalar(months, pa.int64()))

    return number


def _floored(value: Datum, length: int) -> Datum:
    """Arrow divides toward zero."""
    if length == 1:
        return value
    return pc.divide(pc.subtract(value, pc.if_else(pc.less(value, 0), length - 1, 0)), pa.scalar(length, pa.int64()))


def _difference(unit: str) -> Function:
    if unit == "week":
        days = _difference("day")
        return Function(
            "date_diff week",
            _resolve,
            lambda signature: lambda start, end: pc.divide(days.batch(signature)(start, end), pa.scalar(7, pa.int64())),
            lambda signature: lambda start, end: truncating_divide(days.row(signature)(start, end), 7),
        )
    number, numbers = _number_row(unit), _number_batch(unit)
    return Function(
        f"date_diff {unit}",
        _resolve,
        lambda _: lambda start, end: pc.subtract(numbers(end), numbers(start)),
        lambda _: lambda start, end: number(end) - number(start),
    )


FUNCTIONS = tuple(_difference(unit) for unit in sorted(DIFFERENCES))
