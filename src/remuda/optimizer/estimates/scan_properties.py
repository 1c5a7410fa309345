"""What is known of the rows of a scan: from the statistics of its map, as far as its filter leaves them."""

from __future__ import annotations

from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

from remuda.catalog import ColumnStatistics, Histogram
from remuda.dataclass import replace
from remuda.expr import Column, Expression, columns_of, conjuncts, disjuncts
from remuda.optimizer.estimates.column_shares import shares_of_ends, within
from remuda.optimizer.estimates.properties import Origin, Properties, UniqueKey, shown_among
from remuda.optimizer.estimates.selectivity import (
    bound_selectivity,
    branch_points,
    common_points,
    scan_selectivity,
)
from remuda.optimizer.sargable import find_sargable
from remuda.plan.bounds import Bound, Interval, Points
from remuda.plan.partitioning import is_divided_as

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remuda.catalog import MapStatistics
    from remuda.plan import logical


def scan_properties(node: logical.Scan, statistics: MapStatistics | None, partitions: int | None) -> Properties:
    ids = {column.name: column.id for column in node.columns}
    partitioning = tuple(ids[name] for name in node.map.partitioned_by if name in ids)
    whole = len(partitioning) == len(node.map.partitioned_by) and is_divided_as(node.map, partitions)
    partitionings = (partitioning,) if whole else ()
    if statistics is None:
        return Properties(0.0, partitionings=partitionings, replicated=node.map.replicated)
    rows = statistics.rows * scan_selectivity(node.filter, node.map, statistics)
    bounded = {} if node.filter is None else _bounded_columns(node.filter, statistics)
    if bounded and ids.get(node.map.key[0], -1) not in bounded and node.map.key[0] in ids:
        key = _bounded_key(node, statistics)
        if key is not None:
            bounded[ids[node.map.key[0]]] = key
    columns = _filtered_columns(node, statistics, rows, bounded)
    filtered = frozenset(column.name for column in columns_of(node.filter).values())
    reductions = ((filtered, rows / max(1.0, statistics.rows)),) if filtered else ()
    told_by = {column.id: column.name for column in node.columns}
    origins = (
        Origin(frozenset(told_by), max(1.0, rows), told_by, frozenset(node.map.key), statistics.relations, reductions),
    )
    keys: tuple[UniqueKey, ...] = ()
    if all(name in ids for name in node.map.key):
        # What the filter says of the key itself leaves fewer values of it; what it says of others only fewer rows.
        values = float(statistics.rows)
        for name in node.map.key:
            known = statistics.columns.get(name)
            if known is not None and known.distinct and ids[name] in bounded:
                values *= min(1.0, (bounded[ids[name]].distinct or 0) / known.distinct)
        keys = (UniqueKey(frozenset(ids[name] for name in node.map.key), max(1.0, values)),)
    return Properties(rows, columns, keys, partitionings, replicated=node.map.replicated, origins=origins)


def scan_orders(node: logical.Scan) -> tuple[tuple[int, ...], ...]:
    """Leading columns that the filter bounds to a single value are the same in all rows: the next ones are in order."""
    ordered = [index for index in node.map.indexes if index.type.serves.order]
    if not ordered:
        return ()
    ids = {column.name: column.id for column in node.columns}
    fixed = {
        name
        for name, predicates in find_sargable(node.filter).items()
        if any(isinstance(each.bound, Points) and each.bound.is_single for each in predicates)
    }
    orders = (
        tuple(ids[name] for name in takewhile(ids.__contains__, dropwhile(fixed.__contains__, index.columns)))
        for index in ordered
    )
    return tuple(dict.fromkeys(order for order in orders if order))


def _filtered_columns(
    node: logical.Scan, statistics: MapStatistics, rows: float, bounded: Mapping[int, ColumnStatistics]
) -> dict[int, ColumnStatistics]:
    """Return what is left of each column: of one that the filter bounds, the values within; of others as many values as
    so many rows, picked at random, would have.
    """
    known = {column.id: statistics.columns[column.name] for column in node.columns if column.name in statistics.columns}
    if node.filter is None:
        return known
    return {
        id_: bounded[id_] if id_ in bounded else replace(each, distinct=_left(each.distinct, rows))
        for id_, each in known.items()
    }


