"""The top-down search: the cheapest plan of a group for required traits, required by the consumer.

`optimize_group(G, ROOT)` tries, for every expression of G, every implement rule; each says what it requires of its
inputs, which their groups are searched for. Beside them stand the *enforcers*: a Sort over the group without the
required order, an exchange over the group where its rows are elsewhere. The cheapest so far is a bound: an
alternative that already costs more is given up (branch and bound). What has been found for a group and traits is kept.

    ask G1 (Aggregate) for ROOT
      aggregate_in_two_phases: ask G0 (Scan) for PARTITIONED → MapScan, cost 5; in all 5 + exchange 1 + final 1 = 7
      aggregate_at_root: ask G0 for ROOT → RootExchange(MapScan), cost 5 + exchange 90: over the bound of 7, given up

A LIMIT requires of its input only a share of the rows (a *row goal*). A plan then costs what it takes to deliver the
first row and that share of the rest, and operators that pass rows on as they come hand the share on to their inputs:
10 of 1,000 rows behind a filter are 1 % of its input as well, whatever the filter keeps.

    ask G1 (Limit 10) for ROOT
      limit_by_top_n: ask G0 (Scan) for ROOT → MapScan, cost 900; in all 900 + TopN 60 = 960
      limit_ordered_rows: ask G0 for ROOT in order, 1 % of the rows → IndexScan, cost 5 + 1 % of 3,000 = 35
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import Column, Expression, columns_of, conjunction, conjuncts
from remuda.expr.cancellation import check_cancelled
from remuda.optimizer import cost
from remuda.optimizer.access_paths import access_paths, reduced_scan
from remuda.optimizer.cost import first_rows_cost, limited_share, wanted_rows
from remuda.optimizer.costing import Costing
from remuda.optimizer.enforcers import Enforcer, enforcers
from remuda.optimizer.estimates.selectivity import scan_selectivity
from remuda.optimizer.join.join_bounds import JoinBounds
from remuda.optimizer.join.join_order import MAXIMUM_PAIRS, MAXIMUM_PAIRS_SPREAD
from remuda.optimizer.memo import Group, GroupReference, Memo, Required, Split
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
_ALL_AT_ROOT = Required(_AT_ROOT)
_UNKNOWN: Any = object()
"""Stands for a winner that has not been searched for; None is one that there is not."""


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
    partitions: int | None = None
    tasks_write: bool = False
    memo: Memo = field(init=False)
    costing: Costing = field(init=False)
    _is_here: bool = field(init=False)
    """Whether all rows are in this process, on one member."""
    _bounds: JoinBounds = field(init=False)
    _sides: dict[int, tuple[JoinSides, JoinSides | None]] = field(default_factory=dict)
    """By the identity of the join, which the memo keeps."""
    _origins: dict[int, tuple[PhysicalNode, list[str]]] = field(default_factory=dict)
    """Which rules proposed a node, by the node's identity."""
    _renamed: dict[tuple[int, int], tuple[PhysicalNode, PhysicalNode]] = field(default_factory=dict)
    """A plan in the columns of a reference, with the plan itself, by the identities of plan and renaming."""

    def __post_init__(self) -> None:
        self._is_here = self.members == 1 and self.conventions == _HERE
        self.memo = Memo(self.statistics, self.partitions)
        has_own_costs = bool(self.extensions.costs)
        self._bounds = JoinBounds(self.memo, self._cost_to_read, self._is_here, has_own_costs)
        self.costing = Costing(self.members, self.spark_parallelism, self.cores, self.extensions)

    def run(self, tree: logical.Root) -> physical.Root:
        pairs = MAXIMUM_PAIRS if self._is_here else MAXIMUM_PAIRS_SPREAD
        top = populate_memo(tree, self.memo, self.new_column, self.disabled, pairs, self.extensions)
        winner = self.optimize_group(top, Traits(Convention.LOCAL, ROOT, tree.collation), math.inf)
        assert isinstance(winner, physical.Root), "every logical operator has an implementation"
        return winner

    def rules_of(self, tree: PhysicalNode) -> list[str]:
        """Return the implement rules whose proposals are in the tree."""
        nodes = (self._origins.get(id(node)) for node in walk(tree))
        return [name for origin in nodes if origin is not None for name in origin[1]]

    def new_column(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column:
        self.next_column += 1
        return Column(self.next_column - 1, name, type_, nullable)

    def access_paths(self, scan: logical.Scan, required: Traits) -> Iterable[physical.ScanNode]:
        paths = access_paths(
            scan,
            required,
            self.conventions,
            self.statistics[scan.map.id],
            pruned=self.pruning,
            partitions=self.partitions,
        )
        return map(self.costing.extended, paths) if self.extensions.costs else paths

    def reduced_scan(self, scan: physical.MapScan, filter_: Expression | None) -> physical.MapScan:
        """Return the scan with another filter."""
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

    def is_unique(self, relation: logical.Relation, columns: frozenset[int]) -> bool:
        assert isinstance(relation, GroupReference)
        return self.memo.properties(relation).unique_within(columns) is not None

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

    def hold_cutover(self, scan: logical.Scan, *, by_index: bool) -> int:
        return cost.hold_cutover(self.statistics[scan.map.id].rows, len(scan.columns), by_index=by_index)

    def hold_entries(self, scan: logical.Scan, index: IndexDefinition) -> int:
        return cost.hold_entries(self.statistics[scan.map.id].rows, len(scan.columns), index)

    def passing(self, scan: logical.Scan, looked_up: tuple[str, ...]) -> float:
        named = (part for part in conjuncts(scan.filter) if not _names_only(part, looked_up))
        return scan_selectivity(conjunction(named), scan.map, self.statistics[scan.map.id])

    def scan_of(self, relation: logical.Relation) -> logical.Scan | None:
        assert isinstance(relation, GroupReference)
        return self.memo.scan_of(relation)

    def optimize(
        self, reference: GroupReference, required: Traits, bound: float, share: float = 1.0
    ) -> PhysicalNode | None:
        """Return the cheapest plan of a group as for `optimize_group`, in the reference's columns."""
        renaming = reference.renaming
        if renaming is None:
            return self.optimize_group(reference.group, required, bound, share)
        plan = self.optimize_group(reference.group, renaming.own_traits(required), bound, share)
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

    def optimize_group(self, number: int, required: Traits, bound: float, share: float = 1.0) -> PhysicalNode | None:
        """Return the plan of which this share of the rows is cheapest, if it satisfies `required`.

        Return None where there is no plan of which that costs less than `bound`.
        """
        group = self.memo.groups[number]
        asked = Required(self._simplified(required), share)
        winner = group.winners.get(asked, _UNKNOWN)
        if winner is not _UNKNOWN:
            return _within(bound, winner, share)
        failed = group.failures.get(asked)
        if failed is not None and bound <= failed:
            return None
        # Whatever is paid before the first row, this share of a plan costs at least this share of the whole.
        if self._is_here and bound <= share * self._bounds.least_of_join(group):
            return None
        check_cancelled()
        if failed is not None:
            # Asked for the second time with a higher bound: the winner itself, once for all further bounds.
            return _within(bound, self._search(group, asked, math.inf), share)
        return self._search(group, asked, bound)

    def _search(self, group: Group, asked: Required, bound: float) -> PhysicalNode | None:
        best: PhysicalNode | None = None
        limit = bound
        weighed = group.weighed[asked] = []
        for least, plan_makers in self._alternative_plans(group, asked):
            if least >= limit:
                continue
            for make_plan in plan_makers:
                plan = make_plan(limit)
                if plan is None or not self.satisfies(plan.traits, asked.traits):
                    continue
                weighed.append(plan)
                cost_ = first_rows_cost(plan, asked.share)
                if cost_ < limit:
                    best, limit = plan, cost_
        if best is not None or bound == math.inf:
            group.winners[asked] = best
            if asked == _ALL_AT_ROOT:
                self._bounds.tighten(group.number, math.inf if best is None else best.estimate.cost)
        else:
            group.failures[asked] = bound
        return best

    def _simplified(self, required: Traits) -> Traits:
        """Simplify a distribution: with one member and no other backend all rows are on the coordinator."""
        if not self._is_here or required.distribution is ROOT:
            return required
        return Traits(Convention.LOCAL, ROOT, required.collation)

    def _alternative_plans(self, group: Group, asked: Required) -> Iterator[tuple[float, Iterable[PlanMaker]]]:
        """Yield alternatives for the group's rows, each a function of the bound; with what they cost at least."""
        required, share = asked
        enforcing: list[Enforcer] = []
        if not isinstance(group.expressions[0], logical.Root):
            enforcing = list(enforcers(required, self.conventions, self.members))
        yield 0.0, (partial(self._enforce, group.number, enforcer) for enforcer in enforcing if not enforcer.least)
        for least, way in self._by_promise(group):
            yield least * share, self._ways(group, way, asked)
        for enforcer in enforcing:
            if enforcer.least:
                yield enforcer.least, (partial(self._enforce, group.number, enforcer),)

    def _ways(self, group: Group, way: logical.LogicalNode | Split, asked: Required) -> Iterator[PlanMaker]:
        """Yield the alternatives of one expression; a split becomes one now that its least cost is below the bound."""
        expression = self.memo.explore(group, way) if isinstance(way, Split) else way
        proposed = self.alternatives(expression, asked.traits)
        for name, alternative in sorted(proposed, key=partial(_crosses, asked.traits)):
            yield partial(self._build, expression, name, alternative, asked, group.rows)

    def _by_promise(self, group: Group) -> list[tuple[float, logical.LogicalNode | Split]]:
        """Return the expressions, those first that look cheap: a good bound early saves most of the others."""
        return self._bounds.ranked(group)

    def _cost_to_read(self, number: int) -> float:
        read = self.optimize_group(number, _AT_ROOT, math.inf)
        return math.inf if read is None else read.estimate.cost

    def _build(
        self, expression: Any, name: str, alternative: Alternative, asked: Required, rows: float, limit: float
    ) -> PhysicalNode | None:
        is_bounded_join = self._is_here and isinstance(expression, logical.Join)
        if is_bounded_join and self._bounds.least_of_way(expression, name, alternative, asked.share, rows) >= limit:
            return None
        required = asked.traits
        left = limit
        sources: list[PhysicalNode] = []
        has_goal = asked.share != 1.0 or isinstance(expression, logical.Limit)
        streamed = alternative.streamed if has_goal else ()
        reserved = 0.0
        if is_bounded_join and None not in alternative.requirements:
            # What the right side costs at least is not there for the left one.
            reserved = self._bounds.input(inputs(expression)[1].group).least * (asked.share if 1 in streamed else 1.0)
        for ordinal, (reference, requirement) in enumerate(
            zip(inputs(expression), alternative.requirements, strict=True)
        ):
            if requirement is None:
                continue
            share = self._share_below(expression, requirement, asked.share) if ordinal in streamed else 1.0
            shared = requirement.distribution.kind is not required.distribution.kind or (
                requirement.convention is not required.convention
            )
            # Work that members share below an exchange may cost that many times the bound on the coordinator.
            if requirement.convention is not required.convention:
                left -= cost.SPARK_JOB
            available, reserved = left - reserved, 0.0
            available = available * self._sharers if shared else available
            source = self.optimize(reference, requirement, available, share)
            if source is None:
                return None
            # A union may read its inputs' map in one pass, which costs less than all of them.
            is_summed = not shared and not isinstance(expression, logical.Union)
            left -= first_rows_cost(source, share) if is_summed else 0.0
            sources.append(source)
        built: PhysicalNode | None = alternative.build(*sources)
        return None if built is None else self.finish(expression, name, built, rows)

    def _share_below(self, expression: Any, requirement: Traits, share: float) -> float:
        """Return the share of its input's rows that an operator reads of which this share is read.

        It is the same for an operator that passes rows on as they come. A LIMIT reads as many rows as it says; where
        its input is spread, on each member.
        """
        if not isinstance(expression, logical.Limit):
            return share
        spread = requirement.distribution.kind is DistributionKind.PARTITIONED and not self._is_here
        readers = self.costing.parallelism(requirement.convention) if spread else 1
        return share * limited_share(wanted_rows(expression) * readers, self.rows(expression.input))

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
        """Test a distribution: with one member, rows partitioned over the members are all on the coordinator."""
        alone = (
            self.members == 1
            and delivered.convention is Convention.LOCAL
            and delivered.distribution.kind is DistributionKind.PARTITIONED
            and required.distribution.kind is DistributionKind.ROOT
        )
        return (replace(delivered, distribution=ROOT) if alone else delivered).satisfies(required)


def _within(bound: float, plan: PhysicalNode | None, share: float) -> PhysicalNode | None:
    return plan if plan is not None and first_rows_cost(plan, share) < bound else None


def _names_only(part: Expression, names: tuple[str, ...]) -> bool:
    return all(column.name in names for column in columns_of(part).values())


def _crosses(required: Traits, way: tuple[str, Alternative]) -> bool:
    """Test whether rows come from another backend, which begins with the start of a job: it is searched last."""
    return any(each is not None and each.convention is not required.convention for each in way[1].requirements)
