"""Dates and times made of numbers, the last day of a month, and the names of days and months."""

from __future__ import annotations

import datetime as dt
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import calendar_error
from remuda.expr.evaluate.by_rows import plain_function
from remuda.expr.function import Datum, Function, Signature
from remuda.types import BIGINT, DATE, DOUBLE, TIME, TIMESTAMP, TIMESTAMP_TZ, VARCHAR, Kind
from remuda.types.arrow_compute import pc
from remuda.types.calendar import (
    DAY,
    FIRST_INSTANT,
    LAST_INSTANT,
    add_months,
    date_to_day,
    day_to_date,
    overflow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.types import SqlType

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SECOND = 1_000_000


def _make_date(year: int, month: int, day: int) -> int:
    try:
        return date_to_day(dt.date(year, month, day))
    except (ValueError, OverflowError):
        raise calendar_error(f"there is no day {year}-{month}-{day}") from None


def _make_time(hour: int, minute: int, second: float) -> int:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise calendar_error(f"there is no time {hour}:{minute}:{second}")
    return min((hour * 60 + minute) * 60 * _SECOND + round(second * _SECOND), DAY - 1)


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    return _make_date(year, month, day) * DAY + _make_time(hour, minute, second)


def _from_seconds(seconds: float) -> int:
    instant = seconds * _SECOND  # infinite where the seconds are too many
    if not math.isfinite(instant) or not FIRST_INSTANT <= round(instant) <= LAST_INSTANT:
        raise overflow(TIMESTAMP_TZ)
    return round(instant)


def _resolve_dated(result: SqlType) -> Callable[[Sequence[SqlType]], Signature | None]:
    def resolve(given: Sequence[SqlType]) -> Signature | None:
        dated = len(given) == 1 and given[0].kind in {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}
        return Signature((DATE,), result) if dated else None

    return resolve


def _last_day(day: int) -> int:
    first = day - day_to_date(day).day + 1
    month = day_to_date(first)
    if (month.year, month.month) == (9999, 12):
        return first + 30
    return add_months(first, 1, DATE) - 1


def _last_day_batch(value: Datum) -> Datum:
    if isinstance(value, pa.Scalar):
        return _last_day_batch(pa.repeat(value, 1))[0]
    months = np.asarray(pc.fill_null(pc.cast(value, pa.int32()), 0)).astype("M8[D]").astype("M8[M]")
    last = (months + np.timedelta64(1, "M")).astype("M8[D]").astype(np.int32) - np.int32(1)
    return pc.if_else(pc.is_valid(value), pc.cast(pa.array(last), pa.date32()), pa.scalar(None, pa.date32()))


@cache
def _words(names: tuple[str, ...]) -> pa.Array:
    """Made when first used: with its first array pyarrow imports pandas, which `import remuda` must not."""
    return pa.array(names, pa.string())


def _named(
    name: str, names: tuple[str, ...], batch: Callable[[Datum], Datum], row: Callable[[dt.date], int]
) -> Function:
    def evaluate(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            return evaluate(pa.repeat(value, 1))[0]
        return _words(names).take(batch(value))

    def one(day: int) -> Any:
        return names[row(day_to_date(day))]

    return Function(name, _resolve_dated(VARCHAR), lambda _: evaluate, lambda _: one, hints=(DATE,))


FUNCTIONS = (
    plain_function("make_date", [BIGINT, BIGINT, BIGINT], DATE, _make_date, can_fail=True),
    plain_function("make_time", [BIGINT, BIGINT, DOUBLE], TIME, _make_time, can_fail=True),
    plain_function(
        "make_timestamp", [BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE], TIMESTAMP, _make_timestamp, can_fail=True
    ),
    plain_function("to_timestamp", [DOUBLE], TIMESTAMP_TZ, _from_seconds, can_fail=True),
    Function("last_day", _resolve_dated(DATE), lambda _: _last_day_batch, lambda _: _last_day, hints=(DATE,)),
    _named("dayname", DAYS, pc.day_of_week, lambda day: day.weekday()),
    _named("monthname", MONTHS, lambda value: pc.subtract(pc.month(value), 1), lambda day: day.month - 1),
)
