"""What a segment remembers about the values of a column, and what several segments know together.

Distinct values are counted exactly in small segments and estimated from a sample in large ones. The estimate asks: from
how many equally frequent values D would so many rows show so many different ones? Drawing r rows shows
`D * (1 - exp(-r / D))` of them. The same formula, read forwards, tells how many a whole map of R rows has, which is why
five values in each of ten segments are five and a million keys in each are ten million.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.catalog import ColumnStatistics
from remuda.dataclass import dataclass
from remuda.storage.segment.histogram import MAP_BUCKETS, combined_histogram, histogram_of
from remuda.types import Kind, SqlType
from remuda.types.arrow_arrays import (
    code_values,
    distinct_values,
    fixed_values,
    is_dictionary,
    is_fixed_width,
    null_mask,
    stored_list,
)
from remuda.types.normalized_key import comparable, float_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SAMPLE_ROWS = 65_536
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
    """See `ColumnStatistics`."""


def summarise(array: pa.Array, sql_type: SqlType) -> ColumnSummary:
    minimum, maximum = _bounds(array, sql_type)
    histogram = () if minimum is None else histogram_of(array, sql_type, minimum, maximum)
    return ColumnSummary(len(array), array.null_count, _distinct(array, sql_type), minimum, maximum, histogram)


def combine(summaries: Sequence[ColumnSummary]) -> ColumnStatistics:
    """Return the statistics of the union of disjoint segments."""
    rows = sum(summary.rows for summary in summaries)
    if rows == 0:
        return ColumnStatistics(distinct=0)
    present = [summary for summary in summaries if summary.rows > summary.nulls]
    minima = [summary.minimum for summary in present]
    maxima = [summary.maximum for summary in present]
    return ColumnStatistics(
        distinct=_combined_distinct(present),
        null_share=sum(summary.nulls for summary in summaries) / rows,
        minimum=None if None in minima else _least(minima),
        maximum=None if None in maxima else _greatest(maxima),
        histogram=combined_histogram(
            [(summary.rows - summary.nulls, summary.histogram) for summary in present], MAP_BUCKETS
        ),
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
    rows = [summary.rows - summary.nulls for summary in summaries]
    total = sum(rows)
    domains = [domain_of(summary.distinct, count) for summary, count in zip(summaries, rows, strict=True)]
    if math.isinf(max(domains)):
        # Segments without a repeated value say nothing of each other: take them as disjoint.
        return min(total, sum(summary.distinct for summary in summaries))
    return max(*(summary.distinct for summary in summaries), round(expected_distinct(max(domains), total)))


def _distinct(array: pa.Array, sql_type: SqlType) -> int:
    if is_dictionary(array):
        if len(array.dictionary) <= len(array):
            return len(array.dictionary)
        codes, nulls = code_values(array), null_mask(array)
        return len(distinct_values(codes if nulls is None else codes[~nulls]))
    present: int = len(array) - array.null_count
    sample = array if len(array) <= SAMPLE_ROWS else array.take(_sample(len(array)))
    seen = len(sample) - sample.null_count
    distinct = _exactly_distinct(sample.drop_null(), sql_type)
    if seen == present:
        return distinct
    domain = domain_of(distinct, seen)
    return present if math.isinf(domain) else min(present, round(expected_distinct(domain, present)))


def _exactly_distinct(values: pa.Array, sql_type: SqlType) -> int:
    """Count distinct values exactly.

    Sorting numbers takes a tenth of the time that Arrow's hashing takes.
    """
    if not is_fixed_width(sql_type) or len(values) == 0:
        return int(pc.count_distinct(values).as_py())
    numbers = fixed_values(values, sql_type)
    ordered = np.sort(float_keys(numbers) if sql_type.is_floating else numbers)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1


def _sample(rows: int) -> pa.Array:
    """Spread positions evenly: rows are ordered by partition, so neighbours have nothing in common but their hash."""
    return pa.array(np.linspace(0, rows - 1, SAMPLE_ROWS).astype(np.int64))


def _bounds(array: pa.Array, sql_type: SqlType) -> tuple[Any, Any]:
    if array.null_count == len(array):
        return None, None
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