def _bounded_columns(filter_: Expression, statistics: MapStatistics) -> dict[int, ColumnStatistics]:
    """Return what is known of the columns that the filter bounds, in the rows that it leaves."""
    found: dict[int, ColumnStatistics] = {}
    for column, bounds in _bounds(filter_).items():
        each = statistics.columns.get(column.name)
        if each is None or not each.distinct:
            continue
        points = [bound for bound in bounds if isinstance(bound, Points)]
        intervals = [bound for bound in bounds if isinstance(bound, Interval)]
        interval = _merged(intervals) if intervals else None
        bound: Bound = bounds[0] if interval is None else interval
        if points:
            bound = common_points(points, interval) or min(points, key=lambda one: len(one.values))
        share = bound_selectivity(bound, each)
        left = within(bound, each, share)
        found[column.id] = replace(left, distinct=_within_count(bound, each, left, share))
    return found


def _bounds(filter_: Expression | None) -> dict[Column, list[Bound]]:
    """Return the bounds of each column: of its sargable predicates, and the values that an OR leaves of it."""
    found: dict[Column, list[Bound]] = {}
    for predicates in find_sargable(filter_).values():
        found.setdefault(predicates[0].source, []).extend(predicate.bound for predicate in predicates)
    for conjunct in conjuncts(filter_):
        branches = disjuncts(conjunct)
        if len(branches) > 1:
            for column, points in branch_points(branches).items():
                found.setdefault(column, []).append(points)
    return found


def _merged(intervals: Sequence[Interval]) -> Interval:
    return Interval(
        tuple(end for each in intervals for end in each.lows), tuple(end for each in intervals for end in each.highs)
    )


def _bounded_key(node: logical.Scan, statistics: MapStatistics) -> ColumnStatistics | None:
    """Return what is known of the key in the rows that a filter on a column leaves that ascends with the key.

    The days of a calendar have numbers that ascend with their years: the days of 2024 are a range of numbers, and a
    join meets the rows that refer to this range.
    """
    known = statistics.columns.get(node.map.key[0]) if len(node.map.key) == 1 else None
    if known is None or known.histogram is None or known.common:
        return None
    start, stop = 0.0, 1.0
    for column, bounds in _bounds(node.filter).items():
        name = column.name
        about = statistics.columns.get(name)
        if name == node.map.key[0] or about is None:
            continue
        for bound in bounds:
            reach = shares_of_ends(bound, about)
            if reach is not None and reach != (0.0, 1.0) and statistics.relations.ascends(name, node.map.key[0]):
                start, stop = max(start, reach[0]), min(stop, reach[1])
    if (start, stop) == (0.0, 1.0) or stop <= start:
        return None
    low, high = known.histogram.value_at(start), known.histogram.value_at(stop)
    return replace(
        known,
        distinct=max(1, round((known.distinct or 1) * (stop - start))),
        minimum=low,
        maximum=high,
        histogram=Histogram.even((low, high)) if low != high else Histogram.even((low,)),
    )


def _within_count(bound: Bound, known: ColumnStatistics, left: ColumnStatistics, share: float) -> int:
    """Return how many values of a column lie within a bound: the most common ones there, and a part of the others."""
    distinct = known.distinct or 0
    if isinstance(bound, Points):
        return max(1, min(distinct, len(bound.values)))
    if left is known or known.rest <= 0:
        return max(1, min(distinct, len(left.common) if left is not known else round(distinct * share)))
    others = max(0.0, share - sum(each for _, each in left.common) * share)
    return max(1, min(distinct, len(left.common) + round((known.rest_distinct or 0) * min(1.0, others / known.rest))))


def _left(distinct: int | None, rows: float) -> int | None:
    if distinct is None or distinct == 0:
        return distinct
    return max(1, round(shown_among(distinct, rows)))
