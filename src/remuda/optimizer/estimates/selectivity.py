"""The share of rows that a predicate lets pass: from statistics where there are any, else from fixed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import takewhile
from typing import TYPE_CHECKING, Any, assert_never

from remuda.expr import Call, Column, Expression, conjuncts, disjuncts, is_constant
from remuda.optimizer.estimates.column_shares import (
    Reach,
    average_share,
    equal_share,
    interval_share,
    is_value_known,
    known_literal,
    literal_value,
    only_column,
    pair_share,
    sampled_share,
)
from remuda.optimizer.sargable import SargablePredicate, as_sargable, merge_intervals
from remuda.plan.bounds import Bound, Interval, Points, Prefix, Ranges
from remuda.types.normalized_key import comparable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remuda.catalog import ColumnStatistics, MapDefinition, MapStatistics

EQUALITY = 0.15
COMPARISON = 0.5
NOT_NULL = 0.9
ANYTHING_ELSE = 0.25
"""Shares of rows that pass, where nothing is known about the values."""

SKEW = 4.0
"""A column is skewed if its most common value comes so many times as often as its least common one."""

KnownColumns = Callable[[Column], "ColumnStatistics | None"]
"""What is known of a column; None where nothing is."""


def of_map(statistics: MapStatistics | None) -> KnownColumns:
    """Within the filter of a scan a column's name is its name in the map."""
    if statistics is None:
        return lambda _: None
    columns = statistics.columns
    return lambda column: columns.get(column.name)


def scan_selectivity(filter_: Expression | None, definition: MapDefinition, statistics: MapStatistics) -> float:
    """Return the share of a map's rows that pass: as `selectivity`, and columns of its indexes are not independent."""
    if filter_ is None:
        return 1.0
    share = statistics.filter_shares.get(filter_)
    if share is None:
        share = statistics.filter_shares[filter_] = _share_of_map(filter_, definition, statistics)
    return share


def _share_of_map(filter_: Expression, definition: MapDefinition, statistics: MapStatistics) -> float:
    share = selectivity(filter_, of_map(statistics))
    if share <= 0:
        return share
    equal: dict[str, float] = {}
    for conjunct in conjuncts(filter_):
        sargable = as_sargable(conjunct)
        if sargable is not None and isinstance(sargable.bound, Points):
            equal[sargable.column] = bound_selectivity(sargable.bound, statistics.columns.get(sargable.column))
    return share * correlation(equal, definition, statistics) if len(equal) > 1 else share


def correlation(equal: Mapping[str, float], definition: MapDefinition, statistics: MapStatistics) -> float:
    """Return how many times more rows meet all equalities of an index or a key than if its columns were independent.

    `equal` has the share of each column's equality. Of a million addresses in 1,000 cities of 50 countries there are
    1,000 combinations of country and city, not 50,000, so both equalities are met 50 times as often.
    """
    greatest = 1.0
    for columns in (definition.key, *(index.columns for index in definition.indexes)):
        leading = tuple(takewhile(equal.__contains__, columns))
        found = statistics.relations.combinations(leading) if len(leading) > 1 else None
        if not found:
            continue
        possible = math.prod(float(statistics.columns[name].distinct or 1) for name in leading)
        shares = [equal[name] for name in leading]
        bounded = min(shares) / max(math.prod(shares), 1e-300)
        greatest = max(greatest, min(possible / found, bounded))
    return greatest


def selectivity(predicate: Expression | None, known: KnownColumns) -> float:
    """Return the share of rows that pass.

    Points and ranges of one column are taken together, all others as independent.
    """
    share = 1.0
    of_columns: dict[int, list[SargablePredicate]] = {}
    parts = conjuncts(predicate)
    implied = _implied_points(parts) if len(parts) > 1 else {}
    for conjunct in parts:
        sargable = as_sargable(conjunct)
        if sargable is not None and isinstance(sargable.bound, Interval | Points) and sargable.tight:
            if not _is_implied(sargable.bound, implied.get(sargable.source.id)):
                of_columns.setdefault(sargable.source.id, []).append(sargable)
        else:
            share *= _conjunct_selectivity(conjunct, sargable, known)
    for sargables in of_columns.values():
        share *= _selectivity_of_column(sargables, known(sargables[0].source))
    return share


