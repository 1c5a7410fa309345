"""The plan checker: refuses a physical plan whose operators' needs are not met by their inputs.

It is the last word before a plan runs, and in tests after every rule. What it finds is a bug of the planner, never a
user's mistake.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.errors import internal_error
from remuda.expr import Column, Expression, columns_of
from remuda.plan import logical, physical
from remuda.plan.joins import JoinKind
from remuda.plan.partitioning import is_divided_as
from remuda.plan.traits import Collation, Convention, DistributionKind, SortKey, collation_satisfies
from remuda.plan.walk import inputs, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def check_logical(tree: logical.LogicalNode) -> None:
    """Check that every column used comes from the input, with its type."""
    for node in walk(tree):
        available = {column.id: column for child in inputs(node) for column in child.columns}
        if isinstance(node, logical.Scan):
            _require(
                all(node.map.find_column(column.name) for column in node.columns),
                "a scan reads columns of its map",
                node,
            )
            continue
        if isinstance(node, logical.Values):
            _require(all(len(row) == len(node.columns) for row in node.rows), "rows are as wide as their columns", node)
            continue
        for column in columns_of(*_expressions(node)).values():
            _require(available.get(column.id) == column, f"column {column.name} comes from the input", node)


def check_physical(tree: physical.Root, *, members: int, partitions: int | None = None) -> None:
    """Check that columns, distribution, collation and convention of every input fit what its consumer needs."""
    kinds: set[type] = set()
    for node in walk(tree):
        kinds.add(type(node))
        if isinstance(node, physical.ScanNode | physical.LookupJoin):
            _check_partitions(node, partitions)
        children = inputs(node)
        if children:
            _check_columns(node, children)
            _check_local_exchange(node, children)
        for child in children:
            _check_convention(node, child)
            _check_distribution(node, child, members)
            _check_collation(node, child)
    _require(tree.traits.convention is Convention.LOCAL, "the result is in this process", tree)
    for check, concerned in _CHECKS_OF_PAIRS:
        if not kinds.isdisjoint(concerned):
            check(tree)


def _check_partitions(node: Any, partitions: int | None) -> None:
    """Check that maps have the plan's number of partitions: else their rows are not where the hash of a column says."""
    if not is_divided_as(node.map, partitions) and not node.map.replicated:
        if isinstance(node, physical.ScanNode):
            _require(not node.traits.distribution.columns, "only maps with the plan's partitions are by columns", node)
        elif node.traits.distribution.kind is DistributionKind.PARTITIONED:
            below = node.input.traits.distribution.kind
            _require(below is DistributionKind.REPLICATED, "a left row is on the member that has its matches", node)


def _check_columns(node: Any, children: tuple[Any, ...]) -> None:
    available = {column.id for child in children for column in child.columns}
    needed = set(columns_of(*_expressions(node))) | {key.column for key in _order(node)}
    if isinstance(node, physical.LookupJoin):
        available |= {column.id for column in node.map_columns}
    _require(needed <= available, "every column used comes from the input", node)
    if isinstance(node, physical.HashJoin | physical.NestedLoopJoin) and node.row_cutover is not None:
        _require(not node.kind.keeps_right, "a row join does not know which right rows met no left row", node)
    match node:
        case physical.HashJoin() | physical.MergeJoin():
            left, right = ({column.id for column in child.columns} for child in children)
            for key in node.keys:
                _require(key.left.id in left and key.right.id in right, "a key has a column of either side", node)
                _require(key.left.type == key.right.type, "the sides of a key have one type", node)
        case physical.NestedLoopJoin():
            left, right = ({column.id for column in child.columns} for child in children)
            for branch in node.branches:
                compared = (*branch.equalities, *branch.ranges)
                own = columns_of(*(each.left for each in compared), branch.left_filter).keys()
                other = columns_of(*(each.right for each in compared), branch.right_filter).keys()
                _require(own <= left and other <= right, "a branch compares one side with the other", node)
                _require(all(each.left.type == each.right.type for each in compared), "of one type", node)
        case physical.Union() | physical.Recursive():
            for child, source in zip(children, node.sources, strict=True):
                delivered = {column.id for column in child.columns}
                _require(all(column.id in delivered for column in source), "a union names columns of its inputs", node)


