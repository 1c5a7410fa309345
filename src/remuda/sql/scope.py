"""What a query may name: the relations of its FROM, and by way of the clause around it those of the outer queries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from remuda.catalog.definitions import GENERATED_KEY
from remuda.errors import nearest, parsing_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from remuda.errors import Span
    from remuda.expr import Column
    from remuda.plan.logical import Relation
    from remuda.sql.ctes import CommonTable
    from remuda.sql.expression import ExpressionBinder


@dataclass(frozen=True, slots=True)
class ScopeRelation:
    """One entry of FROM: its alias, its columns, and which of them `*` leaves out."""

    alias: str
    columns: tuple[Column, ...]
    hidden: frozenset[int] = frozenset()
    key: tuple[Column, ...] = ()
    """What `__key` means here: the key of a map."""
    merged: frozenset[int] = frozenset()
    """Columns that USING has merged into one: they are named only with the alias before them."""
    is_merge: bool = False
    """Whether its columns are those that USING made, which belong to no table."""

    def answers_to(self, table: str) -> bool:
        return self.alias.casefold() == table.casefold()

    def over(self, columns: Mapping[int, Column]) -> ScopeRelation:
        """The relation above a join, where its columns may be NULL that were not below it."""
        return replace(
            self,
            columns=tuple(columns.get(column.id, column) for column in self.columns),
            key=tuple(columns.get(column.id, column) for column in self.key),
        )


@dataclass(slots=True)
class QueryLevel:
    """One query of the statement: what it can see beside its own FROM, and what of that it has named."""

    outer: ExpressionBinder | None = None
    """The binder of the clause in which it stands as a sub-query."""
    ctes: Mapping[str, CommonTable] = field(default_factory=dict)
    """Queries that WITH has named, by folded name."""
    free: dict[int, Column] = field(default_factory=dict)
    """Columns of outer queries that this query names, and queries within it."""

    def chain(self) -> Iterator[QueryLevel]:
        """This level and those around it, from the inside out."""
        level: QueryLevel | None = self
        while level is not None:
            yield level
            level = None if level.outer is None else level.outer.scope.level


@dataclass(frozen=True, slots=True)
class Scope:
    relations: tuple[ScopeRelation, ...]
    level: QueryLevel = field(default_factory=QueryLevel)

    def resolve(self, name: str, table: str | None, span: Span | None) -> Column:
        """The column that a name means: the nearest query that has it decides."""
        found = self.find(name, table, span)
        if found is not None:
            return found
        if table is not None and not any(relation.answers_to(table) for relation in self._visible()):
            hint = nearest(table, [relation.alias for relation in self._visible()])
            raise parsing_error(f"unknown table in this query: {table}", span=span, suggestion=hint)
        names = [column.name for column in self._visible_columns(table)]
        raise parsing_error(f"unknown column: {name}", span=span, suggestion=nearest(name, names))

    def find(self, name: str, table: str | None, span: Span | None) -> Column | None:
        """The column that a name means, or None."""
        relations = [relation for relation in self.relations if table is None or relation.answers_to(table)]
        folded = name.casefold()
        found = [
            column
            for relation in relations
            for column in relation.columns
            if column.name.casefold() == folded and (table is not None or column.id not in relation.merged)
        ]
        if not found and folded == GENERATED_KEY and any(relation.key for relation in relations):
            found = list(self.key(table, span))
            if len(found) > 1:
                parts = ", ".join(column.name for column in found)
                raise parsing_error(
                    f"{GENERATED_KEY} is ({parts}) here: compare it with a row of that many values", span=span
                )
        if len(found) > 1:
            raise parsing_error(f"the column {name} is ambiguous", span=span)
        if found:
            return found[0]
        outer = self.level.outer
        if outer is None or (table is not None and relations):
            return None
        beyond = outer.scope.find(name, table, span)
        return None if beyond is None else self.named_outside(beyond)

    def named_outside(self, column: Column) -> Column:
        """Notes that this query names a column of a query around it."""
        marked = column if column.outer else replace(column, outer=True)
        self.level.free[column.id] = marked
        return marked

    def has(self, name: str) -> bool:
        """Whether the FROM of this very query has a column of that name."""
        folded = name.casefold()
        return any(column.name.casefold() == folded for relation in self.relations for column in relation.columns)

    def key(self, table: str | None, span: Span | None) -> tuple[Column, ...]:
        keys = [
            relation.key
            for relation in self.relations
            if relation.key and (table is None or relation.answers_to(table))
        ]
        if len(keys) != 1:
            raise parsing_error(
                f"unknown column: {GENERATED_KEY}" if not keys else f"{GENERATED_KEY} is ambiguous", span=span
            )
        return keys[0]

    def star(self, table: str | None, span: Span | None = None) -> list[Column]:
        relations = [relation for relation in self.relations if table is None or relation.answers_to(table)]
        if table is not None and not relations:
            hint = nearest(table, [relation.alias for relation in self.relations])
            raise parsing_error(f"unknown table in this query: {table}", span=span, suggestion=hint)
        return [
            column
            for relation in relations
            for column in relation.columns
            if column.id not in relation.hidden and (table is not None or column.id not in relation.merged)
        ]

    def _visible(self) -> Iterator[ScopeRelation]:
        yield from self.relations
        if self.level.outer is not None:
            yield from self.level.outer.scope._visible()

    def _visible_columns(self, table: str | None) -> Iterator[Column]:
        for relation in self._visible():
            if table is None or relation.answers_to(table):
                yield from relation.columns


def over_join(relations: Iterable[ScopeRelation], tree: Relation) -> tuple[ScopeRelation, ...]:
    """The relations as a join above them delivers them."""
    columns = {column.id: column for column in tree.columns}
    return tuple(relation.over(columns) for relation in relations)
