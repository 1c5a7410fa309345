"""Views: a stored query in the place of its name, bound in the schemas that it was created in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.errors import SqlError, parsing_error
from remuda.plan import logical
from remuda.plan.logical import Assignment, LogicalNode
from remuda.sql.scope import QueryLevel
from remuda.sql.subqueries import relation_of

if TYPE_CHECKING:
    from remuda.catalog import ViewDefinition
    from remuda.errors import Span
    from remuda.expr import Column
    from remuda.sql.binding import Binding


def bind_view(binding: Binding, view: ViewDefinition, span: Span | None) -> tuple[LogicalNode, tuple[Column, ...]]:
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
    renamed = tuple(
        Assignment(binding.new_column(name, column.type, nullable=column.nullable), column)
        for name, column in zip(titles, query.columns, strict=True)
    )
    project = logical.Project(relation_of(query), renamed)
    return project, project.columns
