"""The top-down search: the cheapest plan of a group for required traits, required by the consumer.

`optimize_group(G, ROOT)` tries, for every expression of G, every implement rule; each says what it requires of its
inputs, which their groups are searched for. Beside them stand the *enforcers*: a Sort over the group without the
required order, an exchange over the group where its rows are elsewhere. The cheapest so far is a bound: an
alternative that already costs more is given up (branch and bound). What has been found for a group and traits is kept.

    ask G1 (Aggregate) for ROOT
      aggregate_in_two_phases: ask G0 (Scan) for PARTITIONED → MapScan, cost 5; in all 5 + exchange 1 + final 1 = 7
      aggregate_at_root: ask G0 for ROOT → RootExchange(MapScan), cost 5 + exchange 90: over the bound of 7, given up
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import Column, Expression
from remuda.expr.cancellation import check_cancelled
from remuda.optimizer import cost
from remuda.optimizer.access_paths import access_paths, reduced_scan
from remuda.optimizer.cost import JoinInput, least_join_cost
from remuda.optimizer.costing import Costing
from remuda.optimizer.enforcers import Enforcer, enforcers
from remuda.optimizer.first_rows import cheapest_first_rows, may_stream
from remuda.optimizer.join.join_order import MAXIMUM_PAIRS, MAXIMUM_PAIRS_SPREAD
from remuda.optimizer.memo import Group, GroupReference, Memo
from remuda.optimizer.populate import populate_memo
from remuda.plan import logical, physical
from remuda.plan.traits import ROOT, Convention, DistributionKind, Traits
from remuda.plan.walk import inputs, walk
from remuda.rules.extensions import NO_EXTENSIONS, Extensions
from remuda.rules.implement.implement import alternatives
from remuda.rules.implement.join_inputs import JoinSides, join_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.catalog import IndexDefinition, MapStatistics
    from remuda.optimizer.canonical import Renaming
    from remuda.plan.physical import PhysicalNode
    from remuda.rules.rule_context import Alternative
    from remuda.types import SqlType

    PlanMaker = Callable[[float], PhysicalNode | None]

_HERE = (Convention.LOCAL,)
_AT_ROOT = Traits(Convention.LOCAL, ROOT)


@dataclass(slots=True)
class Search:
    """One optimisation; also what implement rules see as their context."""

    members: int
    conventions: tuple[Convention, ...]
    statistics: dict[str, MapStatistics]
    next_column: int
    disabled: frozenset[str] = frozenset()
    pruning: bool = True
    spark_parallelism: int = 2
    cores: int = 1
    extensions: Extensions = NO_EXTENSIONS
    memo: Memo = field(init=False)
    costing: Costing = field(init=False)
    _sides: dict[int, tuple[JoinSides, JoinSides | None]] = field(default_factory=dict)
    """By the identity of the join, which the memo keeps."""
    _origins: dict[int, tuple[PhysicalNode, list[str]]] = field(default_factory=dict)
    """Which rules proposed a node, by the node's identity."""
    _renamed: dict[tuple[int, int], tuple[PhysicalNode, PhysicalNode]] = field(default_factory=dict)
    """A plan in the columns of a reference, with the plan itself, by the identities of plan and renaming."""

    def __post_init__(self) -> None:
        self.memo = Memo(self.statistics)
        self.costing = Costing(self.members, self.spark_parallelism, self.cores, self.extensions)

    def run(self, tree: logical.Root) -> physical.Root:
        pairs = MAXIMUM_PAIRS if self._is_here else MAXIMUM_PAIRS_SPREAD
        top = populate_memo(tree, self.memo, self.new_column, self.disabled, pairs, self.extensions)
        winner = self.optimize_group(top, Traits(Convention.LOCAL, ROOT, tree.collation), math.inf)
        assert isinstance(winner, physical.Root), "every logical operator has an implementation"
        return winner

    def rules_of(self, tree: PhysicalNode) -> list[str]:
        """The implement rules whose proposals are in the tree."""
        nodes = (self._origins.get(id(node)) for node in walk(tree))
        return [name for origin in nodes if origin is not None for name in origin[1]]

    def new_column(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column:
        self.next_column += 1
        return Column(self.next_column - 1, name, type_, nullable)

    def access_paths(self, scan: logical.Scan, required: Traits) -> Iterable[physical.ScanNode]:
        paths = access_paths(scan, required, self.conventions, self.statistics[scan.map.id], pruned=self.pruning)
        return map(self.costing.extended, paths) if self.extensions.costs else paths

    def reduced_scan(self, scan: physical.MapScan, filter_: Expression | None) -> physical.MapScan:
        """The scan with another filter."""
        return reduced_scan(scan, filter_, self.statistics[scan.map.id])

    def index_row(self, index: IndexDefinition) -> float:
        return cost.INDEX_ROW[index.type]

    def rows(self, relation: logical.Relation) -> float:
        assert isinstance(relation, GroupReference)
        return self.memo.groups[relation.group].rows

    def partitionings(self, relation: logical.Relation) -> tuple[tuple[int, ...], ...]:
        assert isinstance(relation, GroupReference)
        return self.memo.properties(relation).partitionings

    def orders(self, relation: logical.Relation) -> tuple[tuple[int, ...], ...]:
        assert isinstance(relation, GroupReference)
        return self.memo.properties(relation).orders

    def is_replicated(self, relation: logical.Relation) -> bool:
        assert isinstance(relation, GroupReference)
        return self.memo.groups[relation.group].properties.replicated

    def join_sides(self, node: logical.Join) -> JoinSides:
        return self._both_sides(node)[0]

    def commuted_sides(self, node: logical.Join) -> JoinSides | None:
        return self._both_sides(node)[1]

    def _both_sides(self, node: logical.Join) -> tuple[JoinSides, JoinSides | None]:
        known = self._sides.get(id(node))
        if known is None:
            sides = join_sides(node, self.new_column)
            known = self._sides[id(node)] = (sides, sides.commuted())
        return known

    def scan_of(self, relation: logical.Relation) -> logical.Scan | None:
        assert isinstance(relation, GroupReference)
        return self.memo.scan_of(relation)

    def optimize(self, reference: GroupReference, required: Traits, bound: float) -> PhysicalNode | None:
        """Return the cheapest plan of a group as for `optimize_group`, in the reference's columns."""
        renaming = reference.renaming
        if renaming is None:
            return self.optimize_group(reference.group, required, bound)
        plan = self.optimize_group(reference.group, renaming.own_traits(required), bound)
        return None if plan is None else self.renamed(plan, renaming)

    def renamed(self, plan: PhysicalNode, renaming: Renaming) -> PhysicalNode:
        """Return a group's plan in a reference's columns; the same object each time."""
        known = self._renamed.get((id(plan), id(renaming)))
        if known is None:
            new: PhysicalNode = renaming.rename(plan)
            known = self._renamed[id(plan), id(renaming)] = (plan, new)
            for old_node, new_node in zip(walk(plan), walk(new), strict=True):
                origin = self._origins.get(id(old_node))
                if origin is not None:
                    self._origins[id(new_node)] = (new_node, origin[1])
        return known[1]

    def optimize_group(self, number: int, required: Traits, bound: float) -> PhysicalNode | None:
        """The cheapest plan that satisfies `required` and costs less than `bound`; None where there is none."""
        group = self.memo.groups[number]
        required = self._simplified(required)
        if required in group.winners:
            return self._within(bound, group.winners[required])
        if bound <= group.failures.get(required, -math.inf) or bound <= self._least_of_join(group):
            return None
        check_cancelled()
        if required in group.failures:
            # Asked for the second time with a higher bound: the winner itself, once for all further bounds.
            return self._within(bound, self._search(group, required, math.inf))
        return self._search(group, required, bound)

    def _search(self, group: Group, required: Traits, bound: float) -> PhysicalNode | None:
        best: PhysicalNode | None = None
        limit = bound
        weighed = group.weighed[required] = []
        for least, plan_makers in self._alternative_plans(group, required):
            if least >= limit:
                continue
            for make_plan in plan_makers:
                plan = make_plan(limit)
                if plan is None or not self.satisfies(plan.traits, required):
                    continue
                weighed.append(plan)
                if plan.estimate.cost < limit:
                    best, limit = plan, plan.estimate.cost
        if best is not None or bound == math.inf:
            group.winners[required] = best
        else:
            group.failures[required] = bound
        return best

    def _within(self, bound: float, plan: PhysicalNode | None) -> PhysicalNode | None:
        return plan if plan is not None and plan.estimate.cost < bound else None

    def _simplified(self, required: Traits) -> Traits:
        """With one member and no other backend all rows are on the coordinator, wherever they are required."""
        if not self._is_here or required.distribution is ROOT:
            return required
        return Traits(Convention.LOCAL, ROOT, required.collation)

    def _alternative_plans(self, group: Group, required: Traits) -> Iterator[tuple[float, Iterable[PlanMaker]]]:
        """Yield alternatives for the group's rows, each a function of the bound; with what they cost at least."""
        enforcing: list[Enforcer] = []
        if not isinstance(group.expressions[0], logical.Root):
            enforcing = list(enforcers(required, self.conventions, self.members))
        yield 0.0, (partial(self._enforce, group.number, enforcer) for enforcer in enforcing if not enforcer.least)
        for least, expression in self._by_promise(group):
            yield (
                least,
                (
                    partial(self._build, expression, name, alternative, required, group.rows)
                    for name, alternative in sorted(
                        self.alternatives(expression, required), key=partial(_crosses, required)
                    )
                ),
            )
        for enforcer in enforcing:
            if enforcer.least:
                yield enforcer.least, (partial(self._enforce, group.number, enforcer),)

    def _by_promise(self, group: Group) -> list[tuple[float, logical.LogicalNode]]:
        """Return the expressions, those first that look cheap: a good bound early saves most of the others."""
        return sorted(zip(self._least_costs(group), group.expressions, strict=True), key=lambda pair: pair[0])

    def _least_costs(self, group: Group) -> list[float]:
        if group.least is None:
            group.least = [self._least_cost(group, expression) for expression in group.expressions]
        return group.least

    def _least_cost(self, group: Group, expression: logical.LogicalNode) -> float:
        """Return what every plan of an expression costs at least; 0 where that is not known."""
        if self.extensions.costs:
            return 0.0
        if isinstance(expression, logical.Join):
            left, right = (self._join_input(reference) for reference in inputs(expression))
            return least_join_cost(left, right, group.rows, len(group.columns))
        is_passing = self._is_here and isinstance(group.expressions[0], logical.Join)
        return min(self._least_costs(self.memo.groups[inputs(expression)[0].group])) if is_passing else 0.0

    def _join_input(self, reference: GroupReference) -> JoinInput:
        """Return a side of a join. Where members share work, what it costs to read is not known before it is placed."""
        group = self.memo.groups[reference.group]
        first = group.expressions[0]
        is_map = isinstance(first, logical.Scan)
        if not self._is_here:
            return JoinInput(group.rows, 0.0, is_map=is_map)
        if isinstance(first, logical.Join):
            return JoinInput(group.rows, min(self._least_costs(group)), is_map=False)
        read = self.optimize_group(group.number, _AT_ROOT, math.inf)
        return JoinInput(group.rows, math.inf if read is None else read.estimate.cost, is_map=is_map)

    def _least_of_join(self, group: Group) -> float:
        """Return what every plan of a join costs at least: below that there is no need to look at its orders.

        Not where members share the work: an exchange above the join divides its cost.
        """
        is_known = self._is_here and isinstance(group.expressions[0], logical.Join)
        return min(self._least_costs(group)) if is_known else -math.inf

    @property
    def _is_here(self) -> bool:
        """Whether all rows are in this process, on one member."""
        return self.members == 1 and self.conventions == _HERE

    def _build(
        self, expression: Any, name: str, alternative: Alternative, required: Traits, rows: float, limit: float
    ) -> PhysicalNode | None:
        # A LIMIT pays only for a part of its input: its own bound says nothing about the input's whole cost.
        left = math.inf if isinstance(expression, logical.Limit) else limit
        sources: list[PhysicalNode] = []
        reserved = 0.0
        if isinstance(expression, logical.Join) and self._is_here and None not in alternative.requirements:
            # What the right side costs at least is not there for the left one.
            reserved = self._join_input(inputs(expression)[1]).least
        for reference, requirement in zip(inputs(expression), alternative.requirements, strict=True):
            if requirement is None:
                continue
            shared = requirement.distribution.kind is not required.distribution.kind or (
                requirement.convention is not required.convention
            )
            # Work that members share below an exchange may cost that many times the bound on the coordinator.
            if requirement.convention is not required.convention:
                left -= cost.SPARK_JOB
            available, reserved = left - reserved, 0.0
            source = self.optimize(reference, requirement, available * self._sharers if shared else available)
            if source is None:
                return None
            left -= 0.0 if shared else source.estimate.cost
            sources.append(source)
        built: PhysicalNode | None = alternative.build(*sources)
        if built is None:
            return None
        priced = self.finish(expression, name, built, rows)
        if isinstance(expression, logical.Limit) and may_stream(self.memo, inputs(expression)[0]):
            early = self._early(expression, name, alternative, rows)
            return early if early is not None and early.estimate.cost < priced.estimate.cost else priced
        return priced

    def _early(self, expression: Any, name: str, alternative: Alternative, rows: float) -> PhysicalNode | None:
        """A LIMIT over the plan whose first rows are cheapest."""
        (requirement,) = alternative.requirements
        below = self.memo.groups[expression.input.group]
        assert requirement is not None, "a LIMIT reads its input"
        share = min(1.0, rows / max(1.0, below.rows))
        source = cheapest_first_rows(self, expression.input, self._simplified(requirement), share)
        built = None if source is None else alternative.build(source)
        return None if built is None else self.finish(expression, name, built, rows)

    def alternatives(self, expression: logical.LogicalNode, required: Traits) -> Iterable[tuple[str, Alternative]]:
        return alternatives(expression, required, self, self.disabled, self.extensions)

    def finish(self, expression: Any, name: str, built: Any, rows: float) -> PhysicalNode:
        priced = self.costing.price(built, rows)
        names = self._origins.setdefault(id(priced), (priced, []))[1]
        names.append(name)
        explored = self.memo.explored.get(id(expression))
        if explored is not None:
            names.append(explored)
        return priced

    def _enforce(self, number: int, enforcer: Enforcer, limit: float) -> PhysicalNode | None:
        source = self.optimize_group(number, enforcer.below, limit * (self._sharers if enforcer.shares_work else 1))
        return None if source is None else self.costing.price(enforcer.build(source), source.estimate.rows)

    @property
    def _sharers(self) -> int:
        """Work that members or executors share below an exchange may cost that many times the bound above it."""
        return max(2, self.members, self.spark_parallelism)

    def satisfies(self, delivered: Traits, required: Traits) -> bool:
        """With one member, what is partitioned over the members is all on the coordinator."""
        alone = (
            self.members == 1
            and delivered.convention is Convention.LOCAL
            and delivered.distribution.kind is DistributionKind.PARTITIONED
            and required.distribution.kind is DistributionKind.ROOT
        )
        return (replace(delivered, distribution=ROOT) if alone else delivered).satisfies(required)


def _crosses(required: Traits, way: tuple[str, Alternative]) -> bool:
    """Whether rows come from another backend: that begins with the start of a job, so it is looked at last."""
    return any(each is not None and each.convention is not required.convention for each in way[1].requirements)
