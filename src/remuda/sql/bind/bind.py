"""The binder's face: from a parsed query to a logical plan in which every name is resolved and every type known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import SqlError, nested_too_deeply, parsing_error
from remuda.plan import logical
from remuda.sql.bind.bind_context import BindContext
from remuda.sql.bind.expression.expression import untyped
from remuda.sql.bind.modify.modify import bind_delete, bind_insert, bind_update
from remuda.sql.bind.query import bind_query
from remuda.sql.bind.scope import QueryLevel
from remuda.sql.parse.parse import parse
from remuda.sql.parse.spans import span_of
from remuda.sql.parse.statements import Query
from remuda.types import TIMESTAMP_TZ, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.catalog import Catalog, MapDefinition, SearchPath, ViewDefinition
    from remuda.errors import Span
    from remuda.types import SqlType


@dataclass(frozen=True, slots=True)
class BoundQuery:
    tree: logical.Root
    parameters: tuple[SqlType, ...]
    parameter_names: tuple[str, ...]
    next_column: int
    """The first column id that the planner may use for columns of its own."""
    modifies: MapDefinition | None
    reads_clock: bool = False
    """Whether the last of `parameters` is the instant at which the statement begins."""
    views: tuple[ViewDefinition, ...] = ()
    """The views that it reads: a plan of it is stale when one of them changes."""
    cacheable: bool = True
    """False where its rows are what the catalog says now."""


def bind(
    query: Query,
    catalog: Catalog,
    search_path: SearchPath,
    values: Mapping[int, Any] | None = None,
    expected: tuple[Any, ...] = (),
) -> BoundQuery:
    """Bind a statement; `values` are parameters bound as literals, as their column's type cannot hold them.

    `expected` has the stored values of all parameters for which the plan shall be a good one.
    """
    context = BindContext(catalog, search_path, query.parameters, dict(values or {}), bind_query, parse_view, expected)
    try:
        return _bind(query, context)
    except SqlError as error:
        error.span = error.span or query.span
        raise
    except RecursionError:
        raise nested_too_deeply(query.span) from None


def _bind(query: Query, binding: BindContext) -> BoundQuery:
    tree = query.tree
    modifies: MapDefinition | None = None
    match tree:
        case exp.Insert():
            root = bind_insert(binding, tree, upsert=query.upsert)
        case exp.Update():
            root = bind_update(binding, tree)
        case exp.Delete():
            root = bind_delete(binding, tree)
        case exp.Subquery() if tree.args.get("alias") is not None:
            raise parsing_error("a query has no alias", span=span_of(tree.args["alias"]))
        case _:
            root = bind_query(binding, tree, QueryLevel())
    if isinstance(root.input, logical.Modify):
        modifies = root.input.map
    return BoundQuery(
        root,
        _parameter_types(binding),
        tuple(query.parameters.names),
        binding.next_column,
        modifies,
        binding.reads_clock,
        tuple(binding.views.values()),
        cacheable=not binding.reads_catalog,
    )


def parse_view(view: ViewDefinition, span: Span | None) -> exp.Expression:
    """Parse the query of a view; the statement's mention of the view is shown for every error in it."""
    query = parse(view.text)
    assert isinstance(query, Query), "it was one when the view was created"
    for node in query.tree.walk():
        meta = node.meta
        meta.pop("start", None)
        meta.pop("end", None)
        if span is not None:
            meta.update(start=span.start, end=span.end - 1)
    return query.tree


def _parameter_types(binding: BindContext) -> tuple[SqlType, ...]:
    unknown = [
        index
        for index, type_ in enumerate(binding.parameter_types)
        if type_.kind is Kind.NULL and index not in binding.values
    ]
    if unknown:
        error = untyped(binding.parameters.spans[unknown[0]])
        error.numbers = tuple(unknown)
        raise error
    return (*binding.parameter_types, *((TIMESTAMP_TZ,) if binding.reads_clock else ()))
