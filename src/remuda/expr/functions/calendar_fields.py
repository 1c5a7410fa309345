"""EXTRACT(field FROM moment), DATE_TRUNC('unit', moment) and DATE_DIFF('unit', start, end).

Each field and each unit is a function of its own. `second` and `epoch` have a fraction, as in PostgreSQL, and so are
DECIMAL; weeks are those of ISO 8601, from Monday.

DATE_DIFF counts the borders of a unit between two moments, as in DuckDB: from 23:59 to 00:01 is one day. Every unit
numbers its stretches of time; the difference is that of the numbers. Only weeks, which begin on no agreed day, are
counted as seven days each.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.expr.function import Datum, Function, Overload, Signature, overloaded
from remuda.expr.functions.arithmetic import truncating_divide
from remuda.types import (
    BIGINT,
    DATE,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    Kind,
    SqlType,
    common_type,
    decimal,
)
from remuda.types.arrow_compute import pc
from remuda.types.calendar import DAY, date_to_day, day_to_date

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date


_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_DATED = frozenset({DATE, TIMESTAMP, TIMESTAMP_TZ})
_CLOCKED = frozenset({TIME, TIMESTAMP, TIMESTAMP_TZ})
_SECONDS_TYPE, _EPOCH_TYPE = decimal(8, 6), decimal(20, 6)


def _field(types: frozenset[SqlType], batch: Any, row: Any, result: SqlType = BIGINT) -> Overload:
    """Define a field; `batch` and `row` take the value and its type."""

    def resolve(given: Sequence[SqlType]) -> Signature | None:
        return Signature((given[0],), result) if len(given) == 1 and given[0] in types else None

    return Overload(
        resolve,
        lambda signature: lambda value: batch(value, signature.arguments[0]),
        lambda signature: lambda value: row(value, signature.arguments[0]),
    )


def _of_day(kernel: Callable[[Datum], Datum], row: Callable[[date], int]) -> Overload:
    """Return a field of the calendar."""

    def batch(value: Datum, type_: SqlType) -> Datum:
        return pc.cast(kernel(value if type_ == DATE else pc.cast(value, pa.timestamp("us"))), pa.int64())

    return _field(_DATED, batch, lambda value, type_: row(day_to_date(value if type_ == DATE else value // DAY)))


def _of_clock(unit: int, whole: int) -> tuple[Overload, Overload]:
    """Return a field of the time of day: the whole units in what is left after all multiples of `whole`."""
    return (
        _field(
            _CLOCKED,
            lambda value, type_: _quotient(_rest(_time_of_day(value, type_), whole), unit),
            lambda value, _: value % DAY % whole // unit,
        ),
        _of_interval(INTERVAL_TIME, unit, whole),
    )


def _of_interval(type_: SqlType, unit: int, whole: int | None) -> Overload:
    """Define a field of an INTERVAL; one below zero has fields below zero."""

    def batch(value: Datum, _: SqlType) -> Datum:
        size = pc.cast(value, pa.int64())
        return _quotient(size if whole is None else _rest(size, whole), unit)

    def row(value: int, _: SqlType) -> int:
        field = (abs(value) if whole is None else abs(value) % whole) // unit
        return field if value >= 0 else -field

    return _field(frozenset({type_}), batch, row)


def _microseconds(value: Datum, type_: SqlType) -> Datum:
    if type_ == DATE:
        return pc.multiply(pc.cast(pc.cast(value, pa.int32()), pa.int64()), DAY)
    return pc.cast(value, pa.int64())


def _time_of_day(value: Datum, type_: SqlType) -> Datum:
    """Microseconds since midnight, before 1970 too: Arrow divides toward zero."""
    rest = _rest(_microseconds(value, type_), DAY)
    return pc.if_else(pc.less(rest, 0), pc.add(rest, DAY), rest)


def _quotient(value: Datum, unit: int) -> Datum:
    return pc.divide(value, pa.scalar(unit, pa.int64()))


def _rest(value: Datum, whole: int) -> Datum:
    return pc.subtract(value, pc.multiply(_quotient(value, whole), pa.scalar(whole, pa.int64())))


def _seconds(microseconds: Datum, result: SqlType) -> Datum:
    whole = pc.cast(microseconds, pa.decimal128(19, 0))
    return pc.cast(pc.multiply(whole, pa.scalar(Decimal("0.000001"), pa.decimal128(6, 6))), result.arrow)


def _seconds_row(microseconds: int) -> Decimal:
    return Decimal(microseconds).scaleb(-6)


_SECOND_FIELD = (
    _field(
        _CLOCKED,
        lambda value, type_: _seconds(_rest(_time_of_day(value, type_), _MINUTE), _SECONDS_TYPE),
        lambda value, _: _seconds_row(value % _MINUTE),
        _SECONDS_TYPE,
    ),
    _field(
        frozenset({INTERVAL_TIME}),
        lambda value, type_: _seconds(_rest(_microseconds(value, type_), _MINUTE), _SECONDS_TYPE),
        lambda value, _: _seconds_row(value % _MINUTE if value >= 0 else -(-value % _MINUTE)),
        _SECONDS_TYPE,
    ),
)
_EPOCH_FIELD = _field(
    _DATED | {TIME, INTERVAL_TIME},
    lambda value, type_: _seconds(_microseconds(value, type_), _EPOCH_TYPE),
    lambda value, type_: _seconds_row(value * DAY if type_ == DATE else value),
    _EPOCH_TYPE,
)


def _weekday_from_sunday(value: Datum) -> Datum:
    return pc.day_of_week(value, count_from_zero=True, week_start=7)


def _weekday_from_monday(value: Datum) -> Datum:
    return pc.day_of_week(value, count_from_zero=False, week_start=1)


def _of_year(shift: int, length: int) -> Overload:
    """Return the number of the decade, century or millennium: the 21st century has the years 2001 to 2100."""
    return _of_day(
        lambda value: pc.divide(pc.add(pc.year(value), shift), length), lambda day: (day.year + shift) // length
    )


def _of_second(unit: int, result: SqlType) -> Overload:
    """Return the seconds within the minute, in a smaller unit."""

    def batch(value: Datum, type_: SqlType) -> Datum:
        rest = _rest(_time_of_day(value, type_), _MINUTE)
        return rest if unit == 1 else _thousandths(rest, result)

    return _field(
        _CLOCKED,
        batch,
        lambda value, _: value % _MINUTE if unit == 1 else Decimal(value % _MINUTE).scaleb(-3),
        result,
    )


def _thousandths(value: Datum, result: SqlType) -> Datum:
    whole = pc.cast(value, pa.decimal128(19, 0))
    return pc.cast(pc.multiply(whole, pa.scalar(Decimal("0.001"), pa.decimal128(3, 3))), result.arrow)


_FIELDS: dict[str, tuple[Overload, ...]] = {
    "year": (_of_day(pc.year, lambda day: day.year), _of_interval(INTERVAL_MONTHS, 12, None)),
    "month": (_of_day(pc.month, lambda day: day.month), _of_interval(INTERVAL_MONTHS, 1, 12)),
    "day": (_of_day(pc.day, lambda day: day.day), _of_interval(INTERVAL_TIME, DAY, None)),
    "quarter": (_of_day(pc.quarter, lambda day: (day.month + 2) // 3),),
    "week": (_of_day(pc.iso_week, lambda day: day.isocalendar().week),),
    "isoyear": (_of_day(pc.iso_year, lambda day: day.isocalendar().year),),
    "dow": (_of_day(_weekday_from_sunday, lambda day: day.isoweekday() % 7),),
    "isodow": (_of_day(_weekday_from_monday, lambda day: day.isoweekday()),),
    "doy": (_of_day(pc.day_of_year, lambda day: day.timetuple().tm_yday),),
    "hour": _of_clock(_HOUR, DAY),
    "minute": _of_clock(_MINUTE, _HOUR),
    "second": _SECOND_FIELD,
    "epoch": (_EPOCH_FIELD,),
    "decade": (_of_year(0, 10),),
    "century": (_of_year(99, 100),),
    "millennium": (_of_year(999, 1000),),
    "millisecond": (_of_second(1000, decimal(8, 3)),),
    "microsecond": (_of_second(1, BIGINT),),
}


def _first_of(months: int) -> Callable[[int], int]:
    """Return the first day of the group of so many months to which a moment belongs."""

    def truncate(value: int) -> int:
        day = day_to_date(value // DAY)
        return date_to_day(day.replace(month=(day.month - 1) // months * months + 1, day=1)) * DAY

    return truncate


def _monday(value: int) -> int:
    days = value // DAY
    return (days - day_to_date(days).weekday()) * DAY


def _multiple_of(unit: int) -> Callable[[int], int]:
    return lambda value: value - value % unit


_UNITS: dict[str, Callable[[int], int]] = {
    "year": _first_of(12),
    "quarter": _first_of(3),
    "month": _first_of(1),
    "week": _monday,
    "day": _multiple_of(DAY),
    "hour": _multiple_of(_HOUR),
    "minute": _multiple_of(_MINUTE),
    "second": _multiple_of(_SECOND),
    "millisecond": _multiple_of(1000),
}


def _truncate(unit: str, row: Callable[[int], int]) -> Function:
    def resolve(given: Sequence[SqlType]) -> Signature | None:
        if len(given) != 1 or given[0] not in _DATED:
            return None
        result = TIMESTAMP if given[0] == DATE else given[0]
        return Signature((result,), result)

    def batch(signature: Signature) -> Callable[[Datum], Datum]:
        def truncate(value: Datum) -> Datum:
            plain = pc.floor_temporal(pc.cast(value, pa.timestamp("us")), unit=unit, week_starts_monday=True)
            return pc.cast(pc.cast(plain, pa.int64()), signature.result.arrow)

        return truncate

    return Function(f"date_trunc {unit}", resolve, batch, lambda _: row)


EXTRACTED = frozenset(_FIELDS)
TRUNCATED = frozenset(_UNITS)


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


FUNCTIONS = (
    *(overloaded(f"extract {name}", *overloads) for name, overloads in _FIELDS.items()),
    *(_truncate(unit, row) for unit, row in _UNITS.items()),
    *tuple(_difference(unit) for unit in sorted(DIFFERENCES)),
)
