"""From a logical tree to groups of the memo; joins are explored on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.optimizer.join_graph import is_reorderable, join_graph
from remuda.optimizer.join_order import MAXIMUM_PAIRS, explore_join_orders
from remuda.plan.walk import inputs, with_inputs
from remuda.rules.explore import explore

if TYPE_CHECKING:
    from remuda.optimizer.memo import Memo

EXPLORE_RULE = "explore_join_orders"


def copy_in(tree: Any, memo: Memo, disabled: frozenset[str] = frozenset(), maximum_pairs: int = MAXIMUM_PAIRS) -> int:
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
            for rule, other in explore(node, disabled):
                expression = over_groups(other)
                memo.groups[number].expressions.append(expression)
                memo.explored[id(expression)] = rule
        return number

    def over_groups(node: Any) -> Any:
        return with_inputs(node, tuple(memo.reference(copy(child)) for child in inputs(node)))

    return copy(tree)
