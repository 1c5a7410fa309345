"""The blocks of a scan in the order in which they can have the first rows of an order, and none that can have none.

The first rows of `ORDER BY amount DESC` are where the zone maps have the greatest values, so those blocks are read
first; from then on no block is read whose greatest value is behind the *threshold*, a value that as many rows as are
wanted have reached. Of ten million rows in any order at all, one or two hundred thousand are read for the first ten.
Where a filter leaves out the best rows, the threshold rises later and more is read, but never a row too few.

Whatever the direction of the order, a block and a threshold have a *height*, an integer, and greater ones come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.scan.zone_ranges import SMALLEST_GAP
from remuda.storage.index.value_order import direct_key
from remuda.storage.segment.zone_map import ZONE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.expr import Column
    from remuda.plan.traits import SortKey
    from remuda.storage import Source

Piece = tuple["Source", int, int]
"""A part of a scan: rows from one position up to another."""

BLOCKS_FOR_EACH = 32
"""There must be so many blocks for each row that is wanted, or that a filter sees for each one of those that it keeps:
with fewer, rows in no order at all are in so many blocks that leaving the others out costs more than reading them
(measured at ten million rows: ten rows, half of which pass, 35 → 8 ms; with 3 in 100 that pass 21 → 39)."""

FIRST_BLOCKS = 64
"""So many blocks are read one by one, best first. Where they do not suffice, many are needed, and the rest is read in
the order in which it lies, as many blocks at a time as there are side by side."""


class TopNBound:
    """The greatest height that as many rows as are wanted have reached, whichever thread has found them.

    Two threads that set it at once may leave the lower one: that is true as well.
    """

    __slots__ = ("_descending", "_key_of", "height")

    def __init__(self, column: Column, *, descending: bool) -> None:
        self._key_of = direct_key(column.type)
        self._descending = descending
        self.height: int | None = None

    def reach(self, value: pa.Scalar) -> None:
        if self._key_of is None:
            return
        key = self._key_of(value.value if pa.types.is_temporal(value.type) else value.as_py())
        height = key if self._descending else ~key
        if self.height is None or height > self.height:
            self.height = height


class BestFirst:
    """What is left of a scan's ranges, while the threshold rises."""

    def __init__(self, ranges: list[Piece], column: Column, key: SortKey, threshold: TopNBound) -> None:
        self._threshold = threshold
        self._unknown: list[Piece] = []
        self._ranges: list[Piece] = []
        heights: list[np.ndarray] = []
        blocks: list[np.ndarray] = []
        for piece in ranges:
            source, start, stop = piece
            known = source.heights(column.name, descending=key.descending, nulls_first=key.nulls_first)
            if known is None:
                self._unknown.append(piece)
                continue
            first, last = start // ZONE_ROWS, (stop - 1) // ZONE_ROWS + 1
            heights.append(known[first:last])
            blocks.append(np.arange(first, last))
            self._ranges.append(piece)
        lengths = [len(each) for each in blocks]
        self._heights = np.concatenate([np.empty(0, np.int64), *heights])
        self._owners = np.repeat(np.arange(len(lengths)), lengths)
        """Which range each block is of."""
        starts = np.concatenate([np.empty(0, np.int64), *blocks]) * ZONE_ROWS
        self._starts = np.maximum(starts, np.array([start for _, start, _ in self._ranges], np.int64)[self._owners])
        ends = np.array([stop for _, _, stop in self._ranges], np.int64)[self._owners]
        self._stops = np.minimum(starts + ZONE_ROWS, ends)

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Parts of the ranges, of about so many rows; none twice. Each is looked at when it is asked for."""
        yield from self._unknown
        order = np.argsort(~self._heights, kind="stable")
        for block in order[:FIRST_BLOCKS].tolist():
            if not self._reaches(self._heights[block]):
                return
            yield self._piece(block, block)
        read = np.zeros(len(order), np.int64)
        read[order[:FIRST_BLOCKS]] = 1
        rest, passed = np.sort(order[FIRST_BLOCKS:]), np.cumsum(read)
        step = max(1, rows // ZONE_ROWS)
        for start in range(0, len(rest), step):
            some = rest[start : start + step]
            yield from self._joined(some[self._reaches(self._heights[some])].tolist(), passed)

    def _reaches(self, heights: np.ndarray) -> np.ndarray:
        height = self._threshold.height
        return np.ones_like(heights, np.bool_) if height is None else heights >= height

    def _joined(self, blocks: list[int], passed: np.ndarray) -> Iterator[Piece]:
        """As few pieces as possible: a small gap is read too, unless a block in it has been read before."""
        while blocks:
            first = last = blocks[0]
            taken = 1
            for block in blocks[1:]:
                gap = self._starts[block] - self._stops[last]
                if gap >= SMALLEST_GAP or self._owners[block] != self._owners[last] or passed[block] != passed[last]:
                    break
                last = block
                taken += 1
            yield self._piece(first, last)
            blocks = blocks[taken:]

    def _piece(self, first: int, last: int) -> Piece:
        source, _, _ = self._ranges[self._owners[first]]
        return source, int(self._starts[first]), int(self._stops[last])
