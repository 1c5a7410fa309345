"""Zone pruning: the parts of a map that a full scan reads, without the zones whose extremes no row can pass between.

Rows of a partition stand in the order they came in, so a column that grows with time has zones of few values, and a
filter on it leaves out most of them. A part that is read has its own price, that of starting the kernels: a gap is left
out only if reading it would cost more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.scan.concrete_bounds import interval_range
from remuda.expr import Call, Column, Literal, Parameter, can_fail, conjuncts
from remuda.plan.bounds import End, Interval
from remuda.storage.segment.zone_map import common_ranges
from remuda.types import Kind
from remuda.types.arrow_arrays import is_fixed_width

if TYPE_CHECKING:
    import numpy as np

    from remuda.expr import Expression, Parameters
    from remuda.storage import Source

SMALLEST_GAP = 65_536
"""Rows: reading fewer takes no longer than beginning anew behind them."""

Ends = tuple[tuple[End, ...], tuple[End, ...]]
Ranges = list[tuple[int, int]]


class ZoneRanges:
    """The intervals of a filter's columns, made once for a plan. A filter that is an error for some row has none."""

    def __init__(self, predicate: Expression | None) -> None:
        found: dict[str, Interval] = {}
        for conjunct in [] if predicate is None or can_fail(predicate) else conjuncts(predicate):
            match conjunct:
                case Call(function, (Column() as column, Literal() | Parameter() as value)) if (
                    is_fixed_width(column.type) and column.type.kind is not Kind.BOOLEAN
                ):
                    lows, highs = _ends(function, value)
                    known = found.get(column.name, Interval())
                    if lows or highs:
                        found[column.name] = Interval(known.lows + lows, known.highs + highs)
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


def _ends(function: str, value: Expression) -> Ends:
    """Return the ends that a comparison sets to its column, from below and from above."""
    match function:
        case "=":
            return (End(value, True),), (End(value, True),)
        case "<" | "<=":
            return (), (End(value, function == "<="),)
        case ">" | ">=":
            return (End(value, function == ">="),), ()
        case _:
            return (), ()


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
