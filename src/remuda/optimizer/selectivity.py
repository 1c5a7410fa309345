"""The share of rows that a predicate lets pass: from statistics where there are any, else from fixed numbers."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, assert_never

from remuda.expr import Call, Column, Expression, Literal, conjuncts, disjuncts
from remuda.optimizer.sargable import SargablePredicate, as_sargable, merge_intervals
from remuda.plan.bounds import Bound, Interval, Points, Prefix, Ranges
from remuda.types.normalized_key import comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ColumnStatistics, MapStatistics

EQUALITY = 0.15
COMPARISON = 0.5
NOT_NULL = 0.9
ANYTHING_ELSE = 0.25
"""Shares of rows that pass, where nothing is known about the values."""

NARROW_STRINGS = 0.03
"""The share of a histogram's range that a narrow range of strings within it has at least: strings that begin alike are
many, and lie close together. Of the parts whose name begins with `forest` there are 1 in 100, not 1 in 10**13."""

KnownColumns = Callable[[Column], "ColumnStatistics | None"]
"""What is known of a column; None where nothing is."""


def of_map(statistics: MapStatistics | None) -> KnownColumns:
    """Within the filter of a scan a column's name is its name in the map."""
    if statistics is None:
        return lambda _: None
    columns = statistics.columns
    return lambda column: columns.get(column.name)


def selectivity(predicate: Expression | None, known: KnownColumns) -> float:
    """The share of rows that pass. Ranges of one column are taken together, all else as independent."""
    share = 1.0
    ranges: dict[int, list[SargablePredicate]] = {}
    for conjunct in conjuncts(predicate):
        sargable = as_sargable(conjunct)
        if sargable is not None and isinstance(sargable.bound, Interval) and sargable.exact:
            ranges.setdefault(sargable.source.id, []).append(sargable)
        else:
            share *= _conjunct_selectivity(conjunct, sargable, known)
    for sargables in ranges.values():
        share *= bound_selectivity(merge_intervals(sargables), known(sargables[0].source))
    return share


def _conjunct_selectivity(conjunct: Expression, sargable: SargablePredicate | None, known: KnownColumns) -> float:
    if sargable is not None:
        share = bound_selectivity(sargable.bound, known(sargable.source))
        return share if sargable.exact or isinstance(sargable.bound, Prefix) else share * COMPARISON
    if not isinstance(conjunct, Call):
        return ANYTHING_ELSE
    match conjunct.function:
        case "or":
            return min(1.0, sum(selectivity(branch, known) for branch in disjuncts(conjunct)))
        case "=":
            return _equal_sides(conjunct, known) or ANYTHING_ELSE
        case "<>":
            return 1.0 - (_equal_sides(conjunct, known) or EQUALITY)
        case "<" | "<=" | ">" | ">=":
            return COMPARISON
        case "is not true":
            return 1.0 - selectivity(conjunct.arguments[0], known)
    return ANYTHING_ELSE


def _equal_sides(comparison: Call, known: KnownColumns) -> float | None:
    """One of the more numerous side's values is met; None where neither side's number of values is known."""
    counts = [
        statistics.distinct
        for side in comparison.arguments
        if isinstance(side, Column) and (statistics := known(side)) is not None and statistics.distinct
    ]
    return 1.0 / max(counts) if counts else None


def bound_selectivity(bound: Bound, known: ColumnStatistics | None) -> float:
    match bound:
        case Points():
            nulls = EQUALITY if known is None else known.null_share
            return min(1.0, _points_selectivity(bound.values, known) + nulls * bound.or_null)
        case Interval(lows=(), highs=()):
            return NOT_NULL if known is None else 1.0 - known.null_share
        case Interval():
            covered = None if known is None else _covered_share(bound, known)
            return COMPARISON ** bool(bound.lows) * COMPARISON ** bool(bound.highs) if covered is None else covered
        case Prefix():
            return ANYTHING_ELSE
        case Ranges():
            return min(1.0, sum(bound_selectivity(part, known) for part in bound.parts))
        case _:
            assert_never(bound)


