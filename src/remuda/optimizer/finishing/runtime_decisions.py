"""Rules for a finished plan: what its operators tell each other, and decide by exact counts, when they run.

    place_runtime_filters   HashJoin(Aggregate(lines), orders)  →  the keys of the orders, once read, filter the lines
    prune_scans_by_keys     HashJoin(MapScan, few rows)         →  the scan reads the partitions of the keys
    look_up_keys_of_joins   HashJoin(MapScan, few rows)         →  the keys are looked up instead of scanning the map
    bound_scans_by_top_n    TopN(MapScan)                       →  the scan reads zones in the order of the TopN
    cut_over_row_joins      HashJoin(KeyLookup, KeyLookup)      →  few tuples are joined row by row
    tell_scans_of_limits    Limit(IndexScan in order)           →  the scan knows how many rows it is read for
    scan_maps_of_unions     Union(IndexScan, IndexScan)         →  many entries are read by one scan of the map
    cut_over_to_segments    Insert(MapScan)                     →  many rows become segments, few go into the memtable

None of them changes the shape of a plan, its cost or its rows. `cost.py` says at which counts a decision turns; the
nodes carry these counts, and EXPLAIN ANALYZE says what was decided.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass, replace
from remuda.expr import Column
from remuda.optimizer import cost
from remuda.optimizer.finishing.dynamic_lookup import look_up_keys_of_joins
from remuda.optimizer.finishing.dynamic_pruning import prune_scans_by_keys
from remuda.optimizer.union_scan import scan_of_union
from remuda.plan import physical
from remuda.plan.physical import JoinSide
from remuda.plan.traits import Convention
from remuda.plan.walk import change_inputs, walk
from remuda.rules.implement.implement_sort import rows_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.expr import Expression
    from remuda.plan.joins import JoinKey

_ARROW_ONLY = (
    physical.MapScan
    | physical.HashAggregate
    | physical.StreamingAggregate
    | physical.Sort
    | physical.TopN
    | physical.Window
    | physical.Series
    | physical.HashExchange
)
"""Operators that deliver Arrow columns, however few rows there are."""


def decide_at_runtime(tree: physical.Root, disabled: frozenset[str]) -> tuple[physical.Root, list[str]]:
    """Apply the rules to a finished plan; return it, and the name of each rule for each time that it fired."""
    fired: list[str] = []
    operators = {type(node) for node in walk(tree)}  # no rule adds operators that another one is about
    for rule, concerned in RUNTIME_RULES:
        if rule.__name__ in disabled or not any(issubclass(each, concerned) for each in operators):
            continue
        numbers = count(1)
        tree = rule(tree, numbers.__next__)
        fired.extend([rule.__name__] * (next(numbers) - 1))
    return tree, fired


# Runtime filters.


@dataclass(frozen=True, slots=True)
class _Target:
    """A node whose rows can be filtered: by which keys of the join, and in which of its columns those are."""

    node: Any
    keys: tuple[JoinKey, ...]
    columns: tuple[Column, ...]


def place_runtime_filters(node: Any, number: Callable[[], int]) -> Any:
    """HashJoin(left, right) → the keys of the side that is read first filter the other, before it is grouped or held.

    Where much is done to a row before it meets the join, it is better to drop it first:

        orders JOIN (SELECT item, AVG(n) FROM lines GROUP BY item) USING (item)     40 orders, two million lines
        orders WHERE EXISTS (SELECT ... FROM lines WHERE lines.item = orders.item)  the same

    Of the lines only those of forty items are grouped, or held. The right side is read first for the table, and filters
    the rows of the left side's groups. A small left side is read ahead and filters all of a large right side: EXISTS
    has no choice which side it holds. Not where a row without a match is delivered, or counted by a MARK join.
    """
    node = change_inputs(node, lambda child: place_runtime_filters(child, number))
    if not isinstance(node, physical.HashJoin) or not node.keys:
        return node
    if _reads_left_ahead(node):
        whole = _Target(node.right, node.keys, tuple(key.right for key in node.keys))
        return _with_filter(node, JoinSide.LEFT, _below_groups(whole) or whole, number())
    if node.kind.drops_unmatched_left:
        whole = _Target(node.left, node.keys, tuple(key.left for key in node.keys))
        found = _below_groups(whole)
        if found is not None:
            return _with_filter(node, JoinSide.RIGHT, found, number())
    return node


def _reads_left_ahead(node: physical.HashJoin) -> bool:
    """Test whether a join may read its left side first.

    Not where rows of the left side come from senders: one that waits for another receiver of theirs, which waits for
    the right side, would wait forever.
    """
    left: Any = node.left
    right: Any = node.right
    return (
        node.kind.ignores_unmatched_right
        and cost.is_worth_reading_ahead(left.estimate.rows, right.estimate.rows)
        and not any(isinstance(each, physical.ExchangeNode) for each in walk(left))
    )


def _with_filter(node: physical.HashJoin, side: JoinSide, target: _Target, number: int) -> physical.HashJoin:
    below = target.node
    placed: Any = physical.RuntimeFilter(below, number, target.columns, below.traits)
    own = cost.operator_cost(placed, below.estimate.rows)
    estimate = physical.Estimate(below.estimate.rows, cost.total_cost(placed, own, 1))
    placed = replace(placed, estimate=estimate)
    if side is JoinSide.LEFT:
        keys = physical.RuntimeKeys(number, side, target.keys, cost.SPOOLED_PROBE_ROWS)
        return replace(node, right=_replaced(node.right, below, placed), runtime_keys=keys)
    most_rows = cost.runtime_filter_cutover(below.estimate.rows)
    keys = physical.RuntimeKeys(number, side, target.keys, most_rows)
    return replace(node, left=_replaced(node.left, below, placed), runtime_keys=keys)


def _replaced(node: Any, old: Any, new: Any) -> Any:
    return new if node is old else change_inputs(node, lambda child: _replaced(child, old, new))


def _below_groups(target: _Target) -> _Target | None:
    """Return the input of an aggregate by the join's keys, whose rows can be filtered; None where there is none.

    A group whose key has no match needs not be made. A row left out of a group that is needed would make it another.
    """
    match target.node:
        case physical.Filter():
            return _below_groups(replace(target, node=target.node.input))
        case physical.Project():
            known = {item.column.id: item.expression for item in target.node.assignments}
            return _below_groups(_through(target, [known[column.id] for column in target.columns]))
        case physical.HashAggregate(phase=physical.Phase.COMPLETE) | physical.StreamingAggregate():
            keys = {column.id for column in target.node.keys}
            below = _through(target, [column if column.id in keys else None for column in target.columns])
            return (_below_groups(below) or below) if below.keys else None
        case _:
            return None


def _through(target: _Target, columns: Sequence[Any]) -> _Target:
    """Return the input of the target, with the keys that are columns of it."""
    kept = [(key, column) for key, column in zip(target.keys, columns, strict=True) if isinstance(column, Column)]
    return _Target(target.node.input, tuple(key for key, _ in kept), tuple(column for _, column in kept))


# Top-N bounds.


def bound_scans_by_top_n(node: Any, number: Callable[[], int]) -> Any:
    """TopN(MapScan) → the TopN tells the scan its bound, and the scan reads zones with the best values first.

    With filters and projections between them or not. Not through a join: a row that is left out would be one without a
    match on the other side of an outer join.
    """
    node = change_inputs(node, lambda child: bound_scans_by_top_n(child, number))
    if not isinstance(node, physical.TopN):
        return node
    below: Any = node.input
    while isinstance(below, physical.Filter | physical.Project):
        below = below.input
    first = node.collation[0]
    if not isinstance(below, physical.MapScan) or all(column.id != first.column for column in below.columns):
        return node
    bound = number()
    expected: float = node.input.estimate.rows  # type: ignore[attr-defined]
    order = physical.ZoneOrder(bound, first, cost.zone_order_rows(), expected)
    scan = replace(below, zone_order=order)
    return replace(node, input=_replaced(node.input, below, scan), bound=bound)


# Joins of few rows.


def cut_over_row_joins(node: Any, number: Callable[[], int]) -> Any:
    """Join over rows that may come as tuples → the same, row by row up to a number of rows on each side.

    Not RIGHT and FULL joins, which have to know in the end which right rows met no left row.
    """
    node = change_inputs(node, lambda child: cut_over_row_joins(child, number))
    match node:
        case physical.HashJoin() | physical.NestedLoopJoin() if not node.kind.keeps_right:
            left = node.left
        case physical.LookupJoin():
            left = node.input
        case _:
            return node
    if not _may_deliver_tuples(left):
        return node
    number()
    return replace(node, row_cutover=cost.row_join_cutover())


def _may_deliver_tuples(node: Any) -> bool:
    match node:
        case physical.HashJoin() | physical.NestedLoopJoin() | physical.LookupJoin():
            return node.row_cutover is not None
        case physical.Union():
            return any(map(_may_deliver_tuples, node.inputs))
        case physical.Recursive():
            return True
    below = getattr(node, "input", None)
    return not isinstance(node, _ARROW_ONLY) and (below is None or _may_deliver_tuples(below))


# First batches under a LIMIT.


def tell_scans_of_limits(node: Any, number: Callable[[], int]) -> Any:
    """Limit(IndexScan in order) → the scan knows its row goal, and begins with as many rows as the LIMIT needs.

    It begins so in each source of the map. A series makes its first batch as large. Projections between them have as
    many rows below them; what is below a filter, a join or groups has to find more, and begins with few as ever.
    The goal is what the search expected: the same share of the rows of every operator that passes them on.
    """
    node = change_inputs(node, lambda child: tell_scans_of_limits(child, number))
    if not isinstance(node, physical.Limit):
        return node
    source: Any = node.input
    share = cost.limited_share(cost.wanted_rows(node), source.estimate.rows)
    told = replace(node, input=_with_row_goal(source, _RowGoal(share, rows_needed(node))))
    if told.input is not source:
        number()
    return told


@dataclass(frozen=True, slots=True)
class _RowGoal:
    """The share of an operator's rows that is read, and how many that is where it is known to be enough."""

    share: float
    enough: Expression | None


