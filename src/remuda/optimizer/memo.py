"""The memo: all equivalent plans of a query without repeating what they share.

A *group* stands for everything that delivers the same rows. Its expressions are operators whose inputs are groups, so
an alternative for a part is stored once, however many plans contain it:

    SELECT status, COUNT(*) FROM orders GROUP BY status

    G0: Scan orders                     winners: PARTITIONED → MapScan
    G1: Aggregate(G0)                            ROOT        → final(RootExchange(partial(G0 PARTITIONED)))
    G2: Root(G1)                                 ROOT        → Root(G1 ROOT)

A join of three has a group for each part that can be joined on its own (see `join_order`):

    G0: Scan a    G1: Scan b    G2: Scan c
    G3: Join(G0, G1)
    G4: Join(G1, G2)
    G5: Join(G3, G2), Join(G0, G4)

An expression is found again by its payload and the numbers of its input groups, never by comparing trees. Sub-trees
that differ only in the ids of their columns share one group, as the two scans of a self-join do; each is a reference to
it with columns of its own (`canonical.py`):

    SELECT ... FROM person x JOIN person y ON x.id = y.boss

    G0: Scan person (id #1, boss #2)
    G1: Join(G0, G0 as #5, #6)
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from remuda.dataclass import dataclass
from remuda.optimizer.estimates.group_properties import derive
from remuda.plan import logical
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from remuda.catalog import MapStatistics
    from remuda.expr import Column
    from remuda.optimizer.canonical import Renaming
    from remuda.optimizer.estimates.properties import Properties
    from remuda.plan.logical import LogicalNode
    from remuda.plan.physical import PhysicalNode
    from remuda.plan.traits import Traits


@dataclass(frozen=True, slots=True)
class GroupReference:
    """Stands in an expression for the winner of a group, in columns of its own where it has a renaming."""

    group: int
    columns: tuple[Column, ...]
    renaming: Renaming | None = field(default=None, compare=False, repr=False)


class Required(NamedTuple):
    """What a consumer requires of a group: traits, and the share of its rows that it is expected to read.

    A share below 1 is a *row goal*: the consumer stops early, so a plan is worth what its first rows cost.
    """

    traits: Traits
    share: float = 1.0


@dataclass(slots=True)
class Split:
    """A way to split a join in two. It becomes an expression when the search needs it, which is once.

    `left` and `right` are the groups of the parts; `looked_up` says of each what finding a row of it costs in a
    map, infinity where it is none, and `unique` whether no two rows may have the same keys.
    """

    left: int
    right: int
    looked_up: tuple[float, float]
    unique: tuple[bool, bool]
    make: Callable[[], LogicalNode]
    expression: LogicalNode | None = None


@dataclass(slots=True)
class Group:
    """`properties` are derived once; `winners` has the cheapest plan for all that was required so far.

    `failures` has, for what no plan was found for below some cost, the highest such cost: below it there is no need to
    look again.
    """

    number: int
    columns: tuple[Column, ...]
    properties: Properties
    expressions: list[LogicalNode]
    splits: list[Split] = field(default_factory=list)
    """What joins have beside their expressions: see `join_order`."""
    winners: dict[Required, PhysicalNode | None] = field(default_factory=dict)
    failures: dict[Required, float] = field(default_factory=dict)
    weighed: dict[Required, list[PhysicalNode]] = field(default_factory=dict)
    """The plans that were complete enough to have a cost, as they came in the last search: for EXPLAIN MEMO."""
    ranked: list[tuple[float, LogicalNode | Split]] | None = None
    """Expressions and splits, each with what it costs at least, the cheapest first; filled by the search."""

    @property
    def rows(self) -> float:
        return self.properties.rows


class Memo:
    def __init__(self, statistics: Mapping[str, MapStatistics] | None = None, partitions: int | None = None) -> None:
        """Statistics by map id; the number of partitions of the plan, None where all maps have it."""
        self.groups: list[Group] = []
        self.explored: dict[int, str] = {}
        """The explore rule that an expression comes from, by the expression's identity."""
        self._statistics = {} if statistics is None else statistics
        self._partitions = partitions
        self._by_expression: dict[Any, int] = {}

    def group_of(self, expression: LogicalNode) -> int:
        """Return the group that has the expression; a new one where none has it."""
        known = self._by_expression.get(expression)
        if known is None:
            known = self.add(expression).number
            self._by_expression[expression] = known
        return known

    def add(self, expression: LogicalNode) -> Group:
        """Make a group for an expression that is in none; its properties are derived here, once."""
        below = [self.properties(reference) for reference in inputs(expression)]
        properties = derive(expression, below, self._statistics, self._partitions)
        group = Group(len(self.groups), expression.columns, properties, [expression])
        self.groups.append(group)
        return group

    def explore(self, group: Group, split: Split) -> LogicalNode:
        """Make an expression of a split of the group; it comes from the rule that its other expressions come from."""
        if split.expression is None:
            split.expression = split.make()
            rule = self.explored.get(id(group.expressions[0]))
            if rule is not None:
                self.explored[id(split.expression)] = rule
            group.expressions.append(split.expression)
        return split.expression

    def reference(self, number: int) -> GroupReference:
        return GroupReference(number, self.groups[number].columns)

    def renamed_reference(self, number: int, renaming: Renaming) -> GroupReference:
        columns = self.groups[number].columns
        return GroupReference(number, tuple(map(renaming.rename, columns)), renaming)

    def properties(self, reference: GroupReference) -> Properties:
        """Return what is known of the group, in the reference's columns."""
        known = self.groups[reference.group].properties
        renaming = reference.renaming
        return known if renaming is None else known.renamed(lambda id_: renaming.columns[id_].id)

    def scan_of(self, reference: GroupReference) -> logical.Scan | None:
        """Return the scan that the group is, if it is one, in the reference's columns."""
        first = self.groups[reference.group].expressions[0]
        if not isinstance(first, logical.Scan):
            return None
        scan: logical.Scan = first if reference.renaming is None else reference.renaming.rename(first)
        return scan

    @property
    def expression_count(self) -> int:
        """How many expressions the groups have; a split that was never looked at is none."""
        return sum(len(group.expressions) for group in self.groups)

    @property
    def split_count(self) -> int:
        """How many ways there are to split joins, looked at or not."""
        return sum(len(group.splits) for group in self.groups)
