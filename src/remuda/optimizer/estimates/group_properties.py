"""What is known of the rows of a group, derived once from its first expression and the properties of its inputs.

Columns are known by their ids, so that equally named columns of two maps, or of one map scanned twice, stay apart.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, assert_never

from remuda.catalog import ColumnRelations, ColumnStatistics, Histogram
from remuda.dataclass import dataclass
from remuda.expr import Call, Cast, Column, Expression, Literal, Parameter, columns_of, conjuncts, disjuncts
from remuda.optimizer.estimates.aggregate_columns import result_columns
from remuda.optimizer.estimates.column_shares import only_column, shares_of_ends, within
from remuda.optimizer.estimates.join_cardinality import join_rows
from remuda.optimizer.estimates.selectivity import (
    bound_selectivity,
    branch_points,
    common_points,
    scan_selectivity,
    selectivity,
)
from remuda.optimizer.sargable import find_sargable
from remuda.plan import logical
from remuda.plan.bounds import Bound, Interval, Points
from remuda.plan.joins import JoinKind
from remuda.plan.partitioning import is_divided_as
from remuda.types import is_widening

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from remuda.catalog import MapStatistics

UNKNOWN_LIMIT = 100.0
"""Rows behind a LIMIT whose value is a parameter."""
WORKING_ROWS = 1_000.0
"""Rows that a step of a recursion finds."""
RECURSION_STEPS = 10.0
SERIES_VALUES = 100.0
"""Values of a series whose ends are known only at execution."""

CERTAIN_SHARE = 0.9
"""A join that leaves more of the rows is taken to leave all combinations of their values."""
OFTEN = 100.0
"""Where each value comes so many times, none is left out with a part of the rows."""
WORTH_ASKING = 2.0
"""So many times fewer values must be possible, that a sample is asked."""
PICKED_SHARE = 0.01
"""A SEMI join, or a condition over several relations, that leaves no more of its rows picks them."""

MOST_ROWS = 1e100
"""The largest estimate: the product of two is still finite. The search takes a plan of infinite cost for none."""

Partitioning = tuple[int, ...]
"""Ids of columns on whose equal values rows are together without any exchange, in the order of the partition hash."""


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """No two rows have the same values in these columns, of which there are `values` combinations in all."""

    columns: frozenset[int]
    values: float
    grouped: bool = False
    """Whether they are the groups of an aggregate, and not all rows of a map."""
    extremes: frozenset[int] = frozenset()
    """The results of MIN and MAX: of the rows that a group is of, one has its extreme."""
    picked: bool = False
    """Whether another relation has picked few of its values, of which the plan does not know which they are."""

    def renamed(self, new: Mapping[int, int]) -> UniqueKey:
        """Return the same of columns under other ids, which all of the key have."""
        extremes = frozenset(new[id_] for id_ in self.extremes if id_ in new)
        return replace(self, columns=frozenset(new[id_] for id_ in self.columns), extremes=extremes)


@dataclass(frozen=True, slots=True)
class Origin:
    """Columns of one scan, which had `values` rows: their values have no more combinations.

    `told_by` has them, and those of the maps that the rows refer to by their keys, with the name of the column of the
    scan that tells their values: a customer's name is told by the customer of a sale.
    """

    columns: frozenset[int]
    values: float
    told_by: Mapping[int, str] = field(default_factory=dict)
    key: frozenset[str] = frozenset()
    relations: ColumnRelations = field(default_factory=ColumnRelations)
    reductions: tuple[tuple[frozenset[str], float], ...] = ()
    """The columns by whose values rows were left out, and the share that is left."""

    def renamed(self, new: Mapping[int, int]) -> Origin:
        """Return the same of columns under other ids, without those that have none."""
        told_by = {new[id_]: name for id_, name in self.told_by.items() if id_ in new}
        return replace(self, columns=frozenset(new[id_] for id_ in self.columns if id_ in new), told_by=told_by)

    def left(self, columns: frozenset[int], least: float, possible: float, rows: float) -> float:
        """Return how many of `least` to `possible` combinations of values are left in so many rows.

        A shop's ticket has ten lines, of one customer and one day. Of the lines of one month out of sixty a sixtieth of
        all pairs of customers and days is left, a tenth of what the lines would show if each had a customer of its own.
        A sample tells how many pairs there are. It is asked where that may change much.
        """
        most = min(possible, rows)
        share = math.prod(share for _, share in self.reductions)
        if rows > OFTEN * possible or most <= WORTH_ASKING * _shown(least, share * least):
            return most
        if not self.told_by.keys() >= columns:
            return most
        by = frozenset[str]().union(*(names for names, _ in self.reductions))
        names = {self.told_by[id_] for id_ in columns} - by
        if not names or names | by >= self.key:
            return most
        found = self.relations.dependent(tuple(sorted(names)), tuple(sorted(by)))
        return min(most, max(1.0, _shown(possible, found * share))) if found else most


@dataclass(frozen=True, slots=True)
class Properties:
    rows: float
    columns: Mapping[int, ColumnStatistics] = field(default_factory=dict)
    """Of the map that a column comes from, as far as its filter leaves them; a join's rows may have fewer values."""
    keys: tuple[UniqueKey, ...] = ()
    partitionings: tuple[Partitioning, ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()
    """By which columns, in turn, rows can come in order without a sort: those of SORTED indexes."""
    replicated: bool = False
    """Whether every member has all of the rows without an exchange: constants, and maps that are replicated."""
    origins: tuple[Origin, ...] = ()

    def known(self, column: Column) -> ColumnStatistics | None:
        return self.columns.get(column.id)

    def distinct(self, column: int) -> float | None:
        """How many values the column has in these rows."""
        known = self.columns.get(column)
        if known is None or known.distinct is None:
            return None
        return max(1.0, min(float(known.distinct), self.rows))

    def distinct_left(self, column: int, least: float = 1.0) -> float | None:
        """Return the same by what a sample shows, which is not asked where there are no more than `least` anyway."""
        found = self.distinct(column)
        if found is None or found <= least:
            return found
        return max(1.0, min(found, self.left(frozenset([column]), float(self.columns[column].distinct or 1))))

    def left(self, columns: frozenset[int], possible: float) -> float:
        """Return how many of the possible combinations of values are left in these rows."""
        reduced = [each for each in self.origins if each.reductions]
        if not reduced:
            return min(possible, self.rows)
        least = max(map(self._values, columns), default=1.0)
        return min(each.left(columns, least, possible, self.rows) for each in reduced)

    def distinct_or_guess(self, column: int) -> float:
        known = self.distinct_left(column)
        return max(1.0, math.sqrt(self.rows)) if known is None else known

    def combinations(self, columns: frozenset[int]) -> float:
        """Return how many combinations of values these columns have, whether they are among these rows or not.

        Columns of one map have no more than the map has rows: names, addresses and birthdays of 5,000 customers 5,000.
        """
        left, product = columns, 1.0
        for origin in self.origins:
            own = left & origin.columns
            if own:
                left -= own
                counts = [self._values(id_) for id_ in own]
                product *= counts[0] if len(counts) == 1 else _shown(math.prod(counts), origin.values)
        return product * math.prod(self._values(id_) for id_ in left)

    def _values(self, column: int) -> float:
        known = self.columns.get(column)
        if known is None or known.distinct is None:
            return max(1.0, math.sqrt(self.rows))
        return max(1.0, float(known.distinct))

    def renamed(self, new_id: Callable[[int], int]) -> Properties:
        """Return the same in terms of other columns."""
        return replace(
            self,
            columns={new_id(id_): known for id_, known in self.columns.items()},
            keys=tuple(key.renamed({id_: new_id(id_) for id_ in key.columns | key.extremes}) for key in self.keys),
            origins=tuple(each.renamed({id_: new_id(id_) for id_ in each.told_by}) for each in self.origins),
            partitionings=tuple(tuple(map(new_id, each)) for each in self.partitionings),
            orders=tuple(tuple(map(new_id, each)) for each in self.orders),
        )

    def unique_within(self, columns: set[int] | frozenset[int]) -> UniqueKey | None:
        return next((key for key in self.keys if key.columns <= columns), None)


def derive(
    node: logical.LogicalNode,
    below: Sequence[Properties],
    statistics: Mapping[str, MapStatistics],
    partitions: int | None = None,
) -> Properties:
    """`below` are the properties of the inputs; statistics by map id; `partitions` of the plan."""
    properties = _derive(node, below, statistics, partitions)
    if properties.rows > MOST_ROWS:
        properties = replace(properties, rows=MOST_ROWS)
    orders = _orders(node, below)
    if orders != properties.orders:
        properties = replace(properties, orders=orders)
    if below and all(source.replicated for source in below) != properties.replicated:
        return replace(properties, replicated=not properties.replicated)
    return properties


def _orders(node: logical.LogicalNode, below: Sequence[Properties]) -> tuple[tuple[int, ...], ...]:
    """Return the orders in which rows can come without a sort; what is missing here is only not thought of."""
    match node:
        case logical.Scan():
            return _scan_orders(node)
        case logical.Filter() | logical.Root():
            return below[0].orders
        case logical.Limit() if node.collation:
            return (tuple(key.column for key in node.collation),)
        case logical.Project():
            names = {
                item.expression.id: item.column.id
                for item in reversed(node.assignments)
                if isinstance(item.expression, Column)
            }
            renamed = (tuple(names[id_] for id_ in takewhile(names.__contains__, each)) for each in below[0].orders)
            return tuple(each for each in renamed if each)
        case logical.Aggregate():
            ids = {column.id for column in node.keys}
            leading = (each[: len(ids)] for each in below[0].orders)
            return tuple(each for each in leading if ids and set(each) == ids)
        case logical.Join():
            # A join keeps the order of the side whose rows it takes as they come; of an INNER one that may be either.
            left = () if node.kind.keeps_right else below[0].orders
            right = below[1].orders if node.kind in {JoinKind.INNER, JoinKind.RIGHT} else ()
            return (*left, *right)
        case _:
            return ()


def _scan_orders(node: logical.Scan) -> tuple[tuple[int, ...], ...]:
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


def _derive(
    node: logical.LogicalNode,
    below: Sequence[Properties],
    statistics: Mapping[str, MapStatistics],
    partitions: int | None,
) -> Properties:
    match node:
        case logical.Scan():
            return _of_scan(node, statistics.get(node.map.id), partitions)
        case logical.Values():
            alone = (UniqueKey(frozenset(), 1.0),) if len(node.rows) == 1 else ()
            return Properties(float(len(node.rows)), keys=alone, replicated=True)
        case logical.Filter():
            (source,) = below
            share = selectivity(node.condition, source.known)
            return replace(_picked(source, share), rows=source.rows * share)
        case logical.Project():
            return _of_project(node, below[0])
        case logical.Sort() | logical.Root():
            return below[0]
        case logical.Window():
            return below[0]
        case logical.Limit():
            (source,) = below
            return replace(source, rows=min(source.rows, _limit(node.count)), partitionings=())
        case logical.Aggregate():
            return _of_aggregate(node, below[0])
        case logical.Join():
            return _of_join(node, below[0], below[1])
        case logical.Union():
            return _of_union(node, below)
        case logical.Expand():
            (source,) = below
            return Properties(source.rows * len(node.projections), _expanded(node, source))
        case logical.Series():
            return _of_series(node, below[0])
        case logical.Recursive():
            first, _ = below
            return Properties(max(first.rows, 1.0) * RECURSION_STEPS)
        case logical.WorkingTable():
            return Properties(WORKING_ROWS)
        case logical.Modify():
            return Properties(1.0)
        case logical.Apply():
            raise AssertionError("the rewrite has removed every sub-query")
        case _:
            assert_never(node)


def _of_scan(node: logical.Scan, statistics: MapStatistics | None, partitions: int | None) -> Properties:
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


def _shown(values: float, rows: float) -> float:
    """Return how many of so many equally frequent values are among rows that are picked at random."""
    return min(values * -math.expm1(-rows / values), rows) if values > 0 else values


def _left(distinct: int | None, rows: float) -> int | None:
    if distinct is None or distinct == 0:
        return distinct
    return max(1, round(_shown(distinct, rows)))


def _of_project(node: logical.Project, source: Properties) -> Properties:
    """Columns that pass through unchanged, perhaps under another name, keep what is known of them."""
    renamed: dict[int, int] = {}
    columns: dict[int, ColumnStatistics] = {}
    for item in node.assignments:
        if isinstance(item.expression, Column):
            renamed.setdefault(item.expression.id, item.column.id)
            known = source.columns.get(item.expression.id)
        else:
            known = _of_computed(item.expression, source)
        if known is not None:
            columns[item.column.id] = known
    keys = tuple(key.renamed(renamed) for key in source.keys if all(id_ in renamed for id_ in key.columns))
    partitionings = tuple(
        tuple(renamed[id_] for id_ in each) for each in source.partitionings if all(id_ in renamed for id_ in each)
    )
    origins = tuple(kept for each in source.origins if (kept := each.renamed(renamed)).told_by)
    return Properties(source.rows, columns, keys, partitionings, origins=origins)


def _of_computed(expression: Expression, source: Properties) -> ColumnStatistics | None:
    """Return what is known of a computed column: `week - 53` has as many values as the week."""
    column = only_column(expression)
    known = None if column is None else source.columns.get(column.id)
    if known is None or known.distinct is None or not _keeps_apart(expression):
        return None
    return ColumnStatistics(distinct=known.distinct, null_share=known.null_share)


def _keeps_apart(expression: Expression) -> bool:
    match expression:
        case Column() | Literal() | Parameter():
            return True
        case Cast():
            return is_widening(expression.argument.type, expression.type) and _keeps_apart(expression.argument)
        case Call(function="+" | "-" | "negate"):
            return all(map(_keeps_apart, expression.arguments))
        case _:
            return False


def _of_aggregate(node: logical.Aggregate, source: Properties) -> Properties:
    if not node.keys:
        return Properties(1.0, keys=(UniqueKey(frozenset(), 1.0),))
    ids = frozenset(column.id for column in node.keys)
    groups = group_count(ids, source)
    columns = {id_: source.columns[id_] for id_ in ids if id_ in source.columns}
    columns |= result_columns(node.calls, groups, source.rows, source.columns)
    # What has one value only tells no two groups apart.
    telling = frozenset(id_ for id_ in ids if source.distinct(id_) != 1.0) or ids
    extremes = frozenset(call.column.id for call in node.calls if call.function in {"min", "max"})
    keys = (
        UniqueKey(telling, groups, grouped=True, extremes=extremes),
        *(key for key in source.keys if key.columns < ids),
    )
    partitionings = tuple(each for each in source.partitionings if ids.issuperset(each))
    same = {id_: id_ for id_ in ids}
    origins = tuple(kept for each in source.origins if (kept := each.renamed(same)).columns)
    return Properties(groups, columns, keys, partitionings, origins=origins)


def group_count(keys: frozenset[int], source: Properties) -> float:
    """Combinations of the keys' values: of those of one map, as counted; of joined rows, as many as they would show."""
    if source.unique_within(keys) is not None:
        return max(1.0, source.rows)
    possible = source.combinations(keys)
    counted = any(keys <= each.columns and each.values == source.rows for each in source.origins)
    shown = possible if counted or not source.origins else _shown(possible, source.rows)
    return max(1.0, min(source.rows, shown, source.left(keys, possible)))


def _of_join(node: logical.Join, left: Properties, right: Properties) -> Properties:
    rows = join_rows(node, left, right)
    kind = node.kind
    if kind is JoinKind.SEMI:
        left = _picked(left, rows / max(1.0, left.rows))
        left = replace(left, origins=_referring(node, left, right, node.right.columns, rows))
    if not kind.delivers_right:
        return replace(left, rows=rows, partitionings=left.partitionings)
    columns = {**left.columns, **right.columns}
    if kind is JoinKind.INNER:
        columns.update(_equal_columns(node, left, right))
    # A column that an outer join fills with NULLs no longer says where its row is.
    partitionings = (
        *(() if kind.keeps_right else left.partitionings),
        *(() if kind.keeps_left else right.partitionings),
    )
    keys = _joined_keys(node, left, right)
    origins = _referring(node, left, right, node.right.columns, rows)
    origins += _referring(node, right, left, node.left.columns, rows)
    return Properties(rows, columns, keys, partitionings, origins=origins)


def _picked(source: Properties, share: float) -> Properties:
    """Return the properties of rows of which so many are left by values that only the execution knows."""
    if share >= PICKED_SHARE:
        return source
    return replace(source, keys=tuple(replace(key, picked=True) for key in source.keys))


def _referring(
    node: logical.Join, side: Properties, other: Properties, columns: tuple[Column, ...], rows: float
) -> tuple[Origin, ...]:
    """Return the origins of a side whose rows each meet one row of the other side, which has these columns, or none."""
    met = _references(node, {column.id for column in columns})
    has_one = node.kind is JoinKind.INNER and other.unique_within(set(met.values())) is not None
    if not met or not (has_one or node.kind is JoinKind.SEMI):
        return side.origins
    share = min(1.0, rows / max(1.0, side.rows))
    told = columns if has_one else ()
    return tuple(_with_reference(each, met, told, share) for each in side.origins)


def _references(node: logical.Join, other: set[int]) -> dict[int, int]:
    """Return the columns that are set equal to columns of the other side, each with that."""
    found: dict[int, int] = {}
    for part in conjuncts(node.condition):
        match part:
            case Call(function="=", arguments=(Column(id=one), Column(id=two))) if (one in other) is not (two in other):
                own, referred = (two, one) if one in other else (one, two)
                found[own] = referred
    return found


def _with_reference(origin: Origin, met: Mapping[int, int], told: tuple[Column, ...], share: float) -> Origin:
    """Return an origin whose columns tell those of another map, and of whose rows this share has a match there."""
    if not origin.told_by.keys() >= met.keys():
        return origin
    names = frozenset(origin.told_by[id_] for id_ in met)
    reductions = origin.reductions if share > CERTAIN_SHARE else (*origin.reductions, (names, share))
    told_by = origin.told_by
    if len(names) == 1:
        (name,) = names
        told_by = {**told_by, **dict.fromkeys((column.id for column in told), name)}
    return replace(origin, told_by=told_by, reductions=reductions)


def _equal_columns(node: logical.Join, left: Properties, right: Properties) -> dict[int, ColumnStatistics]:
    """Columns that are equal have the values of the one that has fewer: so the rows of a join do not depend on the
    order in which its parts are joined.
    """
    found: dict[int, ColumnStatistics] = {}
    for part in conjuncts(node.condition):
        if isinstance(part, Call) and part.function == "=":
            known = [
                (statistics, statistics.distinct)
                for side in part.arguments
                if isinstance(side, Column)
                and (statistics := left.columns.get(side.id) or right.columns.get(side.id)) is not None
                and statistics.distinct is not None
            ]
            if len(known) == 2:
                fewer = min(known, key=lambda pair: pair[1])[0]
                found.update((side.id, fewer) for side in part.arguments if isinstance(side, Column))
    return found


def _joined_keys(node: logical.Join, left: Properties, right: Properties) -> tuple[UniqueKey, ...]:
    """Where each left row has one match at most, a key of the left side is one of the join; and the other way round."""
    keys: list[UniqueKey] = []
    if not node.kind.keeps_right:
        once = node.kind is JoinKind.SINGLE or _matches_once(node, right, node.right.columns)
        keys.extend(left.keys if once else ())
    if not node.kind.keeps_left and _matches_once(node, left, node.left.columns):
        keys.extend(right.keys)
    return tuple(keys)


def _matches_once(node: logical.Join, side: Properties, columns: tuple[Column, ...]) -> bool:
    """Whether the condition sets all columns of a unique key of the side equal to something of the other side."""
    own = {column.id for column in columns}
    fixed: set[int] = set()
    for part in conjuncts(node.condition):
        if isinstance(part, Call) and part.function == "=":
            first, second = part.arguments
            for one, other in ((first, second), (second, first)):
                if isinstance(one, Column) and one.id in own and not own & set(columns_of(other)):
                    fixed.add(one.id)
    return side.unique_within(fixed) is not None


def _of_union(node: logical.Union, below: Sequence[Properties]) -> Properties:
    rows = sum(source.rows for source in below)
    columns: dict[int, ColumnStatistics] = {}
    for ordinal, column in enumerate(node.columns):
        counts = [source.distinct(names[ordinal].id) for source, names in zip(below, node.sources, strict=True)]
        if all(count is not None for count in counts):
            columns[column.id] = ColumnStatistics(distinct=round(sum(count or 0.0 for count in counts)))
    return Properties(rows, columns)


def _expanded(node: logical.Expand, source: Properties) -> dict[int, ColumnStatistics]:
    columns: dict[int, ColumnStatistics] = {}
    for ordinal, column in enumerate(node.columns):
        expressions = {projection[ordinal] for projection in node.projections}
        originals = [each for each in expressions if isinstance(each, Column)]
        if len(originals) == 1 and (known := source.columns.get(originals[0].id)) is not None:
            columns[column.id] = known
        elif not originals:
            columns[column.id] = ColumnStatistics(distinct=len(expressions))
    return columns


def _of_series(node: logical.Series, source: Properties) -> Properties:
    """A key of the input and the value are a key: a series has no value twice."""
    count, id_ = node.call.known_count, node.call.column.id
    unknown = SERIES_VALUES if node.call.expected is None else node.call.expected
    values = unknown if count is None else float(count)
    columns = dict(source.columns) if count is None else {**source.columns, id_: ColumnStatistics(distinct=count)}
    keys = tuple(UniqueKey(key.columns | {id_}, key.values * values) for key in source.keys)
    return replace(source, rows=source.rows * values, columns=columns, keys=keys)


def _limit(count: Expression | None) -> float:
    if count is None:
        return math.inf
    return float(count.value) if isinstance(count, Literal) else UNKNOWN_LIMIT
