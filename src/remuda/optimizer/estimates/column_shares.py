"""Shares of the rows of a map by the value of one column: from most common values, a histogram, or the extremes.

A column of 1,000 rows, 300 of them NULL, 400 `'open'`, the others 30 different texts: `= 'open'` has a share of 0.4,
`= 'closed'` one of 0.3 / 30, and `LIKE 'o%'` has that of `'open'` and what the histogram says of the others.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from remuda.catalog import ColumnStatistics, Histogram
from remuda.catalog.histogram import are_numbers
from remuda.dataclass import dataclass, replace
from remuda.errors import SqlError
from remuda.expr import (
    Column,
    Expression,
    Literal,
    Parameter,
    Parameters,
    columns_of,
    compile_predicate,
    is_volatile,
    parameters_of,
)
from remuda.plan.bounds import Bound, End, Interval, Points, Ranges, bound_expressions
from remuda.types.arrow_arrays import stored_array
from remuda.types.normalized_key import NAN, comparable

NARROW_TEXTS = 0.25
"""The share of a histogram's range that a narrow range of texts within it has at least: texts that begin alike are
many, and lie close together. Of the parts whose name begins with `forest` there are 1 in 100, not 1 in 10**13."""
NAN_RANK = comparable(NAN)[0]
FEWEST_SAMPLES = 8
"""Values by which a condition is judged, at least."""


def equal_share(value: Any, known: ColumnStatistics) -> float | None:
    """Return the share of the rows that have this value; None where the values are not counted.

    Values that are not among the most common ones have an equal part of what these leave.
    """
    if not known.distinct:
        return None
    common = known.shares.get(comparable(value))
    if common is not None:
        return common
    rare = known.rare
    if rare is None or _is_beyond(value, known):
        return 0.0
    return rare


def average_share(known: ColumnStatistics) -> float | None:
    """Return the share of the rows that have a value of which nothing is known."""
    return (1.0 - known.null_share) / known.distinct if known.distinct else None


def _is_beyond(value: Any, known: ColumnStatistics) -> bool:
    """Test whether the value is below the least or above the greatest one."""
    if known.minimum is None or known.maximum is None:
        return False
    try:
        return not comparable(known.minimum) <= comparable(value) <= comparable(known.maximum)
    except TypeError:
        return False


def interval_share(bound: Interval, known: ColumnStatistics) -> float | None:
    """Return the share of the rows within a range with literal ends; None where that cannot be told."""
    ends = (*bound.lows, *bound.highs)
    if not all(map(is_value_known, (end.value for end in ends))):
        return None
    try:
        reach = Reach.of(bound)
        common = sum(share for key, share in known.shares.items() if reach.has(key))
        others = _others_share(reach, known) if known.rest > 0 else 0.0
    except TypeError:  # The value is of another kind than those of the column.
        return None
    return None if others is None else common + known.rest * others


def shares_of_ends(bound: Bound, known: ColumnStatistics) -> tuple[float, float] | None:
    """Return the share of rows below a bound and the share up to its end; None where that cannot be told."""
    match bound:
        case Interval():
            return _shares_of_interval(bound, known)
        case Points(values=values, or_null=False):
            ends = (End(value, inclusive=True) for value in values)
            parts = [_shares_of_interval(Interval((end,), (end,)), known) for end in ends]
        case Ranges():
            parts = [shares_of_ends(part, known) for part in bound.parts]
        case _:
            return None
    told = [part for part in parts if part is not None]
    if not told or len(told) < len(parts):
        return None
    return min(start for start, _ in told), max(stop for _, stop in told)


def _shares_of_interval(bound: Interval, known: ColumnStatistics) -> tuple[float, float] | None:
    below = [interval_share(Interval(highs=(End(low.value, not low.inclusive),)), known) for low in bound.lows]
    up_to = [interval_share(Interval(highs=(high,)), known) for high in bound.highs]
    starts = [share for share in below if share is not None]
    stops = [share for share in up_to if share is not None]
    if len(starts) < len(below) or len(stops) < len(up_to):
        return None
    return max(starts, default=0.0), min(stops, default=1.0)


def overlap(column: ColumnStatistics, other: ColumnStatistics) -> float | None:
    """Return the share of a column's values that lie between the extremes of the other; None where it is not known."""
    low, high = other.minimum, other.maximum
    if not are_numbers(low, high, column.minimum, column.maximum) or not column.is_known or column.null_share >= 1:
        return None
    reach = Reach(comparable(low), comparable(high))  # Python does not compare a Decimal with a NaN.
    if reach.has(comparable(column.minimum)) and reach.has(comparable(column.maximum)):
        return 1.0
    inside = sum(share for key, share in column.shares.items() if reach.has(key))
    others = _others_share(reach, column) if column.rest > 0 else 0.0
    return None if others is None else min(1.0, (inside + column.rest * others) / (1.0 - column.null_share))


