"""The plan whose first rows are cheapest: what a LIMIT over groups wants of its input.

    SELECT d, COUNT(*) FROM o GROUP BY d ORDER BY d LIMIT 3
      all groups: Sort(HashAggregate(MapScan)) costs 2.6 ms, StreamingAggregate(IndexScan) 10 ms
      3 of 700:   the first must make all of them, the second reads a few hundred rows

    SELECT ... FROM o JOIN c ON o.c = c.id ORDER BY c.id LIMIT 3, with SORTED indexes on both columns
      a hash join must read all of one side, MergeJoin(IndexScan, IndexScan) a few rows of both

Only what lies between a LIMIT and an Aggregate or a merge join is looked at: elsewhere what delivers an order cheaply
delivers its first rows cheaply, too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from remuda.optimizer.cost import first_rows_cost
from remuda.plan import logical
from remuda.plan.walk import inputs
from remuda.rules.implement.implement_join import merge_join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.optimizer.canonical import Renaming
    from remuda.optimizer.memo import GroupReference, Memo
    from remuda.plan.physical import PhysicalNode
    from remuda.plan.traits import Traits
    from remuda.rules.rule_context import Alternative


MERGE_RULE = merge_join.__name__
_STREAMING = logical.Scan | logical.Project | logical.Filter | logical.Aggregate | logical.Join


class Searching(Protocol):
    """What it takes of the search."""

    @property
    def memo(self) -> Memo: ...

    def optimize(self, reference: GroupReference, required: Traits, bound: float) -> PhysicalNode | None: ...

    def renamed(self, plan: PhysicalNode, renaming: Renaming) -> PhysicalNode: ...

    def alternatives(self, expression: logical.LogicalNode, required: Traits) -> Iterable[tuple[str, Alternative]]: ...

    def finish(self, expression: Any, name: str, built: Any, rows: float) -> PhysicalNode: ...

    def satisfies(self, delivered: Traits, required: Traits) -> bool: ...


def may_stream(memo: Memo, reference: GroupReference) -> bool:
    """Whether a group, perhaps below projections and filters, has a plan whose first rows come early.

    An Aggregate by keys, or a join of two inputs that can come in the order of its keys.
    """
    expression = memo.groups[reference.group].expressions[0]
    while isinstance(expression, logical.Project | logical.Filter):
        (below,) = inputs(expression)
        expression = memo.groups[below.group].expressions[0]
    if isinstance(expression, logical.Join):
        return all(memo.groups[side.group].properties.orders for side in inputs(expression))
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
        if not isinstance(expression, _STREAMING):
            continue
        for name, alternative in search.alternatives(expression, required):
            if None in alternative.requirements or (isinstance(expression, logical.Join) and name != MERGE_RULE):
                continue
            sources: list[PhysicalNode | None] = []
            for below, requirement in zip(inputs(expression), alternative.requirements, strict=True):
                assert requirement is not None
                if isinstance(expression, logical.Aggregate):
                    sources.append(search.optimize(below, requirement, math.inf))
                    continue
                passed = 1.0
                if not isinstance(expression, logical.Join):
                    passed = max(1.0, groups[below.group].rows) / max(1.0, group.rows)
                sources.append(cheapest_first_rows(search, below, requirement, min(1.0, share * passed)))
            built = None if None in sources else alternative.build(*sources)
            if built is None:
                continue
            plan = search.finish(expression, name, built, group.rows)
            is_better = best is None or first_rows_cost(plan, share) < first_rows_cost(best, share)
            if is_better and search.satisfies(plan.traits, required):
                best = plan
    return best
