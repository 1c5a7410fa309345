"""The residual of an ordered index scan: which entries pass it, found before the rest of their rows is fetched.

A consumer that wants few rows stops early, so entries are tested chunk by chunk, in the order of the index, and only
the columns that the residual names are fetched for it. Where very few entries pass, that would go on through the whole
index, each entry a jump into the map. From `filter_cutover` entries on the residual is evaluated for all that are left
in one pass over the rows as they lie; what passes is then delivered in the order of the index:

    entries left, by amount:  7 2 9 4       rows 2, 4, 7, 9 as they lie: 4 and 9 pass       delivered: 9 4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.exec.scan.scan_filter import ScanFilter
from remuda.storage.segment.segment_source import SegmentSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.expr import Parameters
    from remuda.plan.physical import IndexScan
    from remuda.storage import Source

ROWS_AT_ONCE = 262_144
"""Rows that one pass tests before the query is looked after."""


class OrderedResidual:
    """Made once for a plan: see `ExpressionCache`."""

    def __init__(self, node: IndexScan) -> None:
        self._tests = node.residual is not None
        self._tested = ScanFilter(node.map, (), node.residual)
        self._fetched = ScanFilter(node.map, node.columns, None)

    def passing(self, source: Source, positions: np.ndarray, parameters: Parameters) -> np.ndarray:
        """Return those of the positions whose rows pass, in their order."""
        if not self._tests:
            return positions
        passes = self._tested.passing(source.take(self._tested.names, positions), parameters)
        passing: np.ndarray = positions[passes]
        return passing

    def fetch(self, source: Source, positions: np.ndarray, few: int, parameters: Parameters) -> RowBatch:
        """Read the rows at these positions; up to `few` of them one by one."""
        rows = self._fetched
        if len(positions) <= few:
            return rows.apply_to_tuples(source.rows_at(rows.positions, positions), parameters)
        return rows.apply_to_arrow(source.take(rows.names, positions), parameters)

    def find_passing(
        self, source: Source, seen: Sequence[np.ndarray], left: np.ndarray, context: ExecContext
    ) -> Iterator[np.ndarray | None]:
        """Test rows in one pass; yield None after each part of it, at last those of `left` that pass, in their order.

        The rows at `seen` have been tested before; testing them again leaves no holes in a range of rows. No other row
        is tested: it may be deleted, in another partition or outside the bounds, and its test may be an error.
        """
        is_passing = _at_positions(source, seen, left)
        for first in range(0, len(is_passing), ROWS_AT_ONCE):
            stop = min(first + ROWS_AT_ONCE, len(is_passing))
            rows = is_passing[first:stop]
            context.activity.rows_read += stop - first
            context.weight.add(stop - first)
            if isinstance(source, SegmentSource) and rows.all():
                batch = source.read(self._tested.names, first, stop)
                rows[:] = self._tested.passing_in_segment(source.segment, first, batch, context.parameters)
            elif rows.any():
                some = np.flatnonzero(rows)
                batch = source.take(self._tested.names, some + first)
                rows[some] = self._tested.passing(batch, context.parameters)
            yield None
        yield left[is_passing[left]]


def _at_positions(source: Source, seen: Sequence[np.ndarray], left: np.ndarray) -> np.ndarray:
    """Return, for every position of a source, whether it is one of these."""
    count = len(left) + sum(map(len, seen))
    if isinstance(source, SegmentSource) and count == source.segment.rows:
        return np.ones(count, np.bool_)
    found = np.zeros(1 + max(int(some.max()) for some in (*seen, left)), np.bool_)
    for some in (*seen, left):
        found[some] = True
    return found