@dataclass(frozen=True, slots=True)
class Reach:
    """A range of values by what they are compared by, each end included or not; None for an end that it has not."""

    low: tuple[int, Any] | None
    high: tuple[int, Any] | None
    low_included: bool = True
    high_included: bool = True

    @classmethod
    def of(cls, bound: Interval) -> Reach:
        """Return the tightest range of a bound with literal ends; raise `TypeError` where they cannot be compared."""
        # Of equal ends that which is not included is the tighter one.
        low = max(
            ((comparable(literal_value(end.value)), not end.inclusive) for end in bound.lows), default=(None, False)
        )
        high = min(((comparable(literal_value(end.value)), end.inclusive) for end in bound.highs), default=(None, True))
        return cls(low[0], high[0], not low[1], high[1])

    def has(self, key: tuple[int, Any]) -> bool:
        if self.low is not None and not (self.low < key or (self.low_included and self.low == key)):
            return False
        return self.high is None or key < self.high or (self.high_included and key == self.high)


def _others_share(reach: Reach, known: ColumnStatistics) -> float | None:
    """Return the part of the less common values that lies within a range.

    Up to an end that belongs to the range there is one value more than below it: so a range of one value is not empty,
    and `< 10` of whole numbers is `<= 9`.
    """
    histogram = known.histogram or _of_extremes(known)
    if histogram is None:
        return None
    one = min(1.0, 1.0 / known.rest_distinct) if known.rest_distinct else 0.0
    start = _share_below(reach.low, histogram, one if reach.low_included else 0.0) if reach.low is not None else 0.0
    stop = _share_below(reach.high, histogram, 0.0 if reach.high_included else one) if reach.high is not None else 1.0
    if start is None or stop is None:
        return None
    if stop <= start:
        return 0.0
    least = 0.0
    if reach.low is not None and reach.high is not None and isinstance(reach.low[1], str):
        least = NARROW_TEXTS / max(1, len(histogram.ends) - 1)
    return max(least, stop - start)


def _share_below(key: tuple[int, Any], histogram: Histogram, one: float) -> float | None:
    """Return the share of values up to this one, less that of `one` value where the value itself does not count."""
    share = histogram.share_up_to(_value_of(key))
    if share is None or key > comparable(histogram.ends[-1]):
        return share
    return max(0.0, share - one)


def _value_of(key: tuple[int, Any]) -> Any:
    """Return the value that is compared by this."""
    return NAN if key[0] == NAN_RANK else key[1]


def _of_extremes(known: ColumnStatistics) -> Histogram | None:
    """Return the histogram of values that lie evenly between the least and the greatest one."""
    low, high = known.minimum, known.maximum
    if not are_numbers(low, high) or not high > low:
        return None
    return Histogram.even((low, high))


def sampled_share(condition: Expression, column: Column, known: ColumnStatistics) -> float | None:
    """Return the share of rows that pass a condition on one column, asked of its most common values and its ends.

    None where these are too few, or where values decide that are known only at execution. That no end of a histogram
    passes does not say that none does: at least half of the share of one end is left to either outcome.
    """
    ends = () if known.histogram is None else known.histogram.ends
    values = [*(value for value, _ in known.common), *ends, None]
    if parameters_of(condition) or is_volatile(condition):
        return None
    if (known.rest > 0 and len(ends) < FEWEST_SAMPLES) or len(values) < 2:
        return None
    try:
        batch = pa.record_batch([stored_array(values, column.type)], names=[column.name])
        passed = compile_predicate(condition, {column.id: 0})(batch, Parameters(())).to_pylist()
    except (SqlError, pa.ArrowException):
        return None
    count = len(known.common)
    share = sum(share for (_, share), is_true in zip(known.common, passed, strict=False) if is_true)
    if ends:
        of_ends = sum(map(bool, passed[count:-1])) / len(ends)
        least = 0.5 / len(ends)
        share += known.rest * min(1.0 - least, max(least, of_ends))
    return share + (known.null_share if passed[-1] else 0.0)


