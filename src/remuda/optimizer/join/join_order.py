"""The orders in which the relations of a join graph can be joined, as groups and expressions of the memo.

Every set of relations that hangs together gets a group, and every way to split it into two such sets an expression,
as long as there are not too many: the search then finds the cheapest by what the joins really cost where the rows are.
Pairs come out smaller sets first (after "Analysis of two existing and one new dynamic programming algorithm for the
generation of optimal bushy join trees without cross products", Moerkotte and Neumann). For a chain a - b - c:

    (b, c)   (a, b)   (a, bc)   (ab, c)        never (a, c): nothing connects them

With too many pairs the two sets whose join has the fewest rows are joined for good, and so on, until few enough are
left. How many are too many depends on the rows: planning should take no longer than a pass over them.

Only the first way to split a set is an expression at once, from which the rows of its group are known. The others are
kept as two numbers of groups: the search knows by them what a split costs at least, and makes an expression only of one
that may cost less than the best plan so far. Of the 1,024 splits of a star of 9 relations that is about ten.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from remuda.dataclass import replace
from remuda.optimizer.cost import affordable_pairs, least_lookup
from remuda.optimizer.memo import Split
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.rules.explore.explore import semi_join_as_inner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.optimizer.join.join_graph import JoinGraph
    from remuda.optimizer.memo import GroupReference, Memo

MAXIMUM_PAIRS = 1_500
"""Splits that are weighed; a star of 9 relations has 1,024, a chain of 12 has 286, 8 relations on one key 3,025."""
MAXIMUM_PAIRS_SPREAD = 100
"""With several members, where each join can run on several members."""
MAXIMUM_PAIRS_LARGE = 12_000
"""Of large inputs, where planning takes no longer than a pass over their rows."""
MAXIMUM_PARTS = 8
"""Parts of a graph that nothing connects, such as sub-queries of one row, between which any join is thought of."""


def explore_join_orders(graph: JoinGraph, memo: Memo, maximum: int = MAXIMUM_PAIRS) -> GroupReference | None:
    """Return the group of the whole join; None where no order but the one that was written is known to be right."""
    return _Orders(graph, memo, maximum).explore()


class _Orders:
    def __init__(self, graph: JoinGraph, memo: Memo, maximum: int) -> None:
        self.graph = graph
        self.memo = memo
        rows = sum(self._rows(reference) for reference in graph.relations)
        self.maximum = max(maximum, min(affordable_pairs(rows), MAXIMUM_PAIRS_LARGE))
        self.groups: dict[int, GroupReference] = {1 << ordinal: each for ordinal, each in enumerate(graph.relations)}
        self.nodes = list(self.groups)
        """The sets between which orders are still open; at first each relation is one."""
        self._candidates: list[tuple[float, int, int]] | None = None
        """A heap of the joins of two nodes by their rows, made when the first is needed; nodes may be gone by then."""
        self._lookups: dict[int, list[list[int]]] = {}
        self._connected_columns: dict[int, dict[int, int]] = {}
        self._connections = _connected(graph.neighbours(), set(graph.attachments), self._rows_of)

    def explore(self) -> GroupReference | None:
        while True:
            pairs = self._all_pairs()
            if pairs is not None:
                break
            if not self._join_best_pair():
                return None
        for left, right in pairs:
            self._join(self._union(left), self._union(right))
        return self.groups.get(self._union((1 << len(self.nodes)) - 1))

    def _all_pairs(self) -> list[tuple[int, int]] | None:
        """Return all pairs, or None for too many: at once where even a chain, which has the fewest, has too many."""
        count = len(self.nodes)
        if (count**3 - count) // 6 > self.maximum:
            return None
        pairs = list(_pairs(self._neighbours(), self.maximum))
        return pairs if len(pairs) <= self.maximum else None

    def _rows_of(self, ordinal: int) -> float:
        return self._rows(self.graph.relations[ordinal])

    def _rows(self, reference: GroupReference) -> float:
        return self.memo.groups[reference.group].rows

    def _union(self, nodes: int) -> int:
        """Return the relations of a set of nodes, both as bit masks."""
        mask = 0
        for ordinal, node in enumerate(self.nodes):
            if nodes >> ordinal & 1:
                mask |= node
        return mask

    def _neighbours(self) -> list[int]:
        reach = [self._reach(node) for node in self.nodes]
        return [
            sum(1 << other for other, node in enumerate(self.nodes) if other != ordinal and reach[ordinal] & node)
            for ordinal in range(len(self.nodes))
        ]

    def _reach(self, mask: int) -> int:
        found = 0
        for ordinal, connected in enumerate(self._connections):
            if mask >> ordinal & 1:
                found |= connected
        return found

    def _join(self, left: int, right: int) -> GroupReference | None:
        """Puts the join of two sets into the group of both; None where the two cannot be joined.

        The first one makes the group. Of INNER joins alone every further one is a split, explored when it is needed.
        """
        if left not in self.groups or right not in self.groups:
            return None
        known = self.groups.get(left | right)
        if known is not None and not self.graph.attachments:
            self.memo.groups[known.group].splits.append(self._split(left, right))
            return known
        expression = self._expression(left, right)
        if expression is None:
            return None
        if known is None:
            self.groups[left | right] = known = self.memo.reference(self.memo.add(expression).number)
        else:
            self.memo.groups[known.group].expressions.append(expression)
        if expression.kind is JoinKind.SEMI:
            self._add_lookup(known.group, expression)
        return known

    def _split(self, left: int, right: int) -> Split:
        def make() -> logical.Join:
            expression = self._expression(left, right)
            assert expression is not None, "sets of INNER joins can be joined"
            return expression

        looked_up = (self._least_lookup(left, right), self._least_lookup(right, left))
        unique = (self._may_be_unique(left, right), self._may_be_unique(right, left))
        return Split(self.groups[left].group, self.groups[right].group, looked_up, unique, make)

    def _may_be_unique(self, side: int, other: int) -> bool:
        """Test whether a set may have one row for each key; of a relation its conditions with the other set tell."""
        if side & (side - 1):
            return True
        if side not in self._connected_columns:
            self._connected_columns[side] = self.graph.connected_columns(side)
        named = frozenset(id_ for id_, mask in self._connected_columns[side].items() if mask & other)
        return self.memo.properties(self.groups[side]).unique_within(named) is not None

    def _least_lookup(self, side: int, other: int) -> float:
        """Return what finding a row of a set costs at least where it is a map, and the other set is connected with its
        whole key, or with the head of an index.
        """
        if side & (side - 1):
            return math.inf
        if side not in self._lookups:
            self._lookups[side] = self._lookups_of(side)
        by_key, *by_index = (all(mask & other for mask in masks) for masks in self._lookups[side] or [[0]])
        return least_lookup(by_key=by_key, by_index=any(by_index))

    def _lookups_of(self, relation: int) -> list[list[int]]:
        """Return for each way to look a relation up the columns that it takes, each as the mask of what names it.

        First the way by the key, then those by indexes; none where it is no map.
        """
        scan = self.memo.scan_of(self.groups[relation])
        if scan is None:
            return []
        masks = self.graph.connected_columns(relation)
        named = {column.name: masks.get(column.id, 0) for column in scan.columns}
        columns = [scan.map.key, *(index.columns[:1] for index in scan.map.indexes)]
        return [[named.get(name, 0) for name in each] for each in columns]

    def _add_lookup(self, group: int, join: logical.Join) -> None:
        """Beside the SEMI join of a scan, adds the INNER join with distinct keys: see `look_up_semi_join`."""
        memo = self.memo
        left: Any = join.left
        scan = memo.scan_of(left)
        other = None if scan is None else semi_join_as_inner(join, scan)
        if other is None:
            return
        inner: Any = other.input
        distinct = memo.reference(memo.group_of(inner.left))
        joined = memo.reference(memo.group_of(replace(inner, left=distinct)))
        memo.groups[group].expressions.append(replace(other, input=joined))

    def _expression(self, left: int, right: int) -> logical.Join | None:
        graph = self.graph
        if left in graph.attachments:
            left, right = right, left
        first, second = self.groups[left], self.groups[right]
        attachment = graph.attachments.get(right)
        if attachment is None:
            # A join that multiplies no rows gives the same rows on either side: the cheaper one is found by cost.
            if not (graph.is_whole(left) and graph.is_whole(right)):
                return None
            return logical.Join(JoinKind.INNER, first, second, graph.condition(left, right))
        if attachment.needs & ~left or not graph.is_whole(left) or graph.asks_something(left, right):
            return None
        return logical.Join(
            attachment.kind,
            first,
            second,
            attachment.condition,
            attachment.compared,
            attachment.mark,
            attachment.span,
        )

    def _join_best_pair(self) -> bool:
        """Joins the two connected nodes whose join has the fewest rows.

        Whether two nodes can be joined, and to how many rows, stays as it is until one of them is joined with another.
        """
        if self._candidates is None:
            self._candidates = [
                candidate
                for ordinal, node in enumerate(self.nodes)
                for candidate in self._joins_with(node, self.nodes[:ordinal])
            ]
            heapify(self._candidates)
        nodes = set(self.nodes)
        while self._candidates:
            _, one, other = heappop(self._candidates)
            if one in nodes and other in nodes:
                rest = [node for node in self.nodes if node not in {one, other}]
                for candidate in self._joins_with(one | other, rest):
                    heappush(self._candidates, candidate)
                self.nodes = [*rest, one | other]
                return True
        return False

    def _joins_with(self, node: int, others: list[int]) -> Iterator[tuple[float, int, int]]:
        reach = self._reach(node)
        for other in others:
            if reach & other:
                group = self._join_once(node, other)
                if group is not None:
                    yield self._rows(group), node, other

    def _join_once(self, left: int, right: int) -> GroupReference | None:
        known = self.groups.get(left | right)
        return self._join(left, right) if known is None else known


def _connected(neighbours: list[int], attached: set[int], rows_of: Callable[[int], float]) -> list[int]:
    """Parts of the graph that nothing connects are joined without a condition, by their smallest relations.

    Any two of them; where there are many, one after the other, small ones first: their pairs alone would be thousands.
    """
    parts: list[int] = []
    for ordinal in range(len(neighbours)):
        if not any(part >> ordinal & 1 for part in parts):
            parts.append(_reachable(1 << ordinal, neighbours))
    if len(parts) == 1:
        return neighbours
    ends = []
    for part in parts:
        own = [ordinal for ordinal in range(len(neighbours)) if part >> ordinal & 1 and 1 << ordinal not in attached]
        ends.append(min(own, key=rows_of))
    joined = list(neighbours)
    ends.sort(key=rows_of)
    for position, one in enumerate(ends):
        for other in ends[:position] if len(ends) <= MAXIMUM_PARTS else ends[max(position - 1, 0) : position]:
            joined[one] |= 1 << other
            joined[other] |= 1 << one
    return joined


def _reachable(mask: int, neighbours: list[int]) -> int:
    while True:
        wider = mask
        for ordinal, connected in enumerate(neighbours):
            if mask >> ordinal & 1:
                wider |= connected
        if wider == mask:
            return mask
        mask = wider


def _pairs(neighbours: list[int], limit: int) -> Iterator[tuple[int, int]]:
    """Return every two connected, disjoint sets with a connection between them, once; `limit` + 1 of them at most."""
    count = 0
    for first in range(len(neighbours) - 1, -1, -1):
        start = 1 << first
        below = (1 << first + 1) - 1
        for left in _connected_sets(start, below, neighbours):
            for right in _complements(left, neighbours):
                yield left, right
                count += 1
                if count > limit:
                    return


def _connected_sets(start: int, excluded: int, neighbours: list[int]) -> Iterator[int]:
    """Yield `start` and all connected sets that contain it and nothing more of `excluded`, smaller ones first."""
    yield start
    yield from _grow(start, excluded, neighbours)


def _grow(mask: int, excluded: int, neighbours: list[int]) -> Iterator[int]:
    border = _border(mask, neighbours) & ~excluded
    for addition in _subsets(border):
        yield mask | addition
    for addition in _subsets(border):
        yield from _grow(mask | addition, excluded | border, neighbours)


def _complements(left: int, neighbours: list[int]) -> Iterator[int]:
    """Yield the connected sets that border on `left`, each once over all of `_pairs`."""
    lowest = left & -left
    excluded = left | (lowest - 1) | lowest
    border = _border(left, neighbours) & ~excluded
    for ordinal in range(border.bit_length() - 1, -1, -1):
        if border >> ordinal & 1:
            smaller = border & ((1 << ordinal + 1) - 1)
            yield from _connected_sets(1 << ordinal, excluded | smaller, neighbours)


def _border(mask: int, neighbours: list[int]) -> int:
    found = 0
    rest = mask
    while rest:
        bit = rest & -rest
        found |= neighbours[bit.bit_length() - 1]
        rest ^= bit
    return found & ~mask


def _subsets(mask: int) -> Iterator[int]:
    """Yield all subsets but the empty one, ascending."""
    subset = -mask & mask
    while subset:
        yield subset
        subset = (subset - mask) & mask
