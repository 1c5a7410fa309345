"""The arithmetic of series, for many rows at once: how many values each has, and which.

Values are 64-bit integers, numbers or microseconds. The distance of two of them need not fit into one, so distances
and counts are unsigned; sums wrap around and are right in the end, as no value lies beyond the stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.expr.functions.calendar import DAY, add_months_to_days

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = np.uint64(2**64 - 2)
_LONGEST_MONTH = 31


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How values of a kind follow each other: see the functions for numbers."""

    count: Callable[..., np.ndarray]
    at: Callable[[Any, Any, np.ndarray], np.ndarray]
    after: Callable[[int, int], int]


def is_within(values: np.ndarray, stop: np.ndarray, step: np.ndarray, *, includes_stop: bool) -> np.ndarray:
    """Whether a step of this direction has not yet led from the values past the stop."""
    up, down = (values <= stop, values >= stop) if includes_stop else (values < stop, values > stop)
    within: np.ndarray = np.where(step > 0, up, down)
    return within


def count_values(start: np.ndarray, stop: np.ndarray, step: np.ndarray, *, includes_stop: bool) -> np.ndarray:
    """How many values there are from each start; of 2^64, which nobody will see the end of, one is forgotten."""
    distance = np.where(step > 0, stop - start, start - stop).astype(np.uint64)
    if not includes_stop:
        distance -= np.uint64(1)
    counts = np.minimum(distance // np.abs(step).astype(np.uint64), _MOST) + np.uint64(1)
    return np.where(is_within(start, stop, step, includes_stop=includes_stop), counts, np.uint64(0))


def values_at(first: np.ndarray, step: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The value at each place, counted from the first, 0."""
    is_by_one = step.ndim == 0 and step == 1
    found: np.ndarray = (places if is_by_one else places * step) + first
    return found


def value_after(last: int, step: int) -> int:
    """The value that follows."""
    return last + step


def count_months(start: np.ndarray, stop: np.ndarray, step: np.ndarray, *, includes_stop: bool) -> np.ndarray:
    """How many values there are at most: the last may be in the month of the stop, but after it."""
    distance = _month_of(stop) - _month_of(start)
    counts = distance // np.where(step == 0, 1, step) + 1
    return np.where(is_within(start, stop, step, includes_stop=includes_stop), counts, 0).astype(np.uint64)


def months_at(first: np.ndarray, step: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The same, every value some months after the one before: a day once lost does not come back.

    Places begin at 0 for each series and ascend. The days of a series are the least of those so far; for that to begin
    anew with the next series each is moved below all days of the one before.

        31 Jan, 29 Feb, 31 → 29 Mar | 30 Apr, 31 → 30 May:     days 30 28 28 | 29 - 31, 29 - 31
    """
    days = first // DAY
    months = days.astype("M8[D]").astype("M8[M]")
    moved = (months + places * step).astype("M8[M]")
    month_starts = moved.astype("M8[D]").astype(np.int64)
    longest = (moved + 1).astype("M8[D]").astype(np.int64) - month_starts - 1
    own = np.minimum(days - months.astype("M8[D]").astype(np.int64), longest)
    below = np.cumsum(places == 0) * _LONGEST_MONTH
    kept = np.minimum.accumulate(own - below) + below
    found: np.ndarray = (month_starts + kept) * DAY + (first - days * DAY)
    return found


def month_after(last: int, step: int) -> int:
    day = last // DAY
    return int(add_months_to_days(np.array([day]), np.array([step]))[0]) * DAY + last - day * DAY


def _month_of(moments: np.ndarray) -> np.ndarray:
    return (moments // DAY).astype("M8[D]").astype("M8[M]").astype(np.int64)


NUMBERS = Arithmetic(count_values, values_at, value_after)
MONTHS = Arithmetic(count_months, months_at, month_after)
