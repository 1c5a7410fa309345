"""CREATE VIEW and DROP VIEW. A view is checked when it is created, and again, by being bound, whenever it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda import sql
from remuda.catalog import SearchPath, ViewDefinition, new_id
from remuda.errors import ErrorCode, SqlError, nearest, parsing_error
from remuda.grid.statements.definitions import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage import Store


def create_view(store: Store, search_path: SearchPath, statement: sql.CreateView) -> None:
    name, schema = statement.name, schema_of(statement.name)
    if store.catalog.find_map(name.text, (schema,)) is not None:
        raise parsing_error(f"there is a table {name.text} already", span=name.span)
    present = store.catalog.find_view(name.text, (schema,))
    if present is not None and not statement.or_replace:
        if statement.if_not_exists:
            return
        raise parsing_error(f"the view {name.text} exists already", span=name.span)
    if len(statement.query.parameters):
        span = statement.query.parameters.spans[0]
        raise parsing_error("a view takes no parameters", span=span)
    titles = tuple(column.text for column in statement.columns)
    view = ViewDefinition(new_id(), schema, name.text, statement.text, search_path, titles)
    # Bound as if it were there already: then a view that is made of itself, by way of others or not, is found out.
    bound = sql.bind(statement.query, store.catalog.with_view(view), search_path)
    _check_columns(statement, bound.tree.names)
    store.create_view(view)


def _check_columns(statement: sql.CreateView, names: Sequence[str]) -> None:
    given = statement.columns
    if len(given) > len(names):
        message = f"the query has {len(names)} columns, {len(given)} names are given"
        raise parsing_error(message, span=given[len(names)].span)
    seen: set[str] = set()
    for place, title in enumerate([*(column.text for column in given), *names[len(given) :]]):
        if title.casefold() in seen:
            span = given[place].span if place < len(given) else statement.name.span
            raise parsing_error(f"the view would have two columns {title}", span=span)
        seen.add(title.casefold())


def drop_view(store: Store, search_path: SearchPath, statement: sql.DropView) -> None:
    name = statement.name
    path = search_path if name.schema is None else (name.schema,)
    found = store.catalog.find_view(name.text, path)
    if found is not None:
        store.drop_view(found)
        return
    if store.catalog.find_map(name.text, path) is not None:
        raise parsing_error(f"{name.text} is a table", span=name.span, suggestion=f"Use DROP TABLE {name.text}.")
    if not statement.if_exists:
        hint = nearest(name.text, [view.name for view in store.catalog.views.values()])
        raise SqlError(ErrorCode.OBJECT_NOT_FOUND, f"unknown view: {name.text}", span=name.span, suggestion=hint)
