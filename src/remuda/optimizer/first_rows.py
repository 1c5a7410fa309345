"""The plan whose first rows are cheapest: what a LIMIT over groups wants of its input.

    SELECT d, COUNT(*) FROM o GROUP BY d ORDER BY d LIMIT 3
      all groups: Sort(HashAggregate(MapScan)) costs 2.6 ms, StreamingAggregate(IndexScan) 10 ms
      3 of 700:   the first must make all of them, the second reads a few hundred rows

Only what lies between a LIMIT and an Aggregate is looked at: elsewhere what delivers an order cheaply delivers its
first rows cheaply, too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from remuda.optimizer.cost import first_rows_cost
from remuda.plan import logical
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.optimizer.canonical import Renaming
    from remuda.optimizer.memo import GroupReference, Memo
    from remuda.plan.physical import PhysicalNode
    from remuda.plan.traits import Traits
    from remuda.rules.rule_context import Alternative


class Searching(Protocol):
    """What it takes of the search."""

    @property
    def memo(self) -> Memo: ...

    def optimize(self, reference: GroupReference, required: Traits, bound: float) -> PhysicalNode | None: ...

    def renamed(self, plan: PhysicalNode, renaming: Renaming) -> PhysicalNode: ...

    def alternatives(self, expression: logical.LogicalNode, required: Traits) -> Iterable[tuple[str, Alternative]]: ...

    def finish(self, expression: Any, name: str, built: Any, rows: float) -> PhysicalNode: ...

    def satisfies(self, delivered: Traits, required: Traits) -> bool: ...


def makes_groups(memo: Memo, number: int) -> bool:
    """Whether a group is an Aggregate by keys, perhaps below projections and filters."""
    expression = memo.groups[number].expressions[0]
    while isinstance(expression, logical.Project | logical.Filter):
        (below,) = inputs(expression)
        expression = memo.groups[below.group].expressions[0]
    return isinstance(expression, logical.Aggregate) and bool(expression.keys)


def cheapest_first_rows(
    search: Searching, reference: GroupReference, required: Traits, share: float
) -> PhysicalNode | None:
    """Return the plan of which this share of the rows costs least."""
    renaming = reference.renaming
    if renaming is not None:
        own = search.memo.reference(reference.group)
        plan = cheapest_first_rows(search, own, renaming.own_traits(required), share)
        return None if plan is None else search.renamed(plan, renaming)
    groups = search.memo.groups
    group = groups[reference.group]
    best = search.optimize(reference, required, math.inf)
    for expression in group.expressions:
        if not isinstance(expression, logical.Project | logical.Filter | logical.Aggregate):
            continue
        (below,) = inputs(expression)
        for name, alternative in search.alternatives(expression, required):
            (requirement,) = alternative.requirements
            if requirement is None:
                continue
            if isinstance(expression, logical.Aggregate):
                source = search.optimize(below, requirement, math.inf)
            else:
                wider = min(1.0, share * max(1.0, groups[below.group].rows) / max(1.0, group.rows))
                source = cheapest_first_rows(search, below, requirement, wider)
            built = None if source is None else alternative.build(source)
            if built is None:
                continue
            plan = search.finish(expression, name, built, group.rows)
            is_better = best is None or first_rows_cost(plan, share) < first_rows_cost(best, share)
            if is_better and search.satisfies(plan.traits, required):
                best = plan
    return best