def _with_row_goal(node: Any, goal: _RowGoal) -> Any:
    match node:
        case physical.IndexScan() if node.direction is not physical.Direction.UNORDERED:
            rows = cost.expected_rows(node.estimate.rows, goal.share) if goal.share < 1.0 else None
            is_same = rows == node.row_goal and goal.enough == node.first_rows
            return node if is_same else replace(node, first_rows=goal.enough, row_goal=rows)
        case physical.Project():
            return change_inputs(node, lambda child: _with_row_goal(child, goal))
        case physical.Series() if goal.enough is not None:
            return replace(node, input=_with_row_goal(node.input, goal), first_rows=goal.enough)
        case (
            physical.Filter()
            | physical.StreamingAggregate()
            | physical.LookupJoin()
            | physical.MergeJoin()
            | physical.Union()
        ):
            more = replace(goal, enough=None)
            return change_inputs(node, lambda child: _with_row_goal(child, more))
        case physical.HashJoin() | physical.NestedLoopJoin():
            left = _with_row_goal(node.left, replace(goal, enough=None))
            return node if left is node.left else replace(node, left=left)
    return node


# Unions of index scans.


def scan_maps_of_unions(node: Any, number: Callable[[], int]) -> Any:
    """Union(IndexScan(m, f = ?), IndexScan(m, g = ?)) → the same, or one scan of m where the indexes have many entries.

    Each index scan reads the map where it has too many entries by itself; two of them would read it twice.
    """
    node = change_inputs(node, lambda child: scan_maps_of_unions(child, number))
    found = scan_of_union(node) if isinstance(node, physical.Union) else None
    if found is None:
        return node
    number()
    return replace(node, map_scan=found, scan_cutover=cost.union_cutover(node))


