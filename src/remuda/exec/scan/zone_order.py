"""Zone-ordered scan for a TopN: reads zones by descending maximum, and none that is behind the k-th value.

The first rows of `ORDER BY amount DESC` are where the zone maps have the greatest values, so those zones are read
first; from then on no zone is read whose maximum is behind the *bound*, a value that as many rows as the TopN keeps
have reached. Of ten million rows in any order at all, one or two hundred thousand are read for the first ten. Where a
filter leaves out the best rows, the bound rises later and more is read, but never a row too few.

Maxima and bounds are integers, whatever the type of the key and the direction of the order: greater ones come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.scan.zone_ranges import SMALLEST_GAP
from remuda.storage.segment.zone_map import ZONE_ROWS
from remuda.types.normalized_key import normalized_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.exec.context import OperatorActivity
    from remuda.expr import Column
    from remuda.plan.traits import SortKey
    from remuda.storage import Source

Piece = tuple["Source", int, int]
"""A part of a scan: rows from one position up to another."""

FIRST_ZONES = 64
"""So many zones are read one by one, best first. Where they do not suffice, many are needed, and the rest is read in
the order in which it lies, as many zones at a time as there are side by side."""


class TopNBound:
    """The greatest value that as many rows as a TopN keeps have reached, whichever thread has found them.

    Two threads that raise it at once may leave the lower one: that is true as well.
    """

    __slots__ = ("_descending", "_key_of", "kept", "value")

    def __init__(self, column: Column, *, descending: bool, kept: int) -> None:
        self._key_of = normalized_key(column.type)
        self._descending = descending
        self.kept = kept
        self.value: int | None = None

    def raise_to(self, value: pa.Scalar) -> None:
        if self._key_of is None:
            return
        key = self._key_of(value.value if pa.types.is_temporal(value.type) else value.as_py())
        new = key if self._descending else ~key
        if self.value is None or new > self.value:
            self.value = new


class ZoneOrderedPieces:
    """The pieces of a scan in the order of their zones' maxima, while the bound rises."""

    def __init__(
        self, pieces: list[Piece], column: Column, key: SortKey, bound: TopNBound, activity: OperatorActivity
    ) -> None:
        self._bound = bound
        self._activity = activity
        self._zones_read = 0
        self._without_zones: list[Piece] = []
        self._ranges: list[Piece] = []
        maxima: list[np.ndarray] = []
        zones: list[np.ndarray] = []
        for piece in pieces:
            source, start, stop = piece
            known = source.zone_maxima(column.name, descending=key.descending, nulls_first=key.nulls_first)
            if known is None:
                self._without_zones.append(piece)
                continue
            first, last = start // ZONE_ROWS, (stop - 1) // ZONE_ROWS + 1
            maxima.append(known[first:last])
            zones.append(np.arange(first, last))
            self._ranges.append(piece)
        lengths = [len(each) for each in zones]
        self._maxima = np.concatenate([np.empty(0, np.int64), *maxima])
        self._owners = np.repeat(np.arange(len(lengths)), lengths)
        """Which piece each zone is of."""
        starts = np.concatenate([np.empty(0, np.int64), *zones]) * ZONE_ROWS
        self._starts = np.maximum(starts, np.array([start for _, start, _ in self._ranges], np.int64)[self._owners])
        ends = np.array([stop for _, _, stop in self._ranges], np.int64)[self._owners]
        self._stops = np.minimum(starts + ZONE_ROWS, ends)

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Deliver parts of about so many rows, none twice; each is compared with the bound when it is asked for."""
        yield from self._without_zones
        yield from self._ordered(rows)
        self._activity.decide("zone order: {} of {} zones read", self._zones_read, len(self._maxima))

    def _ordered(self, rows: int) -> Iterator[Piece]:
        order = np.argsort(~self._maxima, kind="stable")
        for zone in order[:FIRST_ZONES].tolist():
            if not self._reaches_bound(self._maxima[zone]):
                return
            yield self._piece(zone, zone)
        is_read = np.zeros(len(order), np.int64)
        is_read[order[:FIRST_ZONES]] = 1
        rest, read_before = np.sort(order[FIRST_ZONES:]), np.cumsum(is_read)
        step = max(1, rows // ZONE_ROWS)
        for start in range(0, len(rest), step):
            some = rest[start : start + step]
            yield from self._joined(some[self._reaches_bound(self._maxima[some])].tolist(), read_before)

    def _reaches_bound(self, maxima: np.ndarray) -> np.ndarray:
        bound = self._bound.value
        return np.ones_like(maxima, np.bool_) if bound is None else maxima >= bound

    def _joined(self, zones: list[int], read_before: np.ndarray) -> Iterator[Piece]:
        """Join neighbouring zones to few pieces: a small gap is read too, unless a zone in it has been read before."""
        while zones:
            first = last = zones[0]
            count = 1
            for zone in zones[1:]:
                gap = self._starts[zone] - self._stops[last]
                is_other = self._owners[zone] != self._owners[last] or read_before[zone] != read_before[last]
                if gap >= SMALLEST_GAP or is_other:
                    break
                last = zone
                count += 1
            yield self._piece(first, last)
            zones = zones[count:]

    def _piece(self, first: int, last: int) -> Piece:
        self._zones_read += last - first + 1
        source, _, _ = self._ranges[self._owners[first]]
        return source, int(self._starts[first]), int(self._stops[last])
