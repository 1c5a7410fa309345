"""The memo: all equivalent plans of a query without repeating what they share.

A *group* stands for everything that delivers the same rows. Its expressions are operators whose inputs are groups, so
an alternative for a part is stored once, however many plans contain it:

    SELECT status, COUNT(*) FROM orders GROUP BY status

    G0: Scan orders                     winners: PARTITIONED → MapScan
    G1: Aggregate(G0)                            ROOT        → final(RootExchange(partial(G0 PARTITIONED)))
    G2: Root(G1)                                 ROOT        → Root(G1 ROOT)

An expression is found again by its payload and the numbers of its input groups, never by comparing trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from remuda.plan.walk import inputs, with_inputs

if TYPE_CHECKING:
    from remuda.expr import Column
    from remuda.plan.logical import LogicalNode
    from remuda.plan.physical import PhysicalNode
    from remuda.plan.traits import Traits


@dataclass(frozen=True, slots=True)
class GroupReference:
    """Stands in an expression for whichever plan of the group wins."""

    group: int
    columns: tuple[Column, ...] = field(compare=False)


@dataclass(slots=True)
class Group:
    """`rows` is derived once; `winners` has the cheapest plan for each set of traits asked for so far."""

    number: int
    columns: tuple[Column, ...]
    rows: float
    expressions: list[LogicalNode]
    winners: dict[Traits, PhysicalNode | None] = field(default_factory=dict)


class Memo:
    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._by_expression: dict[Any, int] = {}

    def find(self, expression: LogicalNode) -> int | None:
        return self._by_expression.get(expression)

    def add(self, expression: LogicalNode, rows: float) -> Group:
        """A new group for an expression that is in none."""
        group = Group(len(self.groups), expression.columns, rows, [expression])
        self.groups.append(group)
        self._by_expression[expression] = group.number
        return group

    def reference(self, number: int) -> GroupReference:
        return GroupReference(number, self.groups[number].columns)

    def copy_in(self, tree: LogicalNode, estimate: Any) -> int:
        """Puts a tree into groups, inputs first. `estimate(expression, input rows)` gives the rows of a new group."""
        numbers = [self.copy_in(child, estimate) for child in inputs(tree)]
        expression = with_inputs(tree, tuple(self.reference(number) for number in numbers))
        known = self.find(expression)
        if known is not None:
            return known
        input_rows = self.groups[numbers[0]].rows if numbers else 0.0
        return self.add(expression, estimate(expression, input_rows)).number
