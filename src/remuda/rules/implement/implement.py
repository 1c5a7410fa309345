"""The list of implement rules, by the operator at the root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.plan import logical
from remuda.rules.extensions import NO_EXTENSIONS, Extensions
from remuda.rules.implement import (
    implement_aggregate,
    implement_join,
    implement_lookup,
    implement_relational,
    implement_sort,
    implement_union,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.plan.traits import Traits
    from remuda.rules.rule_context import Alternative, PlanningContext

IMPLEMENT_RULES: dict[type, tuple[Any, ...]] = {
    logical.Scan: (implement_relational.implement_scan,),
    logical.Values: (implement_relational.implement_values,),
    logical.Filter: (implement_relational.implement_filter,),
    logical.Project: (implement_relational.implement_project,),
    # In place first: where it applies it moves the fewest rows and gives the search an early bound.
    logical.Aggregate: (
        implement_aggregate.count_by_index,
        implement_aggregate.aggregate_in_place,
        implement_aggregate.aggregate_in_two_phases,
        implement_aggregate.aggregate_at_root,
        implement_aggregate.aggregate_ordered_rows,
    ),
    logical.Sort: (implement_sort.require_order,),
    logical.Limit: (implement_sort.limit_by_top_n, implement_sort.limit_ordered_rows),
    logical.Join: (
        implement_join.hash_join,
        implement_join.commuted_hash_join,
        implement_join.merge_join,
        implement_join.nested_loop_join,
        implement_lookup.lookup_join,
    ),
    logical.Union: (implement_union.union_in_place,),
    logical.Window: (implement_sort.window_in_place, implement_sort.window_at_root),
    logical.Expand: (implement_union.implement_expand,),
    logical.Series: (implement_union.series_in_place, implement_union.series_in_its_own_order),
    logical.Recursive: (implement_union.implement_recursive,),
    logical.WorkingTable: (implement_union.implement_working_table,),
    logical.Modify: (implement_relational.implement_modify,),
    logical.Root: (implement_relational.implement_root,),
}


def alternatives(
    node: logical.LogicalNode,
    required: Traits,
    context: PlanningContext,
    disabled: frozenset[str],
    extensions: Extensions = NO_EXTENSIONS,
) -> Iterable[tuple[str, Alternative]]:
    """Yield every alternative for the operator, with the name of the rule that proposes it."""
    rules = IMPLEMENT_RULES[type(node)]
    if extensions:
        rules = (*rules, *extensions.rules_of("implement", type(node)))
    for rule in rules:
        if rule.__name__ not in disabled:
            for alternative in rule(node, required, context):
                yield rule.__name__, alternative