def _check_local_exchange(node: Any, children: tuple[Any, ...]) -> None:
    """Workers share a chain over a scan; their rows are taken in any order, and what they reduced is merged."""
    if isinstance(node, physical.LocalExchange):
        _require(node.traits.convention is Convention.LOCAL, "the workers are those of a member", node)
        chain: Any = node.input
        if isinstance(chain, physical.TopN) or _is_phase(chain, physical.Phase.PARTIAL):
            chain = chain.input
        _require(scan_of_chain(chain) is not None, "workers share a scan and what makes batches from its batches", node)
        reduces = _is_phase(node.input, physical.Phase.PARTIAL)
        _require(node.partial_rule is None or reduces, "only an aggregate is done in parts or not", node)
        return
    for child in children:
        if not isinstance(child, physical.LocalExchange):
            continue
        _require(isinstance(node, TAKES_ANY_ORDER), "rows of workers come in no order, and all of them", node)
        passing = isinstance(node, physical.HashJoin | physical.NestedLoopJoin) and child is node.left
        _require(not passing or reads_ahead(node), "what goes through a join batch by batch is shared above it", node)
        lower: Any = child.input
        if _is_phase(lower, physical.Phase.PARTIAL):
            merges = _is_phase(node, physical.Phase.FINAL, physical.Phase.INTERMEDIATE)
            same = merges and (node.keys, node.calls, node.states) == (lower.keys, lower.calls, lower.states)
            _require(same, "an aggregate in parts is merged by the operator above", node)
        else:
            _require(not isinstance(node, physical.HashAggregate) or node.phase in _WHOLE, "states are merged", node)
            if isinstance(lower, physical.TopN):
                same = isinstance(node, physical.TopN) and node.collation == lower.collation
                _require(same, "the first rows of each worker are merged by the operator above", node)


TAKES_ANY_ORDER = (
    physical.HashAggregate
    | physical.Sort
    | physical.TopN
    | physical.Window
    | physical.Spool
    | physical.Root
    | physical.HashJoin
    | physical.NestedLoopJoin
    | physical.RootExchange
    | physical.HashExchange
    | physical.BroadcastExchange
)
"""What can stand above a local exchange. Not a Limit, for which workers would read further than it needs."""
_WHOLE = {physical.Phase.COMPLETE, physical.Phase.PARTIAL}
"""Aggregates of rows."""


def scan_of_chain(node: Any) -> physical.MapScan | None:
    """Return the scan below operators that make batches from batches; None where something else is below.

    Not below a join that asks at its end which right rows no left row has met, of which a worker knows only its own,
    nor below one that reads its left side ahead.
    """
    while True:
        match node:
            case physical.MapScan():
                return node
            case physical.Filter() | physical.Project() | physical.RuntimeFilter():
                node = node.input
            case physical.HashJoin() | physical.NestedLoopJoin() if not (node.kind.keeps_right or reads_ahead(node)):
                node = node.left
            case _:
                return None


def reads_ahead(node: physical.HashJoin | physical.NestedLoopJoin) -> bool:
    """Return whether a join reads its left side, as far as it makes a runtime filter, before its right side."""
    if isinstance(node, physical.NestedLoopJoin) or node.runtime_keys is None:
        return False
    return node.runtime_keys.side is not node.build_side


def _is_phase(node: Any, *phases: physical.Phase) -> bool:
    return isinstance(node, physical.HashAggregate) and node.phase in phases