# Writes.


def cut_over_to_segments(node: Any, number: Callable[[], int]) -> Any:
    """Modify → the same, with the rows above which it writes segments, and deletes by deletion vectors.

    Not over literal rows, of which an error names the place in the text, nor over rows that are found by their keys:
    they are few, or were written out one by one.
    """
    node = change_inputs(node, lambda child: cut_over_to_segments(child, number))
    if not isinstance(node, physical.Modify) or _is_written_out(node.input):
        return node
    if node.traits.convention is Convention.SPARK:  # Tasks have no memtable.
        return node
    number()
    return replace(node, segment_cutover=cost.segment_cutover())


def _is_written_out(node: Any) -> bool:
    while isinstance(node, physical.Project | physical.Filter | physical.RootExchange):
        node = node.input
    return isinstance(node, physical.Values | physical.KeyLookup)


RUNTIME_RULES: tuple[tuple[Any, Any], ...] = (
    (place_runtime_filters, physical.HashJoin),
    (prune_scans_by_keys, physical.HashJoin | physical.LookupJoin),
    (look_up_keys_of_joins, physical.HashJoin),
    (bound_scans_by_top_n, physical.TopN),
    (cut_over_row_joins, physical.HashJoin | physical.NestedLoopJoin | physical.LookupJoin),
    (tell_scans_of_limits, physical.Limit),
    (scan_maps_of_unions, physical.Union),
    (cut_over_to_segments, physical.Modify),
)
"""Each with the operators without which it does nothing."""
