"""Symbolic bounds with the parameters filled in: index lookups, keys, and the partitions that can matter."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from remuda.expr import Parameter, evaluate_constant
from remuda.expr.comparison import order_key
from remuda.plan.bounds import Bound, End, Interval, Points, Pruning
from remuda.storage import UNBOUNDED, Lookup, Range, hash_values, partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remuda.catalog import MapDefinition

Values = tuple[Any, ...]

MAXIMUM_RANGE = 1_000
"""A range of more values prunes nothing: their partitions would be nearly all there are."""
MAXIMUM_COMBINATIONS = 10_000


def point_values(points: Points, parameters: Values) -> list[Any]:
    """The values of an equality or a union, each once, lowest first; NULL is one only where IS NULL asks for it."""
    values = [evaluate_constant(value, parameters) for value in points.values]
    # By what they sort by: two NaNs are not equal in Python.
    distinct = {_sort_key(value): value for value in values if value is not None}
    ordered = [distinct[key] for key in sorted(distinct)]
    return [None, *ordered] if points.or_null else ordered


def _sort_key(value: Any) -> Any:
    return order_key(value) if isinstance(value, float) else value


def interval_range(interval: Interval, parameters: Values) -> Range | None:
    """The tightest ends; None where no value can lie between them."""
    low = _tightest(interval.lows, parameters, highest=True)
    high = _tightest(interval.highs, parameters, highest=False)
    if low is None or high is None:
        return None
    if UNBOUNDED not in (low[0], high[0]):
        left, right = _sort_key(low[0]), _sort_key(high[0])
        if left > right or (left == right and not (low[1] and high[1])):
            return None
    return Range(low[0], low[1], high[0], high[1])


def _tightest(ends: Sequence[End], parameters: Values, *, highest: bool) -> tuple[Any, bool] | None:
    """The end that excludes most; None where an end is NULL, which nothing satisfies."""
    best: tuple[Any, bool] = (UNBOUNDED, True)
    for end in ends:
        value = evaluate_constant(end.value, parameters)
        if value is None:
            return None
        if best[0] is UNBOUNDED:
            best = (value, end.inclusive)
            continue
        key, known = _sort_key(value), _sort_key(best[0])
        tighter = key > known if highest else key < known
        if tighter or (key == known and not end.inclusive):
            best = (value, end.inclusive)
    return best


def index_lookups(bounds: Sequence[Bound], parameters: Values) -> list[Lookup]:
    """Disjoint lookups in index order, so that each row is found once. No bounds at all: the whole index."""
    prefixes: list[Values] = [()]
    for bound in bounds:
        match bound:
            case Points():
                values = point_values(bound, parameters)
                prefixes = [(*prefix, value) for prefix in prefixes for value in values]
            case Interval():
                found = interval_range(bound, parameters)
                return [] if found is None else [Lookup(prefix, found) for prefix in prefixes]
            case _:
                assert_never(bound)
    return [Lookup(prefix) for prefix in prefixes]


def compile_lookups(bounds: Sequence[Bound]) -> Callable[[Values], list[Lookup]]:
    """`index_lookups` for given bounds; what nearly all queries ask, one value or one range, without a detour."""
    match bounds:
        case (Points(values=(Parameter() as only,), or_null=False),):
            place = only.index
            return lambda values: [] if values[place] is None else [Lookup((values[place],))]
        case (
            Interval(lows=(End(Parameter() as low, low_inclusive),), highs=(End(Parameter() as high, high_inclusive),)),
        ):
            first, last = low.index, high.index

            def between(values: Values) -> list[Lookup]:
                start, stop = values[first], values[last]
                if start is None or stop is None or not start < stop:
                    return index_lookups(bounds, values)
                return [Lookup((), Range(start, low_inclusive, stop, high_inclusive))]

            return between
    return lambda values: index_lookups(bounds, values)


def lookup_keys(key: Sequence[Points], parameters: Values) -> list[Any]:
    """The keys, as storage writes them: the value itself for a single column, else a tuple."""
    columns = [point_values(points, parameters) for points in key]
    return columns[0] if len(columns) == 1 else list(product(*columns))


def pruned_partitions(definition: MapDefinition, pruning: Pruning, parameters: Values) -> np.ndarray | None:
    """The partitions in which a row that passes the filter can lie, ascending; None where that is not worth knowing."""
    found: set[int] = set()
    types = [definition.column(name).type for name in pruning.columns]
    combinations = 0
    for alternative in pruning.alternatives:
        columns = [_countable_values(bound, parameters) for bound in alternative]
        if any(values is None for values in columns):
            return None
        for values in product(*(column for column in columns if column is not None)):
            combinations += 1
            if combinations > MAXIMUM_COMBINATIONS:
                return None
            found.add(partition_of(hash_values(values, types), definition.partitions))
    return np.array(sorted(found), dtype=np.int64)


def _countable_values(bound: Bound, parameters: Values) -> Iterable[Any] | None:
    match bound:
        case Points():
            return point_values(bound, parameters)
        case Interval():
            between = interval_range(bound, parameters)
            if between is None:
                return []
            first = between.low + (not between.low_inclusive)
            last = between.high - (not between.high_inclusive)
            return range(first, last + 1) if last - first < MAXIMUM_RANGE else None
        case _:
            assert_never(bound)


def intersect(owned: np.ndarray | None, wanted: np.ndarray | None) -> np.ndarray | None:
    """The partitions of both; None stands for all."""
    if owned is None or wanted is None:
        return wanted if owned is None else owned
    return np.intersect1d(owned, wanted, assume_unique=True)