def _check_spools(tree: Any) -> None:
    """Check that every reader of a spool is in the fragment of the spool, and has columns of the same types."""
    spools: dict[int, tuple[int, Any]] = {}
    readers: list[tuple[int, Any]] = []
    last = 0

    def visit(node: Any, fragment: int) -> None:
        nonlocal last
        if isinstance(node, physical.Spool):
            _require(node.number not in spools, "a spool has a number of its own", node)
            spools[node.number] = (fragment, node)
        elif isinstance(node, physical.SpoolRead):
            readers.append((fragment, node))
        for child in inputs(node):
            if isinstance(node, physical.ExchangeNode):
                last += 1
                visit(child, last)
            else:
                visit(child, fragment)

    visit(tree, 0)
    for fragment, reader in readers:
        found = spools.get(reader.number)
        _require(found is not None and found[0] == fragment, "a spool is read where it is kept", reader)
        assert found is not None
        types = [column.type for column in found[1].columns]
        _require(types == [column.type for column in reader.columns], "a reader has the columns of its spool", reader)


def _check_runtime_filters(tree: Any) -> None:
    """Check that one join makes every runtime filter, of keys that it has, and that the filter may drop rows there."""
    reached: dict[int, Any] = {}
    pruned: set[int] = set()
    joins = [node for node in walk(tree) if isinstance(node, physical.HashJoin) and node.runtime_keys is not None]
    for node in joins:
        keys = node.runtime_keys
        assert keys is not None
        by_left = keys.side is physical.JoinSide.LEFT
        legal = node.kind.ignores_unmatched_right if by_left else node.kind.drops_unmatched_left
        _require(legal, "a runtime filter drops no row that the join delivers", node)
        _require(bool(keys.keys) and set(keys.keys) <= set(node.keys), "a runtime filter has keys of its join", node)
        exchanged = by_left and any(isinstance(each, physical.ExchangeNode) for each in walk(node.left))
        _require(not exchanged, "a side that is read ahead waits for no sender", node)
        columns = [(key.right if by_left else key.left).id for key in keys.keys]
        below: Any = node.right if by_left else node.left
        pruned.update(_check_dynamic_pruning(node, below))
        pruned.update(_check_dynamic_lookup(node, below))
        while not isinstance(below, physical.RuntimeFilter | physical.MapScan):
            sources = _sources_of_keys(below)
            _require(set(columns) <= sources.keys(), "a runtime filter stands below groups by its keys", node)
            columns = [sources[id_] for id_ in columns]
            below = below.input
        if isinstance(below, physical.MapScan):
            _require(id(below) in pruned, "the keys of a join are used", node)
            continue
        same = [column.id for column in below.keys] == columns
        _require(below.number == keys.number and same, "a runtime filter is of its join", below)
        _require(keys.number not in reached, "a runtime filter has a number of its own", below)
        reached[keys.number] = below
    filters = [node for node in walk(tree) if isinstance(node, physical.RuntimeFilter)]
    _require(all(reached.get(node.number) is node for node in filters), "a join makes every runtime filter", tree)
    for node in walk(tree):
        if isinstance(node, physical.MapScan) and (node.dynamic_pruning or node.dynamic_lookup) is not None:
            _require(id(node) in pruned, "a join makes the keys that prune a scan", node)


def _check_dynamic_pruning(join: physical.HashJoin, side: Any) -> Iterator[int]:
    """Yield the ids of the scans that the keys of a join prune, on the side that is read second."""
    made = join.runtime_keys
    assert made is not None
    for scan in walk(side):
        found = scan.dynamic_pruning if isinstance(scan, physical.MapScan) else None
        if found is None or found.number != made.number:
            continue
        _require(found.columns == scan.map.partitioned_by, "all partitioning columns prune a scan", scan)
        types = [scan.map.column(name).type for name in found.columns]
        same = types == [made.keys[ordinal].left.type for ordinal in found.key_ordinals]
        _require(same, "keys that prune a scan have the types of its columns", scan)
        yield id(scan)


