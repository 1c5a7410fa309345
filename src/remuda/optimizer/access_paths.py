"""Access paths of a scan: a full scan, each usable index, a key lookup; in each backend."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.expr import Expression, conjunction, conjuncts
from remuda.optimizer.cost import (
    INDEX_ROW,
    ScanSize,
    filter_cutover,
    operator_cost,
    pruned_share,
    scan_cutover,
    scan_startup,
)
from remuda.optimizer.pruning import prune
from remuda.optimizer.sargable import SargablePredicate, SargablePredicates, find_sargable, merge_intervals
from remuda.optimizer.selectivity import bound_selectivity, correlation, has_unknown_values, scan_selectivity
from remuda.plan import logical, physical
from remuda.plan.bounds import Bound, Interval, Points, Prefix, Pruning, Ranges
from remuda.plan.physical import Direction, Estimate
from remuda.plan.traits import (
    REPLICATED,
    Collation,
    Convention,
    Distribution,
    DistributionKind,
    SortKey,
    Traits,
    collation_satisfies,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.catalog import IndexDefinition, MapStatistics
    from remuda.expr import Column

# Binding sargable predicates to an index: which bounds it can serve, and what remains of the filter.
#
# For `a = 1 AND b > 2 AND b < 4` and SORTED(a, b): a = 1, 2 < b < 4, nothing remains. For SORTED(a, c): a = 1, and `b
# > 2 AND b < 4` remains. For HASH(a, b): unusable, as HASH needs every column by equality.


@dataclass(frozen=True, slots=True)
class BoundIndex:
    """`bounds` for the leading columns of the index; `used AND residual` is equivalent to the filter.

    `used` is what the bounds stand for exactly; beside it they may only leave out rows that the residual rejects.
    """

    index: IndexDefinition
    bounds: tuple[Bound, ...]
    used: Expression | None
    residual: Expression | None


def bind_index(index: IndexDefinition, filter_: Expression | None, predicates: SargablePredicates) -> BoundIndex | None:
    """None where the index cannot serve any part of the filter."""
    bounds: list[Bound] = []
    used: list[Expression] = []
    for column in index.columns:
        chosen = _choose(predicates.get(column, []), ranges=index.type.serves.ranges)
        if chosen is None:
            break
        bound, conjuncts_used = chosen
        bounds.append(bound)
        used.extend(conjuncts_used)
        if not (isinstance(bound, Points) and bound.is_single):
            break
    if not bounds or (len(bounds) < len(index.columns) and not index.type.serves.leading_columns):
        return None
    residual = conjunction(part for part in conjuncts(filter_) if part not in used)
    return BoundIndex(index, tuple(bounds), conjunction(used), residual)


def _choose(predicates: list[SargablePredicate], *, ranges: bool) -> tuple[Bound, list[Expression]] | None:
    """In this order: one equality, a union of equalities, all ranges together, a union of ranges.

    A predicate that is not exact is bound, and evaluated again as part of the residual.
    """
    points = [(predicate, predicate.bound) for predicate in predicates if isinstance(predicate.bound, Points)]
    for predicate, bound in sorted(points, key=lambda pair: not pair[1].is_single):
        return bound, [predicate.conjunct]
    intervals = [predicate for predicate in predicates if isinstance(predicate.bound, Interval)]
    if ranges and intervals:
        return merge_intervals(intervals), [predicate.conjunct for predicate in intervals if predicate.exact]
    for predicate in predicates if ranges else ():
        return predicate.bound, [predicate.conjunct] if predicate.exact else []
    return None


def bind_key(
    key: tuple[str, ...], filter_: Expression | None, predicates: SargablePredicates
) -> tuple[tuple[Points, ...], Expression | None] | None:
    """The points of every key column, and what remains of the filter; None where a key column has none."""
    points: list[Points] = []
    used: list[Expression] = []
    for column in key:
        chosen = _choose(predicates.get(column, []), ranges=False)
        if chosen is None or not isinstance(chosen[0], Points) or chosen[0].or_null:
            return None
        points.append(chosen[0])
        used.extend(chosen[1])
    return tuple(points), conjunction(part for part in conjuncts(filter_) if part not in used)


def access_paths(
    scan: logical.Scan,
    required: Traits,
    conventions: tuple[Convention, ...],
    statistics: MapStatistics,
    *,
    pruned: bool = True,
) -> Iterable[physical.ScanNode]:
    """Yield every access path with its cost. An ordered index scan is proposed only where its order is required."""
    predicates = find_sargable(scan.filter)
    pruning = prune(scan.map, scan.filter) if pruned else None
    returned = statistics.rows * scan_selectivity(scan.filter, scan.map, statistics)
    # A replicated map is all here, and in every task that asks for it.
    for convention in (required.convention,) if scan.map.replicated else conventions:
        traits = Traits(convention, _distribution(scan))
        for path in _paths(scan, required.collation, predicates, pruning, traits, statistics):
            yield _with_cost(path, scan, statistics, returned)


def _paths(
    scan: logical.Scan,
    order: Collation,
    predicates: SargablePredicates,
    pruning: Pruning | None,
    traits: Traits,
    statistics: MapStatistics,
) -> Iterable[physical.ScanNode]:
    yield physical.MapScan(scan.map, scan.columns, scan.filter, pruning, traits)
    key = bind_key(scan.map.key, scan.filter, predicates)
    if key is not None:
        yield physical.KeyLookup(scan.map, scan.columns, key[0], key[1], pruning, traits)
    if not order:
        bounds = (bind_index(index, scan.filter, predicates) for index in scan.map.indexes)
        for bound in _undominated([bound for bound in bounds if bound is not None]):
            yield _index_scan(scan, bound, Direction.UNORDERED, pruning, traits, statistics)
        return
    ordered: dict[str, tuple[BoundIndex, physical.IndexScan]] = {}
    for index in scan.map.indexes:
        if not index.type.serves.order:
            continue
        bound = bind_index(index, scan.filter, predicates) or BoundIndex(index, (), None, scan.filter)
        for direction in (Direction.ASCENDING, Direction.DESCENDING):
            for chosen, collation in _orders(scan, bound, direction, order):
                if collation_satisfies(collation, order):
                    delivered = replace(traits, collation=collation)
                    path = _index_scan(scan, chosen, direction, pruning, delivered, statistics)
                    ordered[index.id] = (bound, path)
                    break
    for bound in _undominated([bound for bound, _ in ordered.values()]):
        yield ordered[bound.index.id][1]


def _undominated(bounds: list[BoundIndex]) -> list[BoundIndex]:
    """Leave out each index for which another one has all of its bounds and finds a row no slower.

    For `a = 1 AND b > 2`: SORTED(a, c), with `a = 1`, is dominated by SORTED(a, b), and SORTED(a) by HASH(a) for
    `a = 1` alone. All of the given indexes deliver the order that is required. Of equal ones the first stays.
    """
    kept: list[BoundIndex] = []
    for bound in sorted(bounds, key=lambda each: (INDEX_ROW[each.index.type], -len(each.bounds))):
        if not any(_has_bounds(other, bound) for other in kept):
            kept.append(bound)
    return kept


def _has_bounds(one: BoundIndex, other: BoundIndex) -> bool:
    own = dict(zip(one.index.columns, one.bounds, strict=False))
    return all(own.get(name) == bound for name, bound in zip(other.index.columns, other.bounds, strict=False))


def _index_scan(
    scan: logical.Scan,
    bound: BoundIndex,
    direction: Direction,
    pruning: Pruning | None,
    traits: Traits,
    statistics: MapStatistics,
) -> physical.IndexScan:
    node = physical.IndexScan(
        scan.map, bound.index, scan.columns, bound.bounds, bound.residual, direction, pruning, traits
    )
    if direction is not Direction.UNORDERED:
        return replace(node, filter_cutover=filter_cutover(node, statistics.rows))
    return replace(node, filter=scan.filter, scan_cutover=scan_cutover(node, statistics.rows))


def _distribution(scan: logical.Scan) -> Distribution:
    """A partitioned map is partitioned by columns that the scan delivers, if it delivers all of them."""
    if scan.map.replicated:
        return REPLICATED
    by_name: dict[str, Column] = {column.name: column for column in scan.columns}
    if not all(name in by_name for name in scan.map.partitioned_by):
        return Distribution(DistributionKind.PARTITIONED)
    return Distribution(DistributionKind.PARTITIONED, tuple(by_name[name].id for name in scan.map.partitioned_by))


def _orders(
    scan: logical.Scan, bound: BoundIndex, direction: Direction, required: Collation
) -> Iterable[tuple[BoundIndex, Collation]]:
    """The orders that an index can be read in: its own, and with NULLs of its first open column at the other end."""
    fixed = _fixed_columns(bound)
    yield bound, _delivered_order(scan, bound, direction, fixed, required)
    if len(bound.bounds) == fixed and fixed < len(bound.index.columns):
        every = Ranges((Interval(), Points((), or_null=True)), nulls_last=True)
        other = replace(bound, bounds=(*bound.bounds, every))
        natural = _delivered_order(scan, bound, direction, fixed, ())
        if natural:
            first = replace(natural[0], nulls_first=not natural[0].nulls_first)
            yield other, (first, *natural[1:])


def _fixed_columns(bound: BoundIndex) -> int:
    """How many leading columns are bound to a single value."""
    fixed = 0
    for single in bound.bounds:
        if not (isinstance(single, Points) and single.is_single):
            break
        fixed += 1
    return fixed


def _delivered_order(
    scan: logical.Scan, bound: BoundIndex, direction: Direction, fixed: int, required: Collation
) -> Collation:
    """The index columns in order, without the leading ones that are bound to a single value.

    A union of values is read value by value, lowest first, so its order is the index's all the same. A column without
    NULLs has them at whichever end is required.
    """
    by_name = {column.name: column.id for column in scan.columns}
    descending = direction is Direction.DESCENDING
    keys: list[SortKey] = []
    for ordinal, name in enumerate(bound.index.columns[fixed:]):
        if name not in by_name:
            break
        key = SortKey(by_name[name], descending, nulls_first=not descending)
        if ordinal < len(required) and _has_no_nulls(scan, bound, fixed + ordinal, name):
            key = replace(key, nulls_first=required[ordinal].nulls_first)
        keys.append(key)
    return tuple(keys)


def _has_no_nulls(scan: logical.Scan, bound: BoundIndex, ordinal: int, name: str) -> bool:
    if not scan.map.column(name).nullable:
        return True
    match bound.bounds[ordinal] if ordinal < len(bound.bounds) else None:
        case Points(or_null=False) | Interval() | Prefix():
            return True
        case Ranges(parts=parts):
            return not any(isinstance(part, Points) and part.or_null for part in parts)
    return False


def _with_cost(
    path: physical.ScanNode, scan: logical.Scan, statistics: MapStatistics, returned: float
) -> physical.ScanNode:
    """Price a path by which so many rows are returned: as many by each path of a scan."""
    size = ScanSize(_scanned_rows(path, statistics), returned)
    cost = operator_cost(path, returned, size)
    if (
        isinstance(path, physical.IndexScan)
        and path.scan_cutover is not None
        and any(
            has_unknown_values(bound, statistics.columns.get(name))
            for name, bound in zip(path.index.columns, path.bounds, strict=False)
        )
    ):
        # The parameters decide: at execution the exact count of entries chooses the cheaper of index and direct scan.
        # So it costs a direct scan at most, and nearly nothing as often as not.
        direct = physical.MapScan(path.map, path.columns, scan.filter, path.pruning, path.traits)
        direct_size = ScanSize(statistics.rows * pruned_share(direct), returned)
        cost = min(cost, operator_cost(direct, returned, direct_size)) / 2
    return replace(path, estimate=Estimate(returned, cost, scan_startup(path, cost)))


def reduced_scan(path: physical.MapScan, filter_: Expression | None, statistics: MapStatistics) -> physical.MapScan:
    """Return a full scan that leaves a part of its filter to the operator above it."""
    scan = logical.Scan(path.map, path.columns, filter_)
    returned = statistics.rows * scan_selectivity(filter_, path.map, statistics)
    priced = _with_cost(replace(path, filter=filter_), scan, statistics, returned)
    assert isinstance(priced, physical.MapScan)
    return priced


def _scanned_rows(path: physical.ScanNode, statistics: MapStatistics) -> float:
    """Entries within the bounds of an index, whatever the residual then rejects; else what pruning leaves."""
    if not isinstance(path, physical.IndexScan):
        return statistics.rows * pruned_share(path)
    share = 1.0
    equal: dict[str, float] = {}
    for name, bound in zip(path.index.columns, path.bounds, strict=False):
        within = bound_selectivity(bound, statistics.columns.get(name))
        share *= within
        if isinstance(bound, Points):
            equal[name] = within
    if len(equal) > 1:
        share *= correlation(equal, path.map, statistics)
    return statistics.rows * share