def only_column(condition: Expression) -> Column | None:
    """Return the only column of a condition; None where it has several, or none."""
    columns = columns_of(condition)
    return next(iter(columns.values())) if len(columns) == 1 else None


def pair_share(left: ColumnStatistics, right: ColumnStatistics, values: float) -> float:
    """Return the share of pairs of rows in which two columns are equal; `values` is the greater count of their values.

    The most common values of one side meet the rows that the other side has of them. A reference to a few customers
    that have most of the orders meets their orders more often than the average customer's.
    """
    if not (left.common and right.common):
        return (1.0 - left.null_share) * (1.0 - right.null_share) / max(1.0, values)
    both = sum(share * right.shares[key] for key, share in left.shares.items() if key in right.shares)
    met = both + _met_by_others(left, right) + _met_by_others(right, left)
    others = max(1.0, values - max(len(left.common), len(right.common)))
    return min(1.0, met + left.rest * right.rest / others)


def _met_by_others(one: ColumnStatistics, other: ColumnStatistics) -> float:
    """Return the share of pairs of a most common value of the one side with a less common value of the other."""
    rare = other.rare or 0.0
    return sum(
        share * rare
        for (value, share), key in zip(one.common, one.shares, strict=True)
        if key not in other.shares and not _is_beyond(value, other)
    )


def within(bound: Bound, known: ColumnStatistics, share: float) -> ColumnStatistics:
    """Return what is known of a column in the rows that a bound with this share leaves, its distinct count unchanged.

    The same object where the bound waits for a value, or is neither points nor one range.
    """
    if share <= 0 or any(known_literal(each) is None for each in bound_expressions(bound)):
        return known
    match bound:
        case Points(or_null=False):
            values = [literal_value(each) for each in bound.values if literal_value(each) is not None]
            shares = [(value, equal_share(value, known) or 0.0) for value in values]
            common = tuple((value, each / share) for value, each in shares if each > 0)
            return replace(known, common=common, histogram=None, null_share=0.0)
        case Interval():
            try:
                reach = Reach.of(bound)
                inside = zip(known.common, known.shares, strict=True)
                common = tuple((value, each / share) for (value, each), key in inside if reach.has(key))
                histogram = None if known.histogram is None else _clipped(known.histogram, reach)
            except TypeError:
                return known
            return replace(known, common=common, histogram=histogram, null_share=0.0)
        case _:
            return known


def _clipped(histogram: Histogram, reach: Reach) -> Histogram | None:
    """Return the histogram of the values within a range."""
    start = 0.0 if reach.low is None else histogram.share_up_to(_value_of(reach.low)) or 0.0
    stop = 1.0 if reach.high is None else histogram.share_up_to(_value_of(reach.high)) or 0.0
    inside = [bucket for bucket, end in enumerate(histogram.ends) if reach.has(comparable(end))]
    if not inside or stop <= start:
        return None
    ends = [histogram.ends[bucket] for bucket in inside]
    shares = [min(1.0, max(0.0, histogram.up_to[bucket] - start) / (stop - start)) for bucket in inside]
    if reach.high is not None and reach.high > comparable(ends[-1]):
        ends.append(_value_of(reach.high))
        shares.append(1.0)
    return Histogram(tuple(ends), (*shares[:-1], 1.0))


def known_literal(expression: Expression) -> Literal | None:
    """Return the literal that estimates take an expression to be: itself, or what a parameter is expected to be."""
    if isinstance(expression, Parameter):
        return expression.expected
    return expression if isinstance(expression, Literal) else None


def is_value_known(expression: Expression) -> bool:
    """Test whether estimates know the value of an expression, and that it is not NULL."""
    literal = known_literal(expression)
    return literal is not None and literal.value is not None


def literal_value(expression: Expression) -> Any:
    literal = known_literal(expression)
    assert literal is not None
    return literal.value
