"""What a range means, for tests to compare with."""

from __future__ import annotations

from typing import Any

from remuda.storage import UNBOUNDED, Range
from remuda.types.normalized_key import comparable


def is_within(value: Any, wanted: Range) -> bool:
    """The definition of a range, written as plainly as possible."""
    if value is None or wanted.low is None or wanted.high is None:
        return False
    place = comparable(value)
    if wanted.low is not UNBOUNDED:
        low = comparable(wanted.low)
        if place < low or (place == low and not wanted.low_inclusive):
            return False
    if wanted.high is not UNBOUNDED:
        high = comparable(wanted.high)
        if place > high or (place == high and not wanted.high_inclusive):
            return False
    return True
