"""What is known of the rows of a group, derived once from its first expression and the properties of its inputs."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import TYPE_CHECKING, assert_never

from remuda.catalog import ColumnStatistics
from remuda.dataclass import replace
from remuda.expr import Call, Cast, Column, Expression, Literal, Parameter
from remuda.optimizer.estimates.aggregate_columns import result_columns
from remuda.optimizer.estimates.column_shares import only_column
from remuda.optimizer.estimates.join_properties import join_properties, picked
from remuda.optimizer.estimates.properties import Properties, UniqueKey, shown_among
from remuda.optimizer.estimates.scan_properties import scan_orders, scan_properties
from remuda.optimizer.estimates.selectivity import selectivity
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.types import is_widening

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remuda.catalog import MapStatistics

UNKNOWN_LIMIT = 100.0
"""Rows behind a LIMIT whose value is a parameter."""
WORKING_ROWS = 1_000.0
"""Rows that a step of a recursion finds."""
RECURSION_STEPS = 10.0
SERIES_VALUES = 100.0
"""Values of a series whose ends are known only at execution."""
MOST_ROWS = 1e100
"""The largest estimate: the product of two is still finite. The search takes a plan of infinite cost for none."""


def derive(
    node: logical.LogicalNode,
    below: Sequence[Properties],
    statistics: Mapping[str, MapStatistics],
    partitions: int | None = None,
) -> Properties:
    """Derive the properties of a group; `below` are those of its inputs, statistics by map id."""
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
            return scan_orders(node)
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


def _derive(
    node: logical.LogicalNode,
    below: Sequence[Properties],
    statistics: Mapping[str, MapStatistics],
    partitions: int | None,
) -> Properties:
    match node:
        case logical.Scan():
            return scan_properties(node, statistics.get(node.map.id), partitions)
        case logical.Values():
            alone = (UniqueKey(frozenset(), 1.0),) if len(node.rows) == 1 else ()
            return Properties(float(len(node.rows)), keys=alone, replicated=True)
        case logical.Filter():
            (source,) = below
            share = selectivity(node.condition, source.known)
            return replace(picked(source, share), rows=source.rows * share)
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
            return join_properties(node, below[0], below[1])
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


def _of_project(node: logical.Project, source: Properties) -> Properties:
    """Derive the properties of a projection: columns that pass through, perhaps renamed, keep theirs."""
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
    shown = possible if counted or not source.origins else shown_among(possible, source.rows)
    return max(1.0, min(source.rows, shown, source.left(keys, possible)))


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
    """Derive the properties of a series: a key of the input and the value are a key, as no series has a value twice."""
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