def _points_selectivity(values: Sequence[Expression], known: ColumnStatistics | None) -> float:
    """Of a value that fills whole ranges of the histogram as many rows as it fills; of the others equally many.

    A flag that is set for one row in a thousand: FALSE fills all ranges but the last, so TRUE has at most that one,
    and not half of the rows as one of two values.
    """
    if known is None or not known.distinct:
        return EQUALITY * len(values)
    average, ends = 1.0 / known.distinct, known.histogram
    filled = {end: (count - 1) / (len(ends) - 1) for end, count in Counter(ends).items() if count > 1}
    others = known.distinct - len(filled)
    rare = min(average, max(0.0, 1.0 - sum(filled.values())) / others) if others > 0 else average
    shares = (
        max(average, filled[value.value])
        if isinstance(value, Literal) and value.value in filled
        else rare
        if isinstance(value, Literal) and value.value is not None
        else average
        for value in values
    )
    return sum(shares) * (1.0 - known.null_share)


def _covered_share(bound: Interval, known: ColumnStatistics) -> float | None:
    """The part of the rows that a range with literal ends covers; None where that cannot be told."""
    ends = (*bound.lows, *bound.highs)
    if not all(isinstance(end.value, Literal) and end.value.value is not None for end in ends):
        return None
    below = _below_by_histogram if len(known.histogram) > 1 else _below_by_extremes
    shares_below = [below(_value(end.value), known, inclusive=not end.inclusive) for end in bound.lows]
    shares_up_to = [below(_value(end.value), known, inclusive=end.inclusive) for end in bound.highs]
    start = max(_known_shares(shares_below), default=0.0)
    stop = min(_known_shares(shares_up_to), default=1.0)
    if None in shares_below or None in shares_up_to:
        return None
    if stop <= start:
        return 0.0
    is_text = isinstance(_value(ends[0].value), str)
    least = NARROW_STRINGS / max(1, len(known.histogram) - 1) if is_text else 0.0
    return max(least, stop - start) * (1.0 - known.null_share)


def _known_shares(shares: list[float | None]) -> list[float]:
    return [share for share in shares if share is not None]


def _below_by_histogram(value: Any, known: ColumnStatistics, *, inclusive: bool) -> float | None:
    """The share of values below `value`: whole ranges, and within one range in proportion where values are numbers."""
    ends = known.histogram
    key = comparable(value)
    try:
        bucket = (bisect_right if inclusive else bisect_left)(ends, key, key=comparable)
    except TypeError:
        return None
    if bucket == 0:
        return 0.0
    if bucket == len(ends):
        return 1.0
    low, high = ends[bucket - 1], ends[bucket]
    return (bucket - 1 + _proportion(value, low, high)) / (len(ends) - 1)


def _below_by_extremes(value: Any, known: ColumnStatistics, *, inclusive: bool) -> float | None:  # noqa: ARG001
    """As `_below_by_histogram`, where only the least and the greatest value are known."""
    low, high = known.minimum, known.maximum
    if not _are_numbers(value, low, high) or not high > low:
        return None
    return _proportion(value, low, high)


def _proportion(value: Any, low: Any, high: Any) -> float:
    """How far the value lies on the way from the one end to the other; half-way where nothing can be told."""
    if isinstance(value, str) and isinstance(low, str) and isinstance(high, str):
        shared = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
        value, low, high = (_as_number(each[shared:]) for each in (value, low, high))
    if not _are_numbers(value, low, high) or not high > low:
        return 0.5
    if value <= low:
        return 0.0
    if not value < high:  # NaN is above every number
        return 1.0
    if not all(map(_is_finite, (low, high))):
        return 0.5
    # Exactly: as doubles 2**63 - 2 and 2**63 - 1 are one number, and 1e308 and -1e308 are infinitely far apart.
    return float((Fraction(value) - Fraction(low)) / (Fraction(high) - Fraction(low)))


def _as_number(text: str) -> int:
    """The first few bytes: they order strings as the strings do, and say how far apart they are."""
    return int.from_bytes(text.encode(errors="surrogatepass")[:6].ljust(6, b"\0"), "big")


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float | Decimal) for value in values)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _value(expression: Expression) -> Any:
    assert isinstance(expression, Literal)
    return expression.value


def has_unknown_values(bound: Bound) -> bool:
    """Whether a parameter decides how many rows lie within a range. Of a value there are always about as many."""
    match bound:
        case Points():
            return False
        case Interval():
            return any(not isinstance(end.value, Literal) for end in (*bound.lows, *bound.highs))
        case Prefix():
            return True
        case Ranges():
            return any(map(has_unknown_values, bound.parts))
        case _:
            assert_never(bound)
