"""Zone pruning: the parts of a map that a full scan reads, without the zones whose extremes no row can pass between.

Rows of a partition stand in the order they came in, so a column that grows with time has zones of few values, and a
filter on it leaves out most of them. A part that is read has its own price, that of starting the kernels: a gap is left
out only if reading it would cost more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.scan.concrete_bounds import interval_range
from remuda.expr import can_fail, conjuncts
from remuda.expr.column_comparison import recognise
from remuda.plan.bounds import Interval, interval_of
from remuda.storage.segment.zone_map import common_ranges
from remuda.types.arrow_arrays import is_fixed_width

if TYPE_CHECKING:
    import numpy as np

    from remuda.expr import Expression, Parameters
    from remuda.storage import Source

SMALLEST_GAP = 65_536
"""Rows: reading fewer takes no longer than beginning anew behind them."""

Ranges = list[tuple[int, int]]


class ZoneRanges:
    """The intervals of a filter's columns, made once for a plan. A filter that is an error for some row has none."""

    def __init__(self, predicate: Expression | None) -> None:
        found: dict[str, Interval] = {}
        for conjunct in [] if predicate is None or can_fail(predicate) else conjuncts(predicate):
            comparison = recognise(conjunct)
            if comparison is None or not is_fixed_width(comparison.column.type) or not comparison.is_of_numbers:
                continue
            interval = interval_of(comparison)
            if interval is not None:
                known = found.get(comparison.column.name, Interval())
                found[comparison.column.name] = Interval(known.lows + interval.lows, known.highs + interval.highs)
        self._intervals = found

    def of(self, source: Source, partitions: np.ndarray | None, parameters: Parameters) -> Ranges:
        """Return ascending ranges of positions, outside of which no row of these partitions passes."""
        whole = source.ranges(partitions)
        if not self._intervals or sum(stop - start for start, stop in whole) < SMALLEST_GAP:
            return whole
        kept = whole
        for name, interval in self._intervals.items():
            range_ = interval_range(interval, parameters.values)
            if range_ is None:
                return []
            kept = common_ranges(kept, source.blocks(partitions, name, range_))
        return joined(whole, kept)


def joined(whole: Ranges, kept: Ranges) -> Ranges:
    """Join the ranges kept, each within one of `whole`, where those of one have only a small gap between them.

    >>> joined(
    ...     [(0, 1_000_000), (2_000_000, 2_000_010)], [(0, 10), (60, 80), (500_000, 500_010), (2_000_000, 2_000_005)]
    ... )
    [(0, 80), (500000, 500010), (2000000, 2000005)]
    """
    found: Ranges = []
    ends = iter(whole)
    end = -1
    for start, stop in kept:
        if start < end and start - found[-1][1] < SMALLEST_GAP:
            found[-1] = (found[-1][0], stop)
            continue
        while end <= start:
            end = next(ends)[1]
        found.append((start, stop))
    return found
