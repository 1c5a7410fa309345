"""From a logical tree to groups of the memo; joins are explored on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from remuda.optimizer.group_properties import group_count
from remuda.optimizer.join_graph import is_reorderable, join_graph
from remuda.optimizer.join_order import MAXIMUM_PAIRS, explore_join_orders
from remuda.plan.walk import change_inputs
from remuda.rules.explore.explore import explore

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr import Column
    from remuda.optimizer.memo import Memo
    from remuda.types import SqlType

EXPLORE_RULE = "explore_join_orders"


class NewColumn(Protocol):
    def __call__(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column: ...


@dataclass(frozen=True, slots=True)
class Exploring:
    """What explore rules may ask: see `ExploreContext`."""

    memo: Memo
    copy: Callable[[Any], int]
    new_column: NewColumn

    def rows_left(self, relation: Any, keys: frozenset[int]) -> float:
        known = self.memo.groups[self.copy(relation)].properties
        return group_count(keys, known) / max(1.0, known.rows)


def populate_memo(
    tree: Any,
    memo: Memo,
    new_column: NewColumn,
    disabled: frozenset[str] = frozenset(),
    maximum_pairs: int = MAXIMUM_PAIRS,
) -> int:
    """The number of the tree's group. Equal sub-trees share one."""

    def copy(node: Any) -> int:
        if EXPLORE_RULE not in disabled and is_reorderable(node):
            explored = explore_join_orders(join_graph(node, copy), memo, maximum_pairs)
            if explored is not None:
                for expression in memo.groups[explored].expressions:
                    memo.explored[id(expression)] = EXPLORE_RULE
                return explored
        known = len(memo.groups)
        number = memo.group_of(over_groups(node))
        if number >= known:
            for rule, other in explore(node, exploring, disabled):
                expression = over_groups(other)
                memo.groups[number].expressions.append(expression)
                memo.explored[id(expression)] = rule
        return number

    def over_groups(node: Any) -> Any:
        return change_inputs(node, lambda child: memo.reference(copy(child)))

    exploring = Exploring(memo, copy, new_column)
    return copy(tree)