def _check_dynamic_lookup(join: physical.HashJoin, side: Any) -> Iterator[int]:
    """Yield the ids of the scans that look up the keys of a join, on the side that is read second."""
    made = join.runtime_keys
    assert made is not None
    for scan in walk(side):
        found = scan.dynamic_lookup if isinstance(scan, physical.MapScan) else None
        if found is None or found.number != made.number:
            continue
        index = found.index
        named = scan.map.key if index is None else index.columns[: len(found.columns)]
        _require(found.columns == named, "a scan looks up its key, or leading columns of an index", scan)
        _require(index is None or index in scan.map.indexes, "a scan looks up an index of its map", scan)
        keys = [made.keys[ordinal] for ordinal in found.key_ordinals]
        types = [scan.map.column(name).type for name in found.columns]
        _require(types == [key.left.type for key in keys], "keys that are looked up have the columns' types", scan)
        safe = index is not None and any(key.null_safe for key in keys)
        _require(not safe, "an index is not asked for NULL", scan)
        yield id(scan)


def _sources_of_keys(node: Any) -> dict[int, int]:
    """Yield columns by whose values rows of an operator's input may be dropped, each with the column of the input."""
    match node:
        case physical.Filter() | physical.LocalExchange():
            return {column.id: column.id for column in node.columns}
        case physical.Project():
            pairs = [(item.column.id, item.expression) for item in node.assignments]
            return {id_: source.id for id_, source in pairs if isinstance(source, Column)}
        case (
            physical.StreamingAggregate()
            | physical.HashAggregate(phase=physical.Phase.COMPLETE | physical.Phase.PARTIAL)
            | physical.HashAggregate(input=physical.LocalExchange())
        ):
            return {column.id: column.id for column in node.keys}
        case _:
            return {}


def _check_top_n_bounds(tree: Any) -> None:
    """Check that every bound goes from one TopN to one scan, over operators that only drop rows, by the first key."""
    reached: dict[int, Any] = {}
    for node in walk(tree):
        if not isinstance(node, physical.TopN) or node.bound is None:
            continue
        below: Any = node.input
        if isinstance(below, physical.LocalExchange):
            below = below.input.input  # type: ignore[attr-defined]
        while isinstance(below, physical.Filter | physical.Project):
            below = below.input
        order = below.zone_order if isinstance(below, physical.MapScan) else None
        _require(order is not None and order.number == node.bound, "a bound reaches a scan", node)
        assert order is not None
        has_key = any(column.id == order.key.column for column in below.columns)
        _require(has_key and order.key == node.collation[0], "zones are in the order of the first key", node)
        _require(node.bound not in reached, "a bound has a number of its own", node)
        reached[node.bound] = below
    scans = [node for node in walk(tree) if isinstance(node, physical.MapScan) and node.zone_order is not None]
    _require(all(node in reached.values() for node in scans), "a TopN bounds every scan in the order of zones", tree)


def _check_row_goals(tree: Any) -> None:
    """Check row goals: a scan has one only below a LIMIT, and a cutover only with a residual to evaluate."""
    scans = [node for node in walk(tree) if isinstance(node, physical.IndexScan)]
    if not scans:
        return
    stopped = [scan for node in walk(tree) if isinstance(node, physical.Limit) for scan in _streamed_scans(node.input)]
    for scan in scans:
        is_ordered = scan.direction is not physical.Direction.UNORDERED
        has_goal = scan.row_goal is not None
        _require(not has_goal or any(scan is each for each in stopped), "a row goal is that of a LIMIT", scan)
        tested = is_ordered and bool(columns_of(scan.residual))
        _require(scan.filter_cutover is None or tested, "an ordered scan tests entries by their columns", scan)


def _streamed_scans(node: Any) -> Iterator[physical.IndexScan]:
    """Yield the scans whose rows pass through to here as they are read."""
    match node:
        case physical.IndexScan():
            yield node
        case physical.HashJoin() | physical.NestedLoopJoin():
            yield from _streamed_scans(node.left)
        case (
            physical.Filter()
            | physical.Project()
            | physical.StreamingAggregate()
            | physical.Series()
            | physical.LookupJoin()
            | physical.MergeJoin()
            | physical.Union()
        ):
            for child in inputs(node):
                yield from _streamed_scans(child)


