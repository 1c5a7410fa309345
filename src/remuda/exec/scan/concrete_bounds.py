"""Symbolic bounds with the parameters filled in: index lookups, keys, and the partitions that can matter."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from remuda.expr import evaluate_constant
from remuda.expr.constant import compile_constant
from remuda.expr.functions.comparison import order_key
from remuda.expr.functions.strings import following, like_prefix
from remuda.plan.bounds import (
    MAXIMUM_COMBINATIONS,
    MAXIMUM_RANGE,
    Bound,
    End,
    Interval,
    Points,
    Prefix,
    Pruning,
    Ranges,
)
from remuda.storage import UNBOUNDED, Lookup, Range, hash_values, partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remuda.catalog import MapDefinition

Values = tuple[Any, ...]


def point_values(points: Points, parameters: Values) -> list[Any]:
    """Return the values of an equality or a union, each once, lowest first; NULL only where IS NULL asks for it."""
    values = [evaluate_constant(value, parameters) for value in points.values]
    # By what they sort by: two NaNs are not equal in Python.
    distinct = {_sort_key(value): value for value in values if value is not None}
    ordered = [distinct[key] for key in sorted(distinct)]
    return [None, *ordered] if points.or_null else ordered


def _sort_key(value: Any) -> Any:
    return order_key(value) if isinstance(value, float) else value


def interval_range(interval: Interval, parameters: Values) -> Range | None:
    """Return the tightest ends of an interval; None where no value can lie between them."""
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
    """Return the end that excludes most; None where an end is NULL, which nothing satisfies."""
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
    """Return disjoint lookups in index order, so that each row is found once. No bounds at all: the whole index."""
    prefixes: list[Values] = [()]
    for bound in bounds:
        match bound:
            case Points():
                values = point_values(bound, parameters)
                prefixes = [(*prefix, value) for prefix in prefixes for value in values]
            case Interval():
                found = interval_range(bound, parameters)
                return [] if found is None else [Lookup(prefix, found) for prefix in prefixes]
            case Prefix():
                found = prefix_range(bound, parameters)
                return [] if found is None else [Lookup(prefix, found) for prefix in prefixes]
            case Ranges():
                parts = union_of_ranges(bound, parameters)
                return [
                    Lookup((*prefix, None)) if part is None else Lookup(prefix, part)
                    for prefix in prefixes
                    for part in parts
                ]
            case _:
                assert_never(bound)
    return [Lookup(prefix) for prefix in prefixes]


def prefix_range(bound: Prefix, parameters: Values) -> Range | None:
    """Return the range of strings that begin as the pattern does; None where the pattern is NULL."""
    pattern = evaluate_constant(bound.pattern, parameters)
    if pattern is None:
        return None
    prefix, _ = like_prefix(pattern)
    high = following(prefix)
    return Range(prefix, True, UNBOUNDED if high is None else high, False)


def union_of_ranges(bound: Ranges, parameters: Values) -> list[Range | None]:
    """Return disjoint ranges, lowest first; None among them stands for NULL, which comes first unless `nulls_last`."""
    ranges: list[Range] = []
    with_null = False
    for part in bound.parts:
        if isinstance(part, Points):
            values = point_values(part, parameters)
            with_null = with_null or None in values
            ranges.extend(Range(value, True, value, True) for value in values if value is not None)
        elif (found := interval_range(part, parameters)) is not None:
            ranges.append(found)
    merged: list[Range | None] = list(_merged(ranges))
    if not with_null:
        return merged
    return [*merged, None] if bound.nulls_last else [None, *merged]


def _merged(ranges: list[Range]) -> list[Range]:
    """Merge ranges that overlap, so that each value is found once. Those that only touch may stay apart."""
    found: list[Range] = []
    for each in sorted(ranges, key=_low_key):
        if found and _reaches(found[-1], each):
            last = found[-1]
            high, inclusive = max((last.high, last.high_inclusive), (each.high, each.high_inclusive), key=_high_key)
            found[-1] = Range(last.low, last.low_inclusive, high, inclusive)
        else:
            found.append(each)
    return found


def _low_key(each: Range) -> tuple[Any, ...]:
    return (0,) if each.low is UNBOUNDED else (1, _sort_key(each.low), not each.low_inclusive)


def _high_key(end: tuple[Any, bool]) -> tuple[Any, ...]:
    return (1,) if end[0] is UNBOUNDED else (0, _sort_key(end[0]), end[1])


def _reaches(first: Range, second: Range) -> bool:
    """Test whether a value lies in both ranges; the second begins no lower than the first."""
    if first.high is UNBOUNDED or second.low is UNBOUNDED:
        return True
    high, low = _sort_key(first.high), _sort_key(second.low)
    return bool(low < high or (low == high and first.high_inclusive and second.low_inclusive))


def compile_lookups(bounds: Sequence[Bound]) -> Callable[[Values], list[Lookup]]:
    """Compile `index_lookups` for given bounds.

    What nearly all queries ask, one value for each column and at most one range behind them, takes no detour.
    """
    range_of: Callable[[Values], Range | None] | None = None
    points = bounds
    if bounds and isinstance(last := bounds[-1], Interval):
        points, range_of = bounds[:-1], _compile_range(last)
    parts = [
        compile_constant(bound.values[0]) for bound in points if isinstance(bound, Points) and _is_one_value(bound)
    ]
    if len(parts) < len(points):
        return lambda values: index_lookups(bounds, values)
    if range_of is None:
        if len(parts) == 1:
            (only,) = parts
            return lambda values: [] if (value := only(values)) is None else [Lookup((value,))]

        def equal(values: Values) -> list[Lookup]:
            prefix = tuple([part(values) for part in parts])
            return [] if None in prefix else [Lookup(prefix)]

        return equal

    def within(values: Values) -> list[Lookup]:
        prefix = tuple([part(values) for part in parts]) if parts else ()
        found = range_of(values)
        return [] if found is None or None in prefix else [Lookup(prefix, found)]

    return within


def _is_one_value(points: Points) -> bool:
    return len(points.values) == 1 and not points.or_null


def _compile_range(interval: Interval) -> Callable[[Values], Range | None]:
    """Compile `interval_range` for a given interval."""
    match interval:
        case Interval(lows=(End(low, low_inclusive),), highs=(End(high, high_inclusive),)):
            first, last, closed = compile_constant(low), compile_constant(high), low_inclusive and high_inclusive

            def between(values: Values) -> Range | None:
                start, stop = first(values), last(values)
                if start is not None and stop is not None and (start < stop or (closed and start == stop)):
                    return Range(start, low_inclusive, stop, high_inclusive)
                return interval_range(interval, values)

            return between
        case Interval(lows=(End(low, inclusive),), highs=()):
            least = compile_constant(low)
            return lambda values: None if (value := least(values)) is None else Range(value, inclusive)
        case Interval(lows=(), highs=(End(high, inclusive),)):
            most = compile_constant(high)
            return lambda values: None if (value := most(values)) is None else Range(UNBOUNDED, True, value, inclusive)
    return lambda values: interval_range(interval, values)


def lookup_keys(alternatives: Sequence[Sequence[Points]], parameters: Values) -> list[Any]:
    """Return the keys as storage writes them, each once: the value itself for a single column, else a tuple."""
    found: dict[Values, Values] = {}
    for key in alternatives:
        combinations = product(*(point_values(points, parameters) for points in key))
        if len(alternatives) == 1:
            found = {values: values for values in combinations}
        else:
            found.update((tuple(map(_sort_key, values)), values) for values in combinations)
    return [values[0] if len(values) == 1 else values for values in found.values()]


def pruned_partitions(definition: MapDefinition, pruning: Pruning, parameters: Values) -> np.ndarray | None:
    """Return the partitions in which a row that passes can lie, ascending; None where that is not worth knowing."""
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
        case Prefix() | Ranges():
            return None
        case _:
            assert_never(bound)


def intersect(owned: np.ndarray | None, pruned: np.ndarray | None) -> np.ndarray | None:
    """Return the partitions of both, ascending as they are in each; None stands for all."""
    if owned is None or pruned is None:
        return pruned if owned is None else owned
    if not len(owned):
        return owned
    in_both: np.ndarray = pruned[owned.take(owned.searchsorted(pruned), mode="clip") == pruned]
    return in_both