def _selectivity_of_column(sargables: Sequence[SargablePredicate], about: ColumnStatistics | None) -> float:
    """Return the share of rows within all bounds of one column: `d IN (1, 2) AND d = 1` is `d = 1`."""
    points = [each.bound for each in sargables if isinstance(each.bound, Points)]
    intervals = [each for each in sargables if isinstance(each.bound, Interval)]
    interval = merge_intervals(intervals) if intervals else None
    if not points:
        return 1.0 if interval is None else bound_selectivity(interval, about)
    both = points[0] if len(points) == 1 and interval is None else common_points(points, interval)
    if both is not None:
        return bound_selectivity(both, about)
    bounds: list[Bound] = [*points, *([] if interval is None else [interval])]
    return min(bound_selectivity(bound, about) for bound in bounds)


def common_points(points: Sequence[Points], interval: Interval | None = None) -> Points | None:
    """Return the values that lie within all of these bounds; None where that waits for values."""
    ends = () if interval is None else (*interval.lows, *interval.highs)
    expressions = [*(value for each in points for value in each.values), *(end.value for end in ends)]
    if not all(map(is_value_known, expressions)):
        return None
    try:
        reach = None if interval is None else Reach.of(interval)
        keys = [{comparable(literal_value(value)) for value in each.values} for each in points]
        shared = set.intersection(*keys)
        values = [
            value
            for value in points[0].values
            if (key := comparable(literal_value(value))) in shared and (reach is None or reach.has(key))
        ]
    except TypeError:
        return None
    return Points(tuple(values), or_null=interval is None and all(each.or_null for each in points))


def _implied_points(parts: Sequence[Expression]) -> dict[int, set[Any]]:
    """Return the values of each column outside of which some OR among the conjuncts is never true.

    `a IN (1, 2) AND (a = 1 AND b = 5 OR a = 2 AND b = 6)`: the first conjunct leaves no row out beside the second one.
    """
    found: dict[int, set[Any]] = {}
    for part in parts:
        branches = disjuncts(part)
        if len(branches) > 1 and as_sargable(part) is None:
            for column, points in branch_points(branches).items():
                found.setdefault(column.id, {literal_value(value) for value in points.values})
    return found


def branch_points(branches: Sequence[Expression]) -> dict[Column, Points]:
    """Return the values that an OR leaves of each column that every branch bounds to literals.

    `y = 1999 OR y = 1998 AND m = 12` leaves 1999 and 1998 of y.
    """
    common: dict[Column, tuple[Expression, ...]] | None = None
    for branch in branches:
        own: dict[Column, tuple[Expression, ...]] = {}
        for conjunct in conjuncts(branch):
            sargable = as_sargable(conjunct)
            if sargable is not None and isinstance(sargable.bound, Points) and common_points([sargable.bound]):
                own.setdefault(sargable.source, sargable.bound.values)
        common = own if common is None else {each: (*common[each], *own[each]) for each in common if each in own}
    return {column: Points(tuple(dict.fromkeys(values))) for column, values in (common or {}).items()}


def _is_implied(bound: Bound, values: set[Any] | None) -> bool:
    if values is None or not isinstance(bound, Points) or any(known_literal(each) is None for each in bound.values):
        return False
    return values <= {literal_value(each) for each in bound.values}


def _conjunct_selectivity(conjunct: Expression, sargable: SargablePredicate | None, known: KnownColumns) -> float:
    if sargable is not None:
        about = known(sargable.source)
        bounded = bound_selectivity(sargable.bound, about)
        if sargable.exact or isinstance(sargable.bound, Prefix):
            return bounded
        asked = None if about is None or about.rest > 0 else sampled_share(conjunct, sargable.source, about)
        return bounded * COMPARISON if asked is None else asked
    told = _call_selectivity(conjunct, known) if isinstance(conjunct, Call) else None
    if told is not None:
        return min(1.0, max(0.0, told))
    column = only_column(conjunct)
    about = None if column is None else known(column)
    share = None if column is None or about is None else sampled_share(conjunct, column, about)
    return _unknown_selectivity(conjunct) if share is None else share


