"""The top-down search: the cheapest plan of a group for required traits, asked for by the consumer.

`optimize_group(G, ROOT)` tries, for every expression of G, every implement rule; each says what it requires of its
inputs, which is asked of their groups in turn. Beside them stand the *enforcers*: a Sort over the group without the
required order, a RootExchange over the group where it lies on the members. The cheapest so far is a bound: an
alternative that already costs more is given up (branch and bound). What has been found for a group and traits is kept.

    ask G1 (Aggregate) for ROOT
      aggregate_in_two_phases: ask G0 (Scan) for PARTITIONED → MapScan, cost 5; in all 5 + exchange 1 + final 1 = 7
      aggregate_at_root: ask G0 for ROOT → RootExchange(MapScan), cost 5 + exchange 90: over the bound of 7, given up
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from remuda.expr import Column
from remuda.optimizer.access_paths import access_paths
from remuda.optimizer.cardinality import estimate_rows
from remuda.optimizer.cost import operator_cost, total_cost, wanted_rows
from remuda.optimizer.memo import Memo
from remuda.plan import logical, physical
from remuda.plan.physical import UNPRICED, Estimate, PhysicalNode
from remuda.plan.traits import (
    PARTITIONED,
    ROOT,
    Convention,
    DistributionKind,
    Traits,
)
from remuda.plan.walk import inputs, walk, with_inputs
from remuda.rules.implement import alternatives

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.catalog import MapStatistics
    from remuda.types import SqlType


@dataclass(slots=True)
class Search:
    """One optimisation; also what implement rules see as their context."""

    members: int
    conventions: tuple[Convention, ...]
    statistics: dict[str, MapStatistics]
    next_column: int
    disabled: frozenset[str] = frozenset()
    pruning: bool = True
    memo: Memo = field(default_factory=Memo)
    _origins: dict[int, tuple[PhysicalNode, list[str]]] = field(default_factory=dict)
    """Which rules proposed a node, by the node's identity."""

    def run(self, tree: logical.Root) -> physical.Root:
        top = self.memo.copy_in(tree, lambda node, rows: estimate_rows(node, rows, self.statistics))
        winner = self.optimize_group(top, Traits(Convention.LOCAL, ROOT, tree.collation), math.inf)
        assert isinstance(winner, physical.Root), "every logical operator has an implementation"
        return winner

    def rules_of(self, tree: PhysicalNode) -> list[str]:
        """The implement rules whose proposals are in the tree."""
        nodes = (self._origins.get(id(node)) for node in walk(tree))
        return [name for origin in nodes if origin is not None for name in origin[1]]

    def new_column(self, name: str, type_: SqlType) -> Column:
        self.next_column += 1
        return Column(self.next_column - 1, name, type_)

    def access_paths(self, scan: logical.Scan, required: Traits) -> Iterable[physical.ScanNode]:
        return access_paths(scan, required, self.conventions, self.statistics[scan.map.id], pruned=self.pruning)

    def optimize_group(self, number: int, required: Traits, bound: float) -> PhysicalNode | None:
        """The cheapest plan that satisfies `required` and costs less than `bound`; None where there is none."""
        group = self.memo.groups[number]
        if required in group.winners:
            known = group.winners[required]
            return known if known is not None and known.estimate.cost < bound else None
        best: PhysicalNode | None = None
        limit = bound
        for candidate in self._candidates(number, required):
            plan = candidate(limit)
            if plan is not None and plan.estimate.cost < limit and self._satisfies(plan.traits, required):
                best, limit = plan, plan.estimate.cost
        if best is not None or bound == math.inf:
            group.winners[required] = best
        return best

    def _candidates(self, number: int, required: Traits) -> Iterable[Any]:
        group = self.memo.groups[number]
        for expression in group.expressions:
            for name, alternative in alternatives(expression, required, self, self.disabled):
                yield lambda limit, e=expression, n=name, a=alternative: self._build(e, n, a, group.rows, limit)
        if isinstance(group.expressions[0], logical.Root):
            return
        if required.collation:
            yield lambda limit: self._enforce_order(number, required, limit)
        if required.distribution.kind is DistributionKind.ROOT and required.convention is Convention.LOCAL:
            for convention in self.conventions:
                if convention is not Convention.LOCAL or self.members > 1:
                    yield lambda limit, c=convention: self._enforce_root(number, required, c, limit)

    def _build(self, expression: Any, name: str, alternative: Any, rows: float, limit: float) -> PhysicalNode | None:
        sources: list[PhysicalNode] = []
        for reference, requirement in zip(inputs(expression), alternative.requirements, strict=True):
            # A LIMIT pays only for a part of its input: its own bound says nothing about the input's whole cost.
            allowed = math.inf if isinstance(expression, logical.Limit) else limit
            source = self.optimize_group(reference.group, requirement, allowed)
            if source is None:
                return None
            sources.append(source)
        built: PhysicalNode | None = alternative.build(*sources)
        if built is None:
            return None
        priced = self._priced(built, rows)
        self._origins.setdefault(id(priced), (priced, []))[1].append(name)
        return priced

    def _enforce_order(self, number: int, required: Traits, limit: float) -> PhysicalNode | None:
        source = self.optimize_group(number, replace(required, collation=()), limit)
        if source is None:
            return None
        traits = replace(source.traits, collation=required.collation)
        return self._priced(physical.Sort(source, required.collation, traits), source.estimate.rows)

    def _enforce_root(self, number: int, required: Traits, convention: Convention, limit: float) -> PhysicalNode | None:
        below = Traits(convention, PARTITIONED, required.collation)
        source = self.optimize_group(number, below, limit * self._parallelism(convention))
        if source is None:
            return None
        traits = Traits(Convention.LOCAL, ROOT, source.traits.collation if required.collation else ())
        return self._priced(physical.RootExchange(source, traits), source.estimate.rows)

    def _satisfies(self, delivered: Traits, required: Traits) -> bool:
        """With one member, what is partitioned over the members is all on the initiator."""
        alone = (
            self.members == 1
            and delivered.convention is Convention.LOCAL
            and delivered.distribution.kind is DistributionKind.PARTITIONED
            and required.distribution.kind is DistributionKind.ROOT
        )
        return (replace(delivered, distribution=ROOT) if alone else delivered).satisfies(required)

    def _priced(self, node: PhysicalNode, rows: float) -> PhysicalNode:
        """Fills in the estimates of an alternative: its top node delivers the rows of the group."""
        if node.estimate is not UNPRICED:
            return node
        sources = tuple(self._priced_below(child, rows) for child in inputs(node))
        return self._with_estimate(with_inputs(node, sources), rows)

    def _priced_below(self, node: PhysicalNode, final_rows: float) -> PhysicalNode:
        """Prices the inner nodes of an alternative: what members send before the initiator finishes the work."""
        if node.estimate is not UNPRICED:
            return node
        node = with_inputs(node, tuple(self._priced_below(child, final_rows) for child in inputs(node)))
        below = sum(child.estimate.rows for child in inputs(node))
        everywhere = self._parallelism(node.traits.convention)
        match node:
            case physical.HashAggregate(phase=physical.Phase.PARTIAL):
                rows = min(below, final_rows * everywhere)
            case physical.TopN() | physical.Limit():
                rows = min(below, wanted_rows(node) * everywhere)
            case _:
                rows = below
        return self._with_estimate(node, rows)

    def _with_estimate(self, node: PhysicalNode, rows: float) -> PhysicalNode:
        sources = inputs(node)
        convention = sources[0].traits.convention if sources else Convention.LOCAL
        cost = total_cost(node, operator_cost(node, rows), self._parallelism(convention))
        return replace(node, estimate=Estimate(rows, cost))

    def _parallelism(self, convention: Convention) -> int:
        return self.members if convention is Convention.LOCAL else max(2, self.members)
