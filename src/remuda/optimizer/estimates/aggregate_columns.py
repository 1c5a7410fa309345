"""What is known of the results of aggregates: how many different ones there are, and how they are spread.

    SELECT o FROM lines GROUP BY o HAVING SUM(quantity) > 300       quantities from 1 to 50, four lines to an order

The sum of four lines is about 102, give or take 58: hardly one in 3,000 orders is above 300, and not every second one.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from remuda.catalog import ColumnStatistics, Histogram
from remuda.catalog.histogram import are_numbers
from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remuda.plan.aggregates import AggregateCall

STEPS = (-4.0, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Deviations from the mean at which a histogram of sums has its ends."""
MOST_RANGES = 16
"""Ranges of a histogram, and most common values, by which a mean is told, about."""
SURE = 0.1
"""The variance of counts, at least."""
LARGEST = 1e300
"""Larger numbers have no square."""


@dataclass(frozen=True, slots=True)
class Moments:
    mean: float
    variance: float


def result_columns(
    calls: Sequence[AggregateCall], groups: float, rows: float, columns: Mapping[int, ColumnStatistics]
) -> dict[int, ColumnStatistics]:
    """Return what is known of the results of these calls over so many rows in so many groups."""
    found: dict[int, ColumnStatistics] = {}
    of_group = max(1.0, rows / max(1.0, groups))
    for call in calls:
        argument = None if call.argument is None else columns.get(call.argument.id)
        result = _result(call, groups, of_group, argument)
        if result is not None:
            found[call.column.id] = result
    return found


def _result(
    call: AggregateCall, groups: float, of_group: float, argument: ColumnStatistics | None
) -> ColumnStatistics | None:
    match call.function:
        case "count" if not call.distinct:
            nulls = 0.0 if argument is None else argument.null_share
            least = 0 if nulls or groups <= 1 else 1
            counted = of_group * (1.0 - nulls)
            # A count of up to n is one below n + 0.5. Groups of one row each are never quite sure to be that.
            counts = Moments(counted - 0.5, max(SURE, counted - least))
            spread = ColumnStatistics() if groups <= 1 else _spread(counts, least)
            return _with_distinct(spread, min(groups, 1.0 + 6.0 * math.sqrt(counted)))
        case "sum" | "avg" if not call.distinct:
            moments = None if argument is None or groups <= 1 else moments_of(argument)
            if moments is None:
                return _with_distinct(ColumnStatistics(), groups)
            squares = (of_group - 1.0) * moments.mean**2
            total = Moments(moments.mean * of_group, of_group * moments.variance + squares)
            if call.function == "avg":
                total = Moments(moments.mean, moments.variance / of_group)
            return _with_distinct(_spread(total, None), groups)
        case "min" | "max" if argument is not None:
            values = groups if argument.distinct is None else min(groups, argument.distinct)
            kept = ColumnStatistics(minimum=argument.minimum, maximum=argument.maximum)
            if of_group < 2.0:  # most groups have one row: its value
                kept = ColumnStatistics(None, argument.null_share, *_of_values(argument))
            return _with_distinct(kept, values)
        case _:
            return None


def _of_values(known: ColumnStatistics) -> tuple[object, object, Histogram | None, tuple[tuple[object, float], ...]]:
    return known.minimum, known.maximum, known.histogram, known.common


def _with_distinct(known: ColumnStatistics, distinct: float) -> ColumnStatistics:
    return ColumnStatistics(max(1, round(distinct)), known.null_share, *_of_values(known))


def moments_of(known: ColumnStatistics) -> Moments | None:
    """Return the mean and the variance of a column's numbers, by some of those that are known of it."""
    parts = _spread_values(known)
    if not parts or not all(_is_small(low) and _is_small(high) for low, high, _ in parts):
        return None
    ranges = [(float(low), float(high), share) for low, high, share in parts]
    weight = sum(share for _, _, share in ranges)
    if weight <= 0:
        return None
    mean = sum((low + high) / 2 * share for low, high, share in ranges) / weight
    squares = sum((((low + high) / 2 - mean) ** 2 + (high - low) ** 2 / 12) * share for low, high, share in ranges)
    variance = squares / weight
    return Moments(mean, variance) if math.isfinite(mean) and math.isfinite(variance) else None


def _spread_values(known: ColumnStatistics) -> list[tuple[Any, Any, float]]:
    """Return ranges of values, each with its share of the rows: not all that are known, which would take long."""
    step = max(1, len(known.common) // MOST_RANGES)
    parts = [(value, value, share * step) for value, share in known.common[::step]]
    histogram = known.histogram
    if histogram is None:
        return [*parts, (known.minimum, known.maximum, known.rest)] if known.rest > 0 else parts
    last = len(histogram.ends) - 1
    bounds = [*range(0, last, max(1, last // MOST_RANGES)), last]
    ends, shares = histogram.ends, histogram.up_to
    parts.append((ends[0], ends[0], shares[0] * known.rest))
    parts.extend(
        (ends[first], ends[stop], (shares[stop] - shares[first]) * known.rest)
        for first, stop in itertools.pairwise(bounds)
    )
    return parts


def _is_small(value: Any) -> bool:
    return are_numbers(value) and not isinstance(value, bool) and abs(value) < math.sqrt(LARGEST)


def _spread(moments: Moments, least: int | None) -> ColumnStatistics:
    """Return what is known of numbers that are spread as a sum of many is; none of them is below `least`."""
    deviation = math.sqrt(moments.variance)
    if not math.isfinite(deviation) or not math.isfinite(moments.mean):
        return ColumnStatistics()
    ends: list[float] = []
    shares: list[float] = []
    for end in [moments.mean + step * deviation for step in STEPS]:
        if least is not None and end <= least:
            end = float(least)  # noqa: PLW2901
            ends, shares = [], []
        if not ends or end > ends[-1]:
            ends.append(end)
            shares.append(_normal((end - moments.mean) / deviation) if deviation else 1.0)
    shares[-1] = 1.0
    return ColumnStatistics(minimum=ends[0], maximum=ends[-1], histogram=Histogram(tuple(ends), tuple(shares)))


def _normal(step: float) -> float:
    """Return the share of a normal distribution up to so many deviations from its mean."""
    return 0.5 * (1.0 + math.erf(step / math.sqrt(2.0)))
