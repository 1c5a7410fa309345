"""The state of binding one statement: what may be named, which parameters there are, which column ids are taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from remuda.catalog.definitions import GENERATED_KEY
from remuda.errors import ErrorCode, Span, SqlError, nearest, parsing_error
from remuda.expr import Column, Expression, Literal, Parameter
from remuda.types import NULL, Kind, SqlType, to_stored, type_of_value

if TYPE_CHECKING:
    from remuda.catalog import Catalog, ColumnDefinition, MapDefinition, SearchPath
    from remuda.sql.tokens import ParameterNames


@dataclass(slots=True)
class Binding:
    catalog: Catalog
    search_path: SearchPath
    parameters: ParameterNames
    values: dict[int, Any]
    next_column: int = 0
    parameter_types: list[SqlType] = field(default_factory=list)
    places: dict[int, Span] = field(default_factory=dict)
    """Where a column was last named, by column id: for errors found after the name was resolved."""

    def __post_init__(self) -> None:
        self.parameter_types = [NULL] * len(self.parameters)

    def new_column(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column:
        self.next_column += 1
        return Column(self.next_column - 1, name, type_, nullable)

    def column_of(self, definition: ColumnDefinition) -> Column:
        return self.new_column(definition.name, definition.type, nullable=definition.nullable)

    def find_map(self, name: str, schema: str | None, span: Span | None) -> MapDefinition:
        path = self.search_path if schema is None else (schema,)
        found = self.catalog.find_map(name, path)
        if found is None:
            names = [definition.name for definition in self.catalog.maps.values()]
            hint = nearest(name, names) or f"Create it with: CREATE TABLE {name} (..., PRIMARY KEY (...))"
            raise SqlError(ErrorCode.OBJECT_NOT_FOUND, f"unknown table: {name}", span=span, suggestion=hint)
        return found

    def parameter(self, written: str, expected: SqlType | None) -> Expression:
        """The parameter that a placeholder means, with the type that its first use gives it."""
        index = self.parameters.index_of(written)
        if index in self.values:
            value = self.values[index]
            natural = type_of_value(value)
            return Literal(to_stored(natural, value), natural)
        known = self.parameter_types[index]
        if known.kind is Kind.NULL and expected is not None and expected.kind is not Kind.NULL:
            known = self.parameter_types[index] = expected
        return Parameter(index, known)


@dataclass(frozen=True, slots=True)
class ScopeRelation:
    """One entry of FROM: its alias, its columns, and which of them `*` leaves out."""

    alias: str
    columns: tuple[Column, ...]
    hidden: frozenset[int] = frozenset()
    key: tuple[Column, ...] = ()
    """What `__key` means here: the key of a map."""


@dataclass(frozen=True, slots=True)
class Scope:
    relations: tuple[ScopeRelation, ...]

    def resolve(self, name: str, table: str | None, span: Span | None) -> Column:
        relations = self.relations
        if table is not None:
            relations = tuple(relation for relation in relations if relation.alias.casefold() == table.casefold())
            if not relations:
                hint = nearest(table, [relation.alias for relation in self.relations])
                raise parsing_error(f"unknown table in this query: {table}", span=span, suggestion=hint)
        folded = name.casefold()
        found = [column for relation in relations for column in relation.columns if column.name.casefold() == folded]
        if not found and folded == GENERATED_KEY:
            found = list(self.key(table, span))
            if len(found) > 1:
                parts = ", ".join(column.name for column in found)
                raise parsing_error(
                    f"{GENERATED_KEY} is ({parts}) here: compare it with a row of that many values", span=span
                )
        if not found:
            names = [column.name for relation in relations for column in relation.columns]
            raise parsing_error(f"unknown column: {name}", span=span, suggestion=nearest(name, names))
        if len(found) > 1:
            raise parsing_error(f"the column {name} is ambiguous", span=span)
        return found[0]

    def key(self, table: str | None, span: Span | None) -> tuple[Column, ...]:
        keys = [relation.key for relation in self.relations if relation.key and table in {None, relation.alias}]
        if len(keys) != 1:
            raise parsing_error(
                f"unknown column: {GENERATED_KEY}" if not keys else f"{GENERATED_KEY} is ambiguous", span=span
            )
        return keys[0]

    def star(self, table: str | None) -> list[Column]:
        return [
            column
            for relation in self.relations
            if table is None or relation.alias.casefold() == table.casefold()
            for column in relation.columns
            if column.id not in relation.hidden
        ]
