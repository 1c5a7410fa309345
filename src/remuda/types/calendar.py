"""The Gregorian calendar in stored form: days and microseconds since 1970, over arrays and over one value.

The calendar has the years 1 to 9999, the ones that every system around has; what would leave them is an overflow.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from remuda.errors import calendar_error

if TYPE_CHECKING:
    from remuda.types import SqlType

DAY = 86_400_000_000
"""Microseconds."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY
FIRST_INSTANT, LAST_INSTANT = FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1
_LAST_MONTH = 9999 * 12 - 1


def day_to_date(days: int) -> date:
    return date.fromordinal(days + _EPOCH_DAY)


def date_to_day(day: date) -> int:
    return day.toordinal() - _EPOCH_DAY


def add_months(days: int, months: int, result: SqlType) -> int:
    """Add months; a day that the month does not have becomes its last.

    >>> from remuda.types import TIMESTAMP
    >>> str(day_to_date(add_months(date_to_day(date(2024, 1, 31)), 1, TIMESTAMP)))
    '2024-02-29'
    """
    start = day_to_date(days)
    month = (start.year - 1) * 12 + start.month - 1 + months
    if not 0 <= month <= _LAST_MONTH:
        raise overflow(result)
    first = date(month // 12 + 1, month % 12 + 1, 1)
    length = 31 if month == _LAST_MONTH else (date((month + 1) // 12 + 1, (month + 1) % 12 + 1, 1) - first).days
    return date_to_day(first) + min(start.day, length) - 1


def add_months_to_days(days: np.ndarray, months: np.ndarray) -> np.ndarray:
    """Add months to arrays of days; the caller finds an overflow in the result."""
    starts = days.astype("M8[D]")
    first = starts.astype("M8[M]")
    moved = first + np.clip(months, -4 * _LAST_MONTH, 4 * _LAST_MONTH).astype("m8[M]")
    length = (moved + np.timedelta64(1, "M")).astype("M8[D]") - moved.astype("M8[D]")
    day = np.minimum(starts - first.astype("M8[D]"), length - np.timedelta64(1, "D"))
    result: np.ndarray = (moved.astype("M8[D]") + day).astype(np.int64)
    return result


def overflow(result: SqlType) -> Exception:
    return calendar_error(f"the result overflows {result}")
