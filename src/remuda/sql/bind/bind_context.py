"""The state of binding one statement: what may be named, which parameters there are, which column ids are taken."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from remuda.dataclass import dataclass
from remuda.errors import Span, SqlError, nearest, not_found, not_supported, too_complex, wrong_object
from remuda.expr import Column, Expression, Folding, Literal, Parameter
from remuda.sql.parse.other_names import table_hint
from remuda.types import NULL, TIMESTAMP_TZ, Kind, SqlType, to_stored, type_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlglot import exp

    from remuda.catalog import Catalog, ColumnDefinition, MapDefinition, SearchPath, ViewDefinition
    from remuda.plan.logical import Root
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.sql.bind.scope import QueryLevel
    from remuda.sql.parse.tokens import ParameterNames

# The shape of the tables in which a module says which of sqlglot's nodes it binds.


Binder: TypeAlias = "Callable[[ExpressionBinder, Any, SqlType | None], Expression]"
Binders: TypeAlias = "dict[type[exp.Expression], Binder]"
Parts: TypeAlias = "dict[type[exp.Expression], frozenset[str]]"
"""What a node may consist of; anything else that sqlglot found in the text would be lost if it were not refused."""

COMMON_PARTS = frozenset({"this", "expression", "expressions"})


MAXIMUM_INLINED = 1_000


class QueryBinder(Protocol):
    """Binds a query of any kind; `expected` are the types that its bare parameters take, column by column."""

    def __call__(self, binding: BindContext, node: Any, level: QueryLevel, expected: Sequence[SqlType], /) -> Root: ...


class ViewParser(Protocol):
    """The query of a view, as sqlglot's tree; everything in it is at the place that names the view."""

    def __call__(self, view: ViewDefinition, span: Span | None, /) -> Any: ...


@dataclass(slots=True)
class BindContext:
    catalog: Catalog
    search_path: SearchPath
    parameters: ParameterNames
    values: dict[int, Any]
    bind_query: QueryBinder
    """Sub-queries, FROM and WITH hold queries again: given here, because they cannot import what imports them."""
    parse_view: ViewParser
    expected: tuple[Any, ...] = ()
    """The stored values that estimates take the parameters to have; none where they are not known."""
    next_column: int = 0
    parameter_types: list[SqlType] = field(default_factory=list)
    reads_clock: bool = False
    spans: dict[int, Span] = field(default_factory=dict)
    """Where a column was last named, by column id: for errors found after the name was resolved."""
    tables: int = 0
    """The number of working tables of recursive queries so far."""
    views: dict[str, ViewDefinition] = field(default_factory=dict)
    """The views that the statement uses, by id: what its plan depends on."""
    within_views: list[ViewDefinition] = field(default_factory=list)
    inlined: int = 0
    """How many queries stand where a view or a name of WITH was written."""
    folding: Folding = field(default_factory=Folding)
    reads_catalog: bool = False
    """Whether rows of the statement are the catalog's of now, so that its plan is for now only."""

    def __post_init__(self) -> None:
        self.parameter_types = [NULL] * len(self.parameters)

    def count_inlined(self, span: Span | None) -> None:
        """Count inlined queries and refuse too many.

        Each of twenty queries that names the one before it twice would be a million copies of the first.
        """
        self.inlined += 1
        if self.inlined > MAXIMUM_INLINED:
            message = f"names of WITH and views stand for more than {MAXIMUM_INLINED} queries"
            raise too_complex(message, span=span)

    def new_column(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column:
        self.next_column += 1
        return Column(self.next_column - 1, name, type_, nullable)

    def column_of(self, definition: ColumnDefinition) -> Column:
        return self.new_column(definition.name, definition.type, nullable=definition.nullable)

    def find_map(self, name: str, schema: str | None, span: Span | None) -> MapDefinition:
        path = self.search_path if schema is None else (schema,)
        found = self.catalog.find_map(name, path)
        if found is None:
            written = name if schema is None else f"{schema}.{name}"
            known = [definition.name for definition in self.catalog.maps.values()]
            known += [view.name for view in self.catalog.views.values()]
            hint = nearest(name, known) or table_hint(name, schema)
            raise not_found(f"unknown table: {written}", span=span, suggestion=hint)
        return found

    def find_version(self, name: str, schema: str | None, moment: int | datetime, span: Span | None) -> MapDefinition:
        """Return the map of a version.

        The plan serves this execution only: a version ends, and a moment may come to mean another one.
        """
        history = self.catalog.history
        if history is None:
            raise not_supported("versions need a folder", span=span)
        self.reads_catalog = True
        try:
            catalog = history.at(moment)
        except SqlError as error:
            raise error.restated(span=span) from error
        path = self.search_path if schema is None else (schema,)
        found = catalog.find_map(name, path)
        if found is None:
            if self.find_view(name, schema) is not None:
                message = f"{name} is a view: only tables have versions"
                raise wrong_object(message, span=span, suggestion="Name the version in the query of the view.")
            known = [definition.name for definition in catalog.maps.values()]
            raise not_found(
                f"version {catalog.version} has no table {name}", span=span, suggestion=nearest(name, known)
            )
        return found

    def find_target(self, name: str, schema: str | None, span: Span | None) -> MapDefinition:
        """Return the map that a statement changes; refuse a view."""
        if self.find_view(name, schema) is not None:
            raise wrong_object(f"{name} is a view: only tables can be changed", span=span)
        return self.find_map(name, schema, span)

    def find_view(self, name: str, schema: str | None) -> ViewDefinition | None:
        return self.catalog.find_view(name, self.search_path if schema is None else (schema,))

    def parameter(self, written: str, expected: SqlType | None) -> Expression:
        """Return the parameter that a placeholder means, with the type that its first use gives it."""
        index = self.parameters.index_of(written)
        if index in self.values:
            return literal_of(self.values[index], self.parameters.spans[index])
        known = self.parameter_types[index]
        if known.kind is Kind.NULL and expected is not None and expected.kind is not Kind.NULL:
            known = self.parameter_types[index] = expected
        return Parameter(index, known, span=self.parameters.spans[index], expected=self._expected(index, known))

    def clock(self) -> Parameter:
        """Return the instant at which the statement begins: a parameter behind those of the user."""
        self.reads_clock = True
        index = len(self.parameters)
        return Parameter(index, TIMESTAMP_TZ, clock=True, expected=self._expected(index, TIMESTAMP_TZ))

    def _expected(self, index: int, type_: SqlType) -> Literal | None:
        return Literal(self.expected[index], type_) if index < len(self.expected) else None


def literal_of(value: Any, span: Span | None) -> Literal:
    """Return a value that was given for a parameter as a literal of its own type."""
    try:
        natural = type_of_value(value)
        return Literal(to_stored(natural, value), natural)
    except SqlError as error:
        raise error.restated(span=span) from error
