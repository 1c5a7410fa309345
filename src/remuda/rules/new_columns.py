"""Columns that a rewrite adds: each with an id that no other column of the query has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Column

if TYPE_CHECKING:
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