def _call_selectivity(conjunct: Call, known: KnownColumns) -> float | None:
    """Return the share of a condition that is told by the shares of its parts; None where it is not."""
    match conjunct:
        case Call(function="or"):
            rejected = math.prod(1.0 - selectivity(branch, known) for branch in disjuncts(conjunct))
            return 1.0 - rejected
        case Call(function="=", arguments=(Column() as one, Column() as other)):
            return _equal_columns(one, other, known)
        case Call(function="<>", arguments=(Column() as one, Column() as other)):
            equal = _equal_columns(one, other, known)
            return None if equal is None else 1.0 - equal
        case Call(function="<>", arguments=(Column() as column, value)) if is_constant(value):
            about = known(column)
            if about is None or not about.distinct:
                return None
            return 1.0 - about.null_share - _points_selectivity((value,), about)
        case Call(function="is not true"):
            return 1.0 - selectivity(conjunct.arguments[0], known)
        case Call(function="not", arguments=(inner,)) if only_column(inner) is None:
            return 1.0 - selectivity(inner, known)
        case _:
            return None


def _unknown_selectivity(conjunct: Expression) -> float:
    match conjunct:
        case Call(function="<>"):
            return 1.0 - EQUALITY
        case Call(function="<" | "<=" | ">" | ">="):
            return COMPARISON
        case _:
            return ANYTHING_ELSE


def _equal_columns(one: Column, other: Column, known: KnownColumns) -> float | None:
    """Return the share of pairs with equal values; None where neither side's number of values is known."""
    sides = [about for about in (known(one), known(other)) if about is not None and about.distinct]
    if len(sides) == 2:
        return pair_share(sides[0], sides[1], max(side.distinct or 1 for side in sides))
    return 1.0 / max(side.distinct or 1 for side in sides) if sides else None


def bound_selectivity(bound: Bound, known: ColumnStatistics | None) -> float:
    match bound:
        case Points():
            nulls = EQUALITY if known is None else known.null_share
            return min(1.0, _points_selectivity(bound.values, known) + nulls * bound.or_null)
        case Interval(lows=(), highs=()):
            return NOT_NULL if known is None else 1.0 - known.null_share
        case Interval():
            covered = None if known is None else interval_share(bound, known)
            return COMPARISON ** bool(bound.lows) * COMPARISON ** bool(bound.highs) if covered is None else covered
        case Prefix():
            return ANYTHING_ELSE
        case Ranges():
            return min(1.0, sum(bound_selectivity(part, known) for part in bound.parts))
        case _:
            assert_never(bound)


def _points_selectivity(values: Sequence[Expression], known: ColumnStatistics | None) -> float:
    """Return the share of the rows that have one of these values; one that is not known yet has the average share."""
    average = None if known is None else average_share(known)
    if known is None or average is None:
        return EQUALITY * len(values)
    share = 0.0
    for literal in map(known_literal, values):
        if literal is None:
            share += average
        elif literal.value is not None:
            share += equal_share(literal.value, known) or 0.0
    return share


def has_unknown_values(bound: Bound, known: ColumnStatistics | None) -> bool:
    """Test whether a parameter decides how many rows lie within a bound.

    Of a value there are always about as many, unless the column is skewed.
    """
    match bound:
        case Points():
            waiting = any(known_literal(value) is None for value in bound.values)
            return waiting and known is not None and _is_skewed(known)
        case Interval():
            return any(known_literal(end.value) is None for end in (*bound.lows, *bound.highs))
        case Prefix():
            return True
        case Ranges():
            return any(has_unknown_values(part, known) for part in bound.parts)
        case _:
            assert_never(bound)


def _is_skewed(known: ColumnStatistics) -> bool:
    if not known.common or not known.distinct:
        return False
    least = known.rare if known.rest > 0 else known.common[-1][1]
    return least is None or known.common[0][1] > SKEW * least