def _check_candidates(tree: Any) -> None:
    """Check that each candidate of a scan is another index of the map, with bounds for its leading columns."""
    for scan in walk(tree):
        if not isinstance(scan, physical.IndexScan) or not scan.candidates:
            continue
        indexes = [each.index for each in scan.usable]
        _require(len({each.id for each in indexes}) == len(indexes), "a candidate is another index", scan)
        for each in scan.candidates:
            _require(each.index in scan.map.indexes, "a candidate is an index of the map", scan)
            _require(0 < len(each.bounds) <= len(each.index.columns), "a candidate has bounds", scan)
        is_ordered = scan.direction is not physical.Direction.UNORDERED
        _require((scan.sort_rule is not None) is is_ordered, "a scan in order sorts the rows of a candidate", scan)


def _check_unions(tree: Any) -> None:
    """Check that a union that may be one scan has index scans of its map, and that the scan has its columns."""
    for node in walk(tree):
        if not isinstance(node, physical.Union) or node.map_scan is None:
            continue
        scan = node.map_scan
        _require(node.scan_cutover is not None, "a union has a rule for its scan", node)
        _require(scan.columns == node.columns, "a scan delivers the columns of its union", node)
        for source in node.inputs:
            is_of_map = isinstance(source, physical.IndexScan) and source.map == scan.map
            _require(is_of_map, "a scan is of the map whose indexes the union reads", node)


_CHECKS_OF_PAIRS: tuple[tuple[Callable[[Any], None], frozenset[type]], ...] = (
    (_check_spools, frozenset({physical.Spool, physical.SpoolRead})),
    (_check_runtime_filters, frozenset({physical.HashJoin, physical.RuntimeFilter})),
    (_check_top_n_bounds, frozenset({physical.TopN, physical.MapScan})),
    (_check_row_goals, frozenset({physical.IndexScan})),
    (_check_candidates, frozenset({physical.IndexScan})),
    (_check_unions, frozenset({physical.Union})),
)
"""What operators tell each other, checked where a plan has one of them."""


def _check_convention(node: Any, child: Any) -> None:
    if not isinstance(node, physical.RootExchange):
        _require(node.traits.convention is child.traits.convention, "only an exchange changes the backend", node)


def _check_distribution(node: Any, child: Any, members: int) -> None:
    kind, own = child.traits.distribution.kind, node.traits.distribution.kind
    partitioned = kind is DistributionKind.PARTITIONED
    match node:
        case physical.RootExchange() | physical.HashExchange() | physical.BroadcastExchange():
            # What every member has would arrive once from each.
            _require(partitioned, "an exchange brings together rows that are each on one member", node)
            return
        case physical.HashJoin() | physical.MergeJoin() | physical.NestedLoopJoin():
            _check_join(node, members)
            return
        case physical.Union() | physical.Recursive() | physical.Expand():
            wants_root = own is DistributionKind.ROOT
        case physical.LookupJoin():
            if own is not DistributionKind.ROOT:
                _check_lookup_join(node, child)
                return
            wants_root = True
        case physical.Window():
            by = child.traits.distribution.columns
            together = bool(by) and set(by) <= {column.id for column in node.partition}
            wants_root = own is DistributionKind.ROOT or not (together or kind is own is DistributionKind.REPLICATED)
        case physical.Modify() if own is not DistributionKind.ROOT:
            _require(partitioned and kind is own, "each row is prepared by one member", node)
            return
        case (
            physical.Root()
            | physical.Modify()
            | physical.Commit()
            | physical.Limit()
            | physical.TopN()
            | physical.Sort()
        ):
            wants_root = own is DistributionKind.ROOT
        case physical.HashAggregate(phase=physical.Phase.PARTIAL | physical.Phase.INTERMEDIATE):
            wants_root = False
        case physical.HashAggregate() | physical.StreamingAggregate():
            wants_root = own is DistributionKind.ROOT or not _is_grouped_in_place(node, child)
        case _:
            wants_root = False
    if wants_root:
        alone = partitioned and members == 1 and child.traits.convention is Convention.LOCAL
        at_root = kind in {DistributionKind.ROOT, DistributionKind.REPLICATED} or alone
        _require(at_root, "the rows are on the coordinator", node)
    else:
        _require(kind is own, "only an exchange moves rows", node)


