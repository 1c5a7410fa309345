"""Access paths of a scan: a full scan, each usable index, a key lookup; in each backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import replace
from remuda.expr import conjunction, conjuncts
from remuda.optimizer.cost import (
    ScanSize,
    filter_cutover,
    operator_cost,
    pruned_share,
    scan_cutover,
    scan_startup,
    sort_rule,
    sorted_cost,
)
from remuda.optimizer.estimates.selectivity import bound_selectivity, correlation, has_unknown_values, scan_selectivity
from remuda.optimizer.index_binding import BoundIndex, beside, bind_index, bind_key, undominated
from remuda.optimizer.pruning import key_alternatives, prune
from remuda.optimizer.sargable import SargablePredicates, find_sargable
from remuda.plan import logical, physical
from remuda.plan.bounds import Interval, Points, Prefix, Pruning, Ranges
from remuda.plan.partitioning import is_divided_as
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

    from remuda.catalog import MapDefinition, MapStatistics
    from remuda.expr import Column, Expression

    _Bound = BoundIndex | physical.IndexScan | physical.IndexCandidate


def access_paths(
    scan: logical.Scan,
    required: Traits,
    conventions: tuple[Convention, ...],
    statistics: MapStatistics,
    *,
    pruned: bool = True,
    partitions: int | None = None,
) -> Iterable[physical.ScanNode]:
    """Yield every access path with its cost. An ordered index scan is proposed only where its order is required."""
    predicates = find_sargable(scan.filter)
    pruning = prune(scan.map, scan.filter) if pruned else None
    returned = statistics.rows * scan_selectivity(scan.filter, scan.map, statistics)
    # A replicated map is all here, and in every task that asks for it.
    for convention in (required.convention,) if scan.map.replicated else conventions:
        traits = Traits(convention, _distribution(scan, partitions))
        for path in _paths(scan, required.collation, predicates, pruning, traits, statistics):
            yield _with_cost(path, scan, statistics, returned)
            if isinstance(path, physical.IndexScan) and path.sort_rule is not None:
                yield _sorted_with_cost(path, statistics, returned)


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
    elif (keys := key_alternatives(scan.map, scan.filter)) is not None:
        (first, *further), residual = keys
        yield physical.KeyLookup(scan.map, scan.columns, first, residual, pruning, traits, tuple(further))
    bounds = {index.id: bind_index(index, scan.filter, predicates) for index in scan.map.indexes}
    usable = undominated([bound for bound in bounds.values() if bound is not None])
    # Of equal ones the first stays, so that the most selective binding is the one that is asked first.
    usable.sort(key=lambda bound: _entries_within(bound, scan.map, statistics))
    if not order:
        if usable:
            best, *others = usable
            path = _index_scan(scan, best, Direction.UNORDERED, pruning, traits, statistics)
            yield replace(path, candidates=tuple(map(_candidate, beside(best, others))))
        return
    ordered: dict[str, tuple[BoundIndex, physical.IndexScan]] = {}
    for index in scan.map.indexes:
        if not index.type.serves.order:
            continue
        bound = bounds[index.id] or BoundIndex(index, (), None, scan.filter)
        for direction in (Direction.ASCENDING, Direction.DESCENDING):
            for chosen, collation in _orders(scan, bound, direction, order):
                if collation_satisfies(collation, order):
                    delivered = replace(traits, collation=collation)
                    path = _index_scan(scan, chosen, direction, pruning, delivered, statistics)
                    ordered[index.id] = (bound, path)
                    break
    for bound in undominated([bound for bound, _ in ordered.values()]):
        yield _with_sorted_candidates(ordered[bound.index.id][1], beside(bound, usable), statistics)


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


def _with_sorted_candidates(
    path: physical.IndexScan, others: tuple[BoundIndex, ...], statistics: MapStatistics
) -> physical.IndexScan:
    """Let an ordered scan read another index and sort its rows where that has few entries for the values given."""
    if not others:
        return path
    unserved = [
        conjunct
        for conjunct in conjuncts(path.residual)
        if all(conjunct in conjuncts(other.residual) for other in others)
    ]
    passing = scan_selectivity(conjunction(unserved), path.map, statistics)
    path = replace(path, candidates=tuple(map(_candidate, others)))
    return replace(path, sort_rule=sort_rule(path, passing))


def _candidate(bound: BoundIndex) -> physical.IndexCandidate:
    return physical.IndexCandidate(bound.index, bound.bounds, bound.residual)


def _distribution(scan: logical.Scan, partitions: int | None) -> Distribution:
    """Return how a scan's rows are distributed: by the partitioning columns, if it delivers all of them."""
    if scan.map.replicated:
        return REPLICATED
    by_name: dict[str, Column] = {column.name: column for column in scan.columns}
    if not is_divided_as(scan.map, partitions) or not all(name in by_name for name in scan.map.partitioned_by):
        return Distribution(DistributionKind.PARTITIONED)
    return Distribution(DistributionKind.PARTITIONED, tuple(by_name[name].id for name in scan.map.partitioned_by))


