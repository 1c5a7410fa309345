"""What joins cost at least: known before an order of theirs is planned, or a split is explored.

The search gives up by it what cannot be cheaper than the best plan so far: a whole group, a way to split it in two, or
one way to do that join, such as a lookup of many rows or a large side that is held. All of it is a sum of what the
inputs cost at least, which becomes exact once their cheapest plan is known.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from operator import itemgetter
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.expr import columns_of
from remuda.optimizer.cost import (
    JoinInput,
    least_hash_join_cost,
    least_join_cost,
    least_lookup,
    least_lookup_join_cost,
    least_merge_join_cost,
)
from remuda.optimizer.memo import Split
from remuda.plan import logical
from remuda.plan.walk import inputs
from remuda.rules.implement.implement_join import commuted_hash_join, hash_join, merge_join
from remuda.rules.implement.implement_lookup import lookup_join

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.optimizer.memo import Group, GroupReference, Memo
    from remuda.rules.rule_context import Alternative

_HASH_JOIN, _COMMUTED_HASH_JOIN = hash_join.__name__, commuted_hash_join.__name__
_LOOKUP_JOIN, _MERGE_JOIN = lookup_join.__name__, merge_join.__name__


@dataclass(slots=True)
class JoinBounds:
    """`cost_to_read` gives the least cost of the rows of a group that is no join.

    Where members share the work (not `is_here`), what an input costs to read is not known before it is placed, and an
    exchange above a join divides its cost. Where a program has costs of its own, nothing is known.
    """

    memo: Memo
    cost_to_read: Callable[[int], float]
    is_here: bool
    has_own_costs: bool
    _inputs: dict[int, JoinInput] = field(default_factory=dict)
    """What is known of each group as a side of a join, by its number."""
    _unique: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Whether the rows of a side may have different keys, by the identities of the join, which the memo keeps, and of
    the side: both may be the same group."""

    def ranked(self, group: Group) -> list[tuple[float, logical.LogicalNode | Split]]:
        """Return the expressions and splits of a group, each with what it costs at least, the cheapest first."""
        if group.ranked is None:
            costs = [(self._least_cost(group, each), each) for each in (*group.expressions, *group.splits)]
            group.ranked = sorted(costs, key=itemgetter(0))
        return group.ranked

    def least_of_join(self, group: Group) -> float:
        """Return what every plan of a join costs at least: below that there is no need to look at its orders."""
        is_known = self.is_here and isinstance(group.expressions[0], logical.Join)
        return self.ranked(group)[0][0] if is_known else -math.inf

    def input(self, number: int) -> JoinInput:
        """Return a group as a side of a join."""
        known = self._inputs.get(number)
        if known is None:
            known = self._inputs[number] = self._first_input(self.memo.groups[number])
        return known

    def tighten(self, number: int, least: float) -> None:
        """Learn the cost of a group's cheapest plan: none costs less, whatever is required of it."""
        known = self._inputs.get(number)
        if known is not None:
            self._inputs[number] = replace(known, least=least)

    def least_of_way(self, join: logical.Join, rule: str, alternative: Alternative, share: float, rows: float) -> float:
        """Return what one way to do a join costs at least of which this share is read, by what is known so far."""
        if not self.is_here or self.has_own_costs:
            return 0.0
        one, other = inputs(join)
        left, right = self.input(one.group), self.input(other.group)
        values = rows * len(join.columns)
        if rule == _HASH_JOIN:
            is_unique = self._may_be_unique(join, other)
            return least_hash_join_cost(left, right, values, share, is_unique=is_unique)
        if rule == _COMMUTED_HASH_JOIN:
            is_unique = self._may_be_unique(join, one)
            return least_hash_join_cost(right, left, values, share, is_unique=is_unique)
        if rule == _LOOKUP_JOIN:
            if alternative.requirements[0] is None:
                return least_lookup_join_cost(right, self._least_lookup(join, one), values, share)
            return least_lookup_join_cost(left, self._least_lookup(join, other), values, share)
        return least_merge_join_cost(left, right, values, share) if rule == _MERGE_JOIN else 0.0

    def _least_cost(self, group: Group, way: logical.LogicalNode | Split) -> float:
        """Return what every plan of an expression costs at least; 0 where that is not known."""
        if self.has_own_costs:
            return 0.0
        match way:
            case Split(left, right, looked_up, unique):
                pass
            case logical.Join():
                one, other = inputs(way)
                left, right = one.group, other.group
                unique = (self._may_be_unique(way, one), self._may_be_unique(way, other))
                looked_up = (self._least_lookup(way, one), self._least_lookup(way, other))
            case _:
                is_passing = self.is_here and isinstance(group.expressions[0], logical.Join)
                return self.ranked(self.memo.groups[inputs(way)[0].group])[0][0] if is_passing else 0.0
        return least_join_cost(self.input(left), self.input(right), unique, looked_up, group.rows, len(group.columns))

    def _first_input(self, group: Group) -> JoinInput:
        if not self.is_here:
            return JoinInput(group.rows, 0.0)
        if isinstance(group.expressions[0], logical.Join):
            return JoinInput(group.rows, self.ranked(group)[0][0])
        return JoinInput(group.rows, self.cost_to_read(group.number))

    def _may_be_unique(self, join: logical.Join, reference: GroupReference) -> bool:
        """Test whether a side may have one row for each key; of a SEMI join it is enough which keys there are."""
        if not join.kind.delivers_right:
            return True
        key = (id(join), id(reference))
        known = self._unique.get(key)
        if known is None:
            found = self.memo.properties(reference).unique_within(frozenset(columns_of(join.condition)))
            known = self._unique[key] = found is not None
        return known

    def _least_lookup(self, join: logical.Join, reference: GroupReference) -> float:
        """Return what finding a row of a side costs at least: of a map of whose key, or of an index of which, the
        condition names the leading columns.
        """
        scan = self.memo.groups[reference.group].expressions[0]
        if not isinstance(scan, logical.Scan):
            return math.inf
        ids = columns_of(join.condition)
        named = {column.name for column in reference.columns if column.id in ids}
        return least_lookup(
            by_key=all(name in named for name in scan.map.key),
            by_index=any(index.columns[0] in named for index in scan.map.indexes),
        )
