"""What a segment remembers about the values of a column, and what several segments know together.

Distinct values are counted where that is cheap (`value_counts`) and estimated from a sample elsewhere. Beside the most
common ones, the estimate asks: from how many equally frequent values D would so many rows show so many different ones?
Drawing r rows shows `D * (1 - exp(-r / D))` of them. The same formula, read forwards, tells how many a whole map of R
rows has, which is why five values in each of ten segments are five and a million keys in each are ten million.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.catalog import ColumnStatistics
from remuda.dataclass import dataclass
from remuda.storage.segment.summary.column_histogram import combined, describe_values, part_of
from remuda.storage.segment.summary.value_counts import ValueCounts, count_values
from remuda.types import Kind, SqlType
from remuda.types.arrow_arrays import is_dictionary, stored_list
from remuda.types.arrow_compute import pc
from remuda.types.normalized_key import comparable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST_BOUND = 200
"""A longer string is no use as minimum or maximum: it would only fill the manifest."""


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Summarises the values of a column in one segment.

    `minimum` and `maximum` in stored form; None where there is no value, or none short enough to keep.
    """

    rows: int
    nulls: int
    distinct: int
    minimum: Any
    maximum: Any
    histogram: tuple[Any, ...] = ()
    """The ends of ranges of all values but the most common ones, with about equally many rows each."""
    common: tuple[tuple[Any, int], ...] = ()
    """The most common values with their counts; segments of earlier versions have none."""
    up_to: tuple[float, ...] = ()
    """The share of the less common values up to each end; segments of earlier versions have equal ranges."""


def summarise(array: pa.Array, sql_type: SqlType) -> ColumnSummary:
    rows, present = len(array), len(array) - array.null_count
    if present == 0:
        return ColumnSummary(rows, rows, 0, None, None)
    minimum, maximum = _bounds(array, sql_type)
    counted = count_values(array, sql_type, minimum, maximum)
    if minimum is None or counted.seen == 0:
        return ColumnSummary(rows, rows - present, _distinct(counted, present), minimum, maximum)
    common, (ends, up_to) = describe_values(counted, sql_type, present, minimum, maximum)
    distinct = _distinct(counted, present, common)
    return ColumnSummary(rows, rows - present, distinct, minimum, maximum, ends, common, up_to)


def combine(summaries: Sequence[ColumnSummary]) -> ColumnStatistics:
    """Return the statistics of the union of disjoint segments."""
    rows = sum(summary.rows for summary in summaries)
    if rows == 0:
        return ColumnStatistics(distinct=0)
    present = [summary for summary in summaries if summary.rows > summary.nulls]
    minima = [summary.minimum for summary in present]
    maxima = [summary.maximum for summary in present]
    common, histogram = combined(
        [part_of(each.rows - each.nulls, each.distinct, each.common, each.histogram, each.up_to) for each in present]
    )
    return ColumnStatistics(
        distinct=max(_combined_distinct(present), len(common)),
        null_share=sum(summary.nulls for summary in summaries) / rows,
        minimum=None if None in minima else _least(minima),
        maximum=None if None in maxima else _greatest(maxima),
        histogram=histogram,
        common=tuple((value, count / rows) for value, count in common),
    )


def expected_distinct(domain: float, rows: float) -> float:
    """Return how many of `domain` equally frequent values show up in `rows` rows."""
    return domain * -math.expm1(-rows / domain) if domain > 0 else 0.0


def domain_of(distinct: int, rows: int) -> float:
    """Return the number of equally frequent values of which `rows` rows show `distinct`; infinite where all rows
    differ."""
    if distinct >= rows:
        return math.inf
    low, high = float(distinct), float(distinct)
    while expected_distinct(high, rows) < distinct and high < 1e18:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_distinct(middle, rows) < distinct else (low, middle)
    return high


def _combined_distinct(summaries: Sequence[ColumnSummary]) -> int:
    if not summaries:
        return 0
    if all(summary.distinct == len(summary.common) for summary in summaries):
        return len({comparable(value) for summary in summaries for value, _ in summary.common})
    rows = [summary.rows - summary.nulls for summary in summaries]
    total = sum(rows)
    domains = [domain_of(summary.distinct, count) for summary, count in zip(summaries, rows, strict=True)]
    if math.isinf(max(domains)):
        # Segments without a repeated value say nothing of each other: take them as disjoint.
        return min(total, sum(summary.distinct for summary in summaries))
    return max(*(summary.distinct for summary in summaries), round(expected_distinct(max(domains), total)))


def _distinct(counted: ValueCounts, present: int, common: Sequence[tuple[Any, int]] = ()) -> int:
    """Estimate the distinct values: the most common ones are known; of the others, the sample shows a part."""
    if counted.exact:
        return counted.distinct
    frequent = sum(count for _, count in common)
    seen = max(0, round(counted.seen * (1.0 - frequent / present)))
    others, left = counted.distinct - len(common), present - frequent
    if others <= 0 or left <= 0:
        return counted.distinct
    domain = domain_of(others, max(seen, others))
    return len(common) + (
        left if math.isinf(domain) else max(others, min(left, round(expected_distinct(domain, left))))
    )


def _bounds(array: pa.Array, sql_type: SqlType) -> tuple[Any, Any]:
    if is_dictionary(array):
        # The dictionary is sorted and holds no value that is not used.
        minimum, maximum = array.dictionary[0].as_py(), array.dictionary[-1].as_py()
    elif sql_type.kind is Kind.BOOLEAN or not sql_type.is_floating:
        ends = pc.min_max(array)
        minimum, maximum = stored_list(pa.array([ends["min"], ends["max"]], array.type), sql_type)
    else:
        # Arrow leaves NaN out; it is the greatest value here, and a column of nothing else has no numbers at all.
        ends = pc.min_max(array)
        minimum, maximum = ends["min"].as_py(), ends["max"].as_py()
        if bool(pc.any(pc.is_nan(array)).as_py()):
            maximum = math.nan
            minimum = math.nan if minimum is None or (math.isinf(minimum) and minimum > 0) else minimum
    if isinstance(minimum, str | bytes) and max(len(minimum), len(maximum)) > LONGEST_BOUND:
        return None, None
    return minimum, maximum


def _least(values: Iterable[Any]) -> Any:
    return min(values, key=comparable, default=None)


def _greatest(values: Iterable[Any]) -> Any:
    return max(values, key=comparable, default=None)
