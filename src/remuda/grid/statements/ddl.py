"""CREATE, DROP and TRUNCATE: statements that change the catalog or a whole map."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda import sql
from remuda.catalog import (
    DEFAULT_SCHEMA,
    ColumnDefinition,
    IndexDefinition,
    MapDefinition,
    ViewDefinition,
    new_id,
)
from remuda.catalog.definitions import GENERATED_KEY
from remuda.errors import (
    bad_definition,
    column_twice,
    nearest,
    nearest_column,
    not_found,
    not_supported,
    object_exists,
    table_exists,
    unknown_column,
    unknown_index,
    unknown_schema,
    wrong_object,
)
from remuda.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.grid.query_run import Call
    from remuda.grid.session import Session
    from remuda.sql.parse.statements import Name
    from remuda.storage import Store


def create_map(call: Call, statement: sql.CreateMap) -> None:
    store, schema = call.session.store, schema_of(statement.name)
    allowed = statement.if_not_exists or statement.or_replace
    if is_there(store, statement.name, schema, allowed=allowed) and not statement.or_replace:
        return
    store.create_map(map_definition(statement, schema, store.partitions), replaces=statement.or_replace)


def schema_of(name: Name) -> str:
    """Return the schema in which a definition of that name is created."""
    schema = name.schema or DEFAULT_SCHEMA
    if schema.casefold() != DEFAULT_SCHEMA:
        raise unknown_schema(f"unknown schema: {schema}", span=name.span)
    return schema


def is_there(store: Store, name: Name, schema: str, *, allowed: bool) -> bool:
    """Test whether a table of that name exists; raise unless that is allowed, and always for a view."""
    if store.catalog.find_view(name.text, (schema,)) is not None:
        raise table_exists(f"there is a view {name.text} already", span=name.span)
    if store.catalog.find_map(name.text, (schema,)) is None:
        return False
    if not allowed:
        hint = "Use CREATE TABLE IF NOT EXISTS, or CREATE OR REPLACE TABLE."
        raise table_exists(f"the table {name.text} exists already", span=name.span, suggestion=hint)
    return True


def map_definition(statement: sql.CreateMap, schema: str, partitions: int) -> MapDefinition:
    columns = statement.columns
    key = tuple(_column_named(columns, name).name for name in statement.key)
    if not key:
        if any(column.name.casefold() == GENERATED_KEY for column in columns):
            raise bad_definition(f"{GENERATED_KEY} is the name of the key", span=statement.name.span)
        columns = (*columns, ColumnDefinition(GENERATED_KEY, BIGINT, nullable=False, hidden=True))
        key = (GENERATED_KEY,)
    if len(set(key)) < len(key):
        raise column_twice("a column is in the PRIMARY KEY twice", span=statement.key[0].span)
    partitioned_by = tuple(_partitioning_column(columns, key, name) for name in statement.partitioned_by) or key
    return MapDefinition(
        new_id(),
        schema,
        statement.name.text,
        tuple(replace(column, nullable=column.nullable and column.name not in key) for column in columns),
        key,
        partitioned_by,
        statement.options.partitions or partitions,
        statement.replicated,
        retention=statement.options.retention,
        compression=statement.options.compression,
    )


def _column_named(columns: tuple[ColumnDefinition, ...], name: Name) -> ColumnDefinition:
    folded = name.text.casefold()
    found = next((column for column in columns if column.name.casefold() == folded), None)
    if found is None:
        hint = nearest_column(name.text, [column.name for column in columns])
        raise unknown_column(f"unknown column: {name.text}", span=name.span, suggestion=hint)
    return found


def _partitioning_column(columns: tuple[ColumnDefinition, ...], key: tuple[str, ...], name: Name) -> str:
    column = _column_named(columns, name)
    if column.name not in key:
        raise bad_definition(f"the partitioning column {column.name} is not in the key", span=name.span)
    return column.name


def find_map(session: Session, name: Name) -> MapDefinition:
    catalog = session.store.catalog
    found = catalog.find_map(name.text, session.search_path if name.schema is None else (name.schema,))
    if found is None:
        hint = nearest(name.text, [definition.name for definition in catalog.maps.values()])
        raise not_found(f"unknown table: {name.text}", span=name.span, suggestion=hint)
    return found


def maps_named(session: Session, name: Name | None) -> list[MapDefinition]:
    """Return the map of this name; without one, all maps."""
    return list(session.store.catalog.maps.values()) if name is None else [find_map(session, name)]


def truncate(call: Call, statement: sql.Truncate) -> int:
    session = call.session
    return session.store.map(find_map(session, statement.name)).truncate()


def drop_map(call: Call, statement: sql.DropMap) -> None:
    session = call.session
    store, search_path = session.store, session.search_path
    if store.catalog.find_view(statement.name.text, search_path) is not None:
        name = statement.name
        raise wrong_object(f"{name.text} is a view", span=name.span, suggestion=f"Use DROP VIEW {name.text}.")
    if statement.if_exists and store.catalog.find_map(statement.name.text, search_path) is None:
        return
    store.drop_map(find_map(session, statement.name))


def create_index(call: Call, statement: sql.CreateIndex) -> None:
    session = call.session
    store, search_path = session.store, session.search_path
    definition = find_map(session, statement.map)
    if store.catalog.find_index(statement.name.text, search_path) is not None:
        if statement.if_not_exists:
            return
        raise object_exists(f"the index {statement.name.text} exists already", span=statement.name.span)
    columns = tuple(_column_named(definition.columns, name).name for name in statement.columns)
    if len(set(columns)) < len(columns):
        raise column_twice("a column is in the index twice", span=statement.columns[0].span)
    index = IndexDefinition(new_id(), statement.name.text, columns, statement.type)
    store.create_index(definition, index, call.token)


def drop_index(call: Call, statement: sql.DropIndex) -> None:
    store = call.session.store
    found = store.catalog.find_index(statement.name.text, call.session.search_path)
    if found is None:
        if statement.if_exists:
            return
        names = [index.name for definition in store.catalog.maps.values() for index in definition.indexes]
        hint = nearest(statement.name.text, names)
        message = f"unknown index: {statement.name.text}"
        raise unknown_index(message, span=statement.name.span, suggestion=hint)
    store.drop_index(*found)


def create_view(call: Call, statement: sql.CreateView) -> None:
    """Check the view and add it; whenever it is used it is checked again, by being bound."""
    store, search_path = call.session.store, call.session.search_path
    name, schema = statement.name, schema_of(statement.name)
    if store.catalog.find_map(name.text, (schema,)) is not None:
        raise table_exists(f"there is a table {name.text} already", span=name.span)
    present = store.catalog.find_view(name.text, (schema,))
    if present is not None and not statement.or_replace:
        if statement.if_not_exists:
            return
        raise table_exists(f"the view {name.text} exists already", span=name.span)
    if len(statement.query.parameters):
        span = statement.query.parameters.spans[0]
        raise not_supported("a view takes no parameters", span=span)
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
        raise bad_definition(message, span=given[len(names)].span)
    seen: set[str] = set()
    for ordinal, title in enumerate([*(column.text for column in given), *names[len(given) :]]):
        if title.casefold() in seen:
            span = given[ordinal].span if ordinal < len(given) else statement.name.span
            raise column_twice(f"the view would have two columns {title}", span=span)
        seen.add(title.casefold())


def drop_view(call: Call, statement: sql.DropView) -> None:
    store, name = call.session.store, statement.name
    path = call.session.search_path if name.schema is None else (name.schema,)
    found = store.catalog.find_view(name.text, path)
    if found is not None:
        store.drop_view(found)
        return
    if store.catalog.find_map(name.text, path) is not None:
        raise wrong_object(f"{name.text} is a table", span=name.span, suggestion=f"Use DROP TABLE {name.text}.")
    if not statement.if_exists:
        hint = nearest(name.text, [view.name for view in store.catalog.views.values()])
        raise not_found(f"unknown view: {name.text}", span=name.span, suggestion=hint)