def _orders(
    scan: logical.Scan, bound: BoundIndex, direction: Direction, required: Collation
) -> Iterable[tuple[BoundIndex, Collation]]:
    """Return the orders that an index can be read in: its own, and with NULLs of its first open column last."""
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
    """Count the leading columns that are bound to a single value."""
    fixed = 0
    for single in bound.bounds:
        if not (isinstance(single, Points) and single.is_single):
            break
        fixed += 1
    return fixed


def _delivered_order(
    scan: logical.Scan, bound: BoundIndex, direction: Direction, fixed: int, required: Collation
) -> Collation:
    """Return the index columns in order, without the leading ones that are bound to a single value.

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
        and any(_has_unknown_values(each, statistics) for each in path.usable)
    ):
        # The parameters decide: at execution exact counts of entries choose the cheapest of the indexes and the scan.
        # So it costs a direct scan at most, and nearly nothing as often as not.
        direct = physical.MapScan(path.map, path.columns, scan.filter, path.pruning, path.traits)
        direct_size = ScanSize(statistics.rows * pruned_share(direct), returned)
        cost = min(cost, operator_cost(direct, returned, direct_size)) / 2
    return replace(path, estimate=Estimate(returned, cost, scan_startup(path, cost)))


def _sorted_with_cost(path: physical.IndexScan, statistics: MapStatistics, returned: float) -> physical.IndexScan:
    """Price an ordered scan as what it is where it reads its first candidate and sorts."""
    candidate = path.candidates[0]
    startup, cost = sorted_cost(path, candidate, _entries_within(candidate, path.map, statistics), returned)
    if any(_has_unknown_values(each, statistics) for each in path.usable):
        startup, cost = startup / 2, cost / 2
    return replace(path, estimate=Estimate(returned, cost, startup))


def _has_unknown_values(bound: _Bound, statistics: MapStatistics) -> bool:
    return any(
        has_unknown_values(each, statistics.columns.get(name))
        for name, each in zip(bound.index.columns, bound.bounds, strict=False)
    )


def reduced_scan(path: physical.MapScan, filter_: Expression | None, statistics: MapStatistics) -> physical.MapScan:
    """Return a full scan that leaves a part of its filter to the operator above it."""
    scan = logical.Scan(path.map, path.columns, filter_)
    returned = statistics.rows * scan_selectivity(filter_, path.map, statistics)
    priced = _with_cost(replace(path, filter=filter_), scan, statistics, returned)
    assert isinstance(priced, physical.MapScan)
    return priced


def _scanned_rows(path: physical.ScanNode, statistics: MapStatistics) -> float:
    """Entries within the bounds of an index, whatever the residual then rejects; else what pruning leaves."""
    if isinstance(path, physical.IndexScan):
        return _entries_within(path, path.map, statistics)
    return statistics.rows * pruned_share(path)


def _entries_within(bound: _Bound, definition: MapDefinition, statistics: MapStatistics) -> float:
    """Return how many entries are expected within the bounds of an index."""
    share = 1.0
    equal: dict[str, float] = {}
    for name, each in zip(bound.index.columns, bound.bounds, strict=False):
        within = bound_selectivity(each, statistics.columns.get(name))
        share *= within
        if isinstance(each, Points):
            equal[name] = within
    if len(equal) > 1:
        share *= correlation(equal, definition, statistics)
    return statistics.rows * share
