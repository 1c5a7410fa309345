"""Tells what a scan reads next, so that it is fetched by few requests: more with each piece that is asked for.

A scan that ends early, below a LIMIT, has fetched little; one that goes on fetches a column in a few pieces.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

GROWTH = 8
"""How many times as many rows are fetched as before, when a scan has read those."""
MOST_ROWS = 1 << 21
"""Rows that are fetched at a time: 16 MiB of each column of eight bytes."""


class ReadAhead:
    """Counts the rows of one scan in the order in which it reads its ranges.

    >>> ahead = ReadAhead([(0, 100), (200, 1000)])
    >>> ahead.wanted(0, 10)
    [slice(0, 10, None)]
    >>> ahead.wanted(10, 20)
    [slice(10, 90, None)]
    >>> ahead.wanted(20, 30)
    []
    >>> ahead.wanted(90, 100)
    [slice(90, 100, None), slice(200, 830, None)]
    """

    __slots__ = ("_before", "_fetched", "_lock", "_ranges", "_starts", "_window")

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._ranges = list(ranges)
        self._starts = [start for start, _ in ranges]
        self._before = [0, *accumulate(stop - start for start, stop in ranges)]
        self._fetched = 0
        self._window = 0
        self._lock = Lock()

    def wanted(self, start: int, stop: int) -> list[slice]:
        """Return the rows to fetch before these are read; none where they are fetched, or are being fetched."""
        number = bisect_right(self._starts, start) - 1
        if number < 0 or stop > self._ranges[number][1]:
            return [slice(start, stop)]
        first = self._before[number] + start - self._starts[number]
        with self._lock:
            if first > self._fetched:
                return [slice(start, stop)]  # The scan reads in another order.
            last = first + stop - start
            if last <= self._fetched:
                return []
            begin = self._fetched
            self._window = min(max(GROWTH * self._window, last - begin), MOST_ROWS)
            self._fetched = min(max(last, begin + self._window), self._before[-1])
            return self._rows(begin, self._fetched)

    def _rows(self, begin: int, end: int) -> list[slice]:
        found = []
        for (start, stop), before in zip(self._ranges, self._before, strict=False):
            low, high = max(start, start + begin - before), min(stop, start + end - before)
            if low < high:
                found.append(slice(low, high))
        return found
