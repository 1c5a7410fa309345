"""Columns that a rewrite adds: each with an id that no other column of the query has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Column, conjunction
from remuda.plan import logical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.expr import Expression
    from remuda.plan.logical import LogicalNode
    from remuda.types import SqlType


class NewColumns:
    """Gives out ids from `next_id` on."""

    __slots__ = ("next_id",)

    def __init__(self, next_id: int) -> None:
        self.next_id = next_id

    def add(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column:
        self.next_id += 1
        return Column(self.next_id - 1, name, type_, nullable)

    def copy(self, column: Column) -> Column:
        """Another column with the name and the type of this one."""
        return self.add(column.name, column.type, nullable=column.nullable)


# A relation on which conditions are tested.


def filtered(node: LogicalNode, conditions: Iterable[Expression]) -> LogicalNode:
    """Return Filter(node, all conditions), or the node itself where there are none."""
    condition = conjunction(conditions)
    return node if condition is None else logical.Filter(node, condition)
