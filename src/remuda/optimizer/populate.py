"""From a logical tree to groups of the memo; joins are explored on the way, and equal sub-trees share a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from remuda.dataclass import dataclass
from remuda.optimizer.canonical import EqualTrees, Numbering, Renaming
from remuda.optimizer.estimates.group_properties import group_count
from remuda.optimizer.join.join_graph import is_reorderable, join_graph
from remuda.optimizer.join.join_order import MAXIMUM_PAIRS, explore_join_orders
from remuda.plan.walk import change_inputs
from remuda.rules.explore.explore import explore
from remuda.rules.extensions import NO_EXTENSIONS, Extensions

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr import Column
    from remuda.optimizer.memo import GroupReference, Memo
    from remuda.types import SqlType

EXPLORE_RULE = "explore_join_orders"


class NewColumn(Protocol):
    def __call__(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column: ...


@dataclass(frozen=True, slots=True)
class Exploring:
    """What explore rules may ask: see `ExploreContext`."""

    memo: Memo
    populate: Callable[[Any], GroupReference]
    new_column: NewColumn

    def rows_left(self, relation: Any, keys: frozenset[int]) -> float:
        known = self.memo.properties(self.populate(relation))
        return group_count(keys, known) / max(1.0, known.rows)


def populate_memo(
    tree: Any,
    memo: Memo,
    new_column: NewColumn,
    disabled: frozenset[str] = frozenset(),
    maximum_pairs: int = MAXIMUM_PAIRS,
    extensions: Extensions = NO_EXTENSIONS,
) -> int:
    """Return the number of the tree's group."""
    equal_trees = EqualTrees(tree)
    shared: dict[Any, tuple[GroupReference, Numbering]] = {}

    def populate(node: Any) -> GroupReference:
        found = equal_trees.key_of(node)
        if found is None:
            return insert(node)
        key, numbering = found
        if key not in shared:
            shared[key] = (insert(node), numbering)
            return shared[key][0]
        reference, original = shared[key]
        if list(numbering.numbers) == list(original.numbers):
            return reference
        pairs = zip(original.numbers, numbering.numbers, strict=True)
        columns = {old: numbering.columns[new] for old, new in pairs if new in numbering.columns}
        return memo.renamed_reference(reference.group, Renaming(columns, new_column))

    def insert(node: Any) -> GroupReference:
        if EXPLORE_RULE not in disabled and is_reorderable(node):
            explored = explore_join_orders(join_graph(node, populate), memo, maximum_pairs)
            if explored is not None:
                for expression in memo.groups[explored.group].expressions:
                    memo.explored[id(expression)] = EXPLORE_RULE
                return explored
        known = len(memo.groups)
        number = memo.group_of(over_groups(node))
        if number >= known:
            for rule, other in explore(node, exploring, disabled, extensions):
                expression = over_groups(other)
                memo.groups[number].expressions.append(expression)
                memo.explored[id(expression)] = rule
        return memo.reference(number)

    def over_groups(node: Any) -> Any:
        return change_inputs(node, populate)

    exploring = Exploring(memo, populate, new_column)
    return populate(tree).group