def _check_join(node: physical.HashJoin | physical.MergeJoin | physical.NestedLoopJoin, members: int) -> None:
    left, right = (side.traits.distribution for side in (node.left, node.right))  # type: ignore[attr-defined]
    own = node.traits.distribution
    if own.kind is DistributionKind.ROOT:
        for side in (left, right):
            spread = side.kind is DistributionKind.PARTITIONED and members > 1
            _require(not spread, "both sides are on the coordinator", node)
        return
    if own.kind is DistributionKind.REPLICATED:
        _require(left.kind is right.kind is own.kind, "both sides are on every member", node)
        return
    _require(left.kind is DistributionKind.PARTITIONED, "the left side is spread as the join is", node)
    if right.kind is DistributionKind.REPLICATED:
        _require(not node.kind.keeps_right, "a right row without a match is found so by every member", node)
        return
    by_keys = isinstance(node, physical.HashJoin | physical.MergeJoin)
    _require(right.kind is DistributionKind.PARTITIONED and by_keys, "by keys", node)
    pairs = {(key.left.id, key.right.id) for key in getattr(node, "keys", ())}
    together = (
        bool(left.columns)
        and len(left.columns) == len(right.columns)
        and set(zip(left.columns, right.columns, strict=True)) <= pairs
    )
    alone = members == 1 and node.traits.convention is Convention.LOCAL
    _require(together or alone, "rows with equal keys are on one member", node)


def _check_lookup_join(node: physical.LookupJoin, child: Any) -> None:
    """Check that each left row finds its matches where it is, or its copies find those in each member's partitions."""
    own, below = node.traits.distribution, child.traits.distribution
    if node.written:
        names = node.map.key if node.index is None else node.index.columns[: len(node.keys)]
        _require(set(names) >= set(node.map.partitioned_by), "written keys have all partitioning columns", node)
        spread = not node.map.replicated and below.kind is DistributionKind.REPLICATED
        _require(spread, "written rows are on every member, and the map is not", node)
    if node.map.replicated:
        _require(below.kind is own.kind, "only an exchange moves rows", node)
    elif below.kind is DistributionKind.REPLICATED:
        _require(own.kind is DistributionKind.PARTITIONED, "a member has only a part of the map", node)
        _require(node.kind is JoinKind.INNER, "a left row without a match is found so by every member", node)
    else:
        _require(below.kind is own.kind, "only an exchange moves rows", node)
        names = node.map.key if node.index is None else node.index.columns
        keys = dict(zip(names, node.keys, strict=False))
        wanted = [keys.get(name) for name in node.map.partitioned_by]
        ids = tuple(key.id for key in wanted if isinstance(key, Column))
        together = len(ids) == len(wanted) and below.columns == ids
        _require(together, "a left row is on the member that has its matches", node)


def _is_grouped_in_place(node: physical.HashAggregate | physical.StreamingAggregate, child: Any) -> bool:
    partitioned_by = child.traits.distribution.columns
    return bool(partitioned_by) and set(partitioned_by) <= {column.id for column in node.keys}


def _check_collation(node: Any, child: Any) -> None:
    if isinstance(node, physical.Sort | physical.TopN | physical.HashAggregate | physical.Modify | physical.Commit):
        return
    if isinstance(node, physical.MergeJoin):
        _check_merge_order(node)
        return
    if isinstance(node, physical.HashJoin | physical.NestedLoopJoin):
        kept = collation_satisfies(node.left.traits.collation, node.traits.collation)  # type: ignore[attr-defined]
        _require(kept, "a join promises the order of its left side", node)
        _require(not (node.traits.collation and node.kind.keeps_right), "right rows without a match come last", node)
        return
    if len(inputs(node)) > 1 or isinstance(node, physical.Window | physical.Expand):
        _require(not node.traits.collation, "an operator that keeps no order promises none", node)
        return
    if isinstance(node, physical.StreamingAggregate):
        leading = {key.column for key in child.traits.collation[: len(node.keys)]}
        _require(leading == {column.id for column in node.keys}, "rows come in the order of their groups", node)
    promised: Collation | None = node.traits.collation
    if isinstance(node, physical.Series) and isinstance(child, physical.Values) and len(child.rows) <= 1:
        promised = tuple(key for key in node.traits.collation if key.column != node.call.column.id)
    if isinstance(node, physical.Project):
        promised = _below_project(node)
    _require(
        promised is not None and collation_satisfies(child.traits.collation, promised),
        "the input has the order that is promised",
        node,
    )


