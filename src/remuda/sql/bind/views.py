"""Views: a stored query in the place of its name, bound in the schemas that it was created in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.errors import SqlError, parsing_error
from remuda.sql.bind.expression.subqueries import NamedRelation, named_relation
from remuda.sql.bind.scope import QueryLevel

if TYPE_CHECKING:
    from remuda.catalog import ViewDefinition
    from remuda.errors import Span
    from remuda.sql.bind.binding import Binding


def bind_view(binding: Binding, view: ViewDefinition, span: Span | None) -> NamedRelation:
    """The rows of a view. What is wrong in its text now (a map is gone) is told at the place that names the view."""
    if view in binding.within_views:
        raise parsing_error(f"the view {view.name} is made of itself", span=span)
    binding.count_inlined(span)
    binding.views[view.id] = view
    path = binding.search_path
    binding.search_path = view.search_path
    binding.within_views.append(view)
    try:
        query = binding.bind_query(binding, binding.parse_view(view, span), QueryLevel(), ())
    except SqlError as error:
        raise SqlError(error.code, f"in the view {view.name}: {error.message}", span=span) from error
    finally:
        binding.within_views.pop()
        binding.search_path = path
    titles = [*view.columns, *query.names[len(view.columns) :]]
    if len(titles) > len(query.columns):
        message = f"the view {view.name} names {len(view.columns)} columns, its query has {len(query.columns)} now"
        raise parsing_error(message, span=span)
    return named_relation(binding, query, titles)
