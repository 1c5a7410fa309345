"""What a query may name: the relations of its FROM, and by way of the clause around it those of the outer queries."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from remuda.catalog.definitions import GENERATED_KEY
from remuda.dataclass import dataclass
from remuda.errors import SqlError, ambiguous_column, nearest, nearest_column, type_error, unknown_alias, unknown_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from remuda.errors import Span
    from remuda.expr import Column
    from remuda.plan.logical import Relation
    from remuda.sql.bind.ctes import CommonTable
    from remuda.sql.bind.expression.expression import ExpressionBinder


@dataclass(frozen=True, slots=True)
class TableName:
    """What stands before the name of a column: `orders`, or `public.orders`."""

    name: str
    schema: str | None = None

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


def table_of(node: Any) -> TableName | None:
    """Return the table name of a column as it is written."""
    return TableName(node.table, node.db or None) if node.table else None


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
    schema: str | None = None
    """Of a map or a view that is called by its own name."""
    hides: str = ""
    """The name that the alias stands in the place of."""

    def answers_to(self, table: TableName) -> bool:
        if table.schema is not None and (self.schema is None or self.schema.casefold() != table.schema.casefold()):
            return False
        return self.alias.casefold() == table.name.casefold()

    def over(self, columns: Mapping[int, Column]) -> ScopeRelation:
        """Return the relation above a join, which may make its columns nullable."""
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
        """Yield this level and those around it, from the inside out."""
        level: QueryLevel | None = self
        while level is not None:
            yield level
            level = None if level.outer is None else level.outer.scope.level


@dataclass(frozen=True, slots=True)
class Scope:
    relations: tuple[ScopeRelation, ...]
    level: QueryLevel = field(default_factory=QueryLevel)

    def resolve(self, name: str, table: TableName | None, span: Span | None, hint: str | None = None) -> Column:
        """Return the column that a name means: the nearest query that has it decides.

        `hint` completes the error for a name that is like no column.
        """
        found = self.find(name, table, span)
        if found is not None:
            return found
        if table is not None and not any(relation.answers_to(table) for relation in self._visible()):
            raise self._unknown_table(table, span)
        names = [column.name for column in self._visible_columns(table)]
        if not names:
            hint = hint or "The query has no FROM."
        raise unknown_column(
            f"unknown column: {name}", span=span, suggestion=nearest(name, names) or hint or nearest_column(name, names)
        )

    def find(self, name: str, table: TableName | None, span: Span | None) -> Column | None:
        """Return the column that a name means, or None."""
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
                raise type_error(
                    f"{GENERATED_KEY} is ({parts}) here: compare it with a row of that many values", span=span
                )
        if len(found) > 1:
            tables = [
                relation.alias for relation in relations if not relation.is_merge and set(found) & set(relation.columns)
            ]
            hint = f"Write {' or '.join(f'{table}.{name}' for table in tables)}." if len(set(tables)) > 1 else None
            raise ambiguous_column(f"the column {name} is ambiguous", span=span, suggestion=hint)
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
        """Test whether the FROM of this very query has a column of that name."""
        folded = name.casefold()
        return any(column.name.casefold() == folded for relation in self.relations for column in relation.columns)

    def key(self, table: TableName | None, span: Span | None) -> tuple[Column, ...]:
        keys = [
            relation.key
            for relation in self.relations
            if relation.key and (table is None or relation.answers_to(table))
        ]
        if len(keys) != 1:
            raise unknown_column(
                f"unknown column: {GENERATED_KEY}" if not keys else f"{GENERATED_KEY} is ambiguous", span=span
            )
        return keys[0]

    def star(self, table: TableName | None, span: Span | None = None) -> list[Column]:
        relations = [relation for relation in self.relations if table is None or relation.answers_to(table)]
        if table is not None and not relations:
            raise self._unknown_table(table, span)
        return [
            column
            for relation in relations
            for column in relation.columns
            if column.id not in relation.hidden and (table is not None or column.id not in relation.merged)
        ]

    def _unknown_table(self, table: TableName, span: Span | None) -> SqlError:
        """Suggests the alias of a table that is called by its own name."""
        hidden = (each.alias for each in self._visible() if each.hides.casefold() == table.name.casefold())
        hint = next(hidden, None) or nearest(table.name, [relation.alias for relation in self._visible()])
        return unknown_alias(f"unknown table in this query: {table}", span=span, suggestion=hint)

    def _visible(self) -> Iterator[ScopeRelation]:
        yield from self.relations
        if self.level.outer is not None:
            yield from self.level.outer.scope._visible()

    def _visible_columns(self, table: TableName | None) -> Iterator[Column]:
        for relation in self._visible():
            if table is None or relation.answers_to(table):
                yield from relation.columns


def over_join(relations: Iterable[ScopeRelation], tree: Relation) -> tuple[ScopeRelation, ...]:
    """Return the relations as a join above them delivers them."""
    columns = {column.id: column for column in tree.columns}
    return tuple(relation.over(columns) for relation in relations)