def _check_merge_order(node: physical.MergeJoin) -> None:
    """Check that both sides come in the order of keys.

    The join keeps the left one's order, and of equal columns the right one's.
    """
    left, right = (side.traits.collation for side in inputs(node))
    equated = {key.left.id for key in node.keys}
    _require(bool(node.collation) and all(key.column in equated for key in node.collation), "an order of keys", node)
    _require(collation_satisfies(left, node.collation), "the left side comes in the order of the keys", node)
    _require(collation_satisfies(right, node.right_collation), "the right side comes in the order of the keys", node)
    promised = node.traits.collation
    if promised:
        _require(not node.kind.keeps_right, "right rows without a match come out of turn", node)
        by_right = node.kind is JoinKind.INNER and collation_satisfies(node.right_collation, promised)
        _require(by_right or collation_satisfies(left, promised), "the input has the order that is promised", node)


def _below_project(node: physical.Project) -> Collation | None:
    """Return the order that a projection promises, in columns of its input; None for a computed column."""
    sources = {item.column.id: item.expression for item in node.assignments}
    keys: list[SortKey] = []
    for key in node.traits.collation:
        source = sources.get(key.column)
        if not isinstance(source, Column):
            return None
        keys.append(replace(key, column=source.id))
    return tuple(keys)


def _expressions(node: Any) -> list[Expression]:
    match node:
        case logical.Filter() | physical.Filter():
            return [node.condition]
        case logical.Project() | physical.Project():
            return [assignment.expression for assignment in node.assignments]
        case logical.Aggregate() | physical.HashAggregate() | physical.StreamingAggregate():
            return _aggregate_columns(node)
        case logical.Root() | physical.Root():
            return list(node.columns)
        case logical.Join() | physical.HashJoin() | physical.MergeJoin() | physical.NestedLoopJoin():
            return [part for part in (node.condition, node.compared) if part is not None]
        case physical.LookupJoin():
            return [*node.keys, *([] if node.condition is None else [node.condition])]
        case logical.Union() | logical.Recursive():
            return [column for source in node.sources for column in source]
        case logical.Window() | physical.Window():
            arguments = [argument for call in node.calls for argument in call.arguments]
            return [*node.partition, *arguments]
        case logical.Expand() | physical.Expand():
            return [expression for projection in node.projections for expression in projection]
        case logical.Series() | physical.Series():
            return list(node.call.arguments)
        case physical.HashExchange() | physical.RuntimeFilter():
            return list(node.keys)
        case _:
            return []


def _order(node: Any) -> Collation:
    """Return the order that an operator makes."""
    if isinstance(node, physical.Window):
        return node.order
    return node.collation if isinstance(node, physical.Sort | physical.TopN) else ()


def _aggregate_columns(
    node: logical.Aggregate | physical.HashAggregate | physical.StreamingAggregate,
) -> list[Expression]:
    keys: list[Expression] = list(node.keys)
    if _is_phase(node, physical.Phase.FINAL, physical.Phase.INTERMEDIATE):
        assert isinstance(node, physical.HashAggregate)
        states: list[Column] = [column for state in node.states for column in state]
        return [*keys, *states]
    return [*keys, *(argument for call in node.calls for argument in call.arguments)]


def _require(holds: bool, need: str, node: Any) -> None:
    if not holds:
        raise internal_error(f"the plan is wrong at {type(node).__name__}: {need}")
