"""`information_schema`: the catalog as tables. Their rows are written into the plan, so such plans are never kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import SqlError, nearest, not_found
from remuda.expr import Literal
from remuda.plan import logical
from remuda.sql.bind.ctes import bind_view
from remuda.types import BIGINT, VARCHAR, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.errors import Span
    from remuda.sql.bind.bind_context import BindContext
    from remuda.types import SqlType

SCHEMA = "information_schema"
CATALOG = "remuda"
Row = tuple[Any, ...]


def bind_information(binding: BindContext, name: str, schema: str | None, span: Span | None) -> logical.Values | None:
    """Return the `information_schema` table of that name, or None."""
    if schema is None or schema.casefold() != SCHEMA:
        return None
    table = _TABLES.get(name.casefold())
    if table is None:
        hint = nearest(name, _TABLES)
        raise not_found(f"unknown table: {SCHEMA}.{name}", span=span, suggestion=hint)
    binding.reads_catalog = True
    described, rows = table
    columns = tuple(binding.new_column(title, type_) for title, type_ in described)
    values = tuple(
        tuple(Literal(value, column.type) for value, column in zip(row, columns, strict=True)) for row in rows(binding)
    )
    return logical.Values(columns, values)


def _schemata(binding: BindContext) -> Iterator[Row]:
    for schema in _schemas(binding):
        yield CATALOG, schema


def _schemas(binding: BindContext) -> list[str]:
    named = {binding.search_path[-1], *(schema for schema, _ in (*binding.catalog.maps, *binding.catalog.views))}
    return sorted({*named, SCHEMA})


def _tables(binding: BindContext) -> Iterator[Row]:
    for definition in binding.catalog.maps.values():
        yield CATALOG, definition.schema, definition.name, "BASE TABLE"
    for view in binding.catalog.views.values():
        yield CATALOG, view.schema, view.name, "VIEW"
    for name in _TABLES:
        yield CATALOG, SCHEMA, name, "VIEW"


def _columns(binding: BindContext) -> Iterator[Row]:
    for definition in binding.catalog.maps.values():
        for ordinal, column in enumerate(definition.visible_columns, 1):
            described = _column(definition.schema, definition.name, column.name, ordinal, column.type, column.nullable)
            yield (*described, column.length)
    for view in binding.catalog.views.values():
        try:
            columns = bind_view(binding, view, None).columns
        except SqlError:
            continue  # what it reads is gone: it has no columns now
        for ordinal, each in enumerate(columns, 1):
            yield (*_column(view.schema, view.name, each.name, ordinal, each.type, each.nullable), None)


def _column(schema: str, table: str, name: str, ordinal: int, type_: SqlType, nullable: bool) -> Row:
    is_decimal = type_.kind is Kind.DECIMAL
    precision, scale = (type_.precision, type_.scale) if is_decimal else (None, None)
    return CATALOG, schema, table, name, ordinal, str(type_), "YES" if nullable else "NO", precision, scale


def _views(binding: BindContext) -> Iterator[Row]:
    for view in binding.catalog.views.values():
        yield CATALOG, view.schema, view.name, view.text


def _indexes(binding: BindContext) -> Iterator[Row]:
    for definition in binding.catalog.maps.values():
        for index in definition.indexes:
            for ordinal, column in enumerate(index.columns, 1):
                yield CATALOG, definition.schema, definition.name, index.name, index.type.value, column, ordinal


def _key_columns(binding: BindContext) -> Iterator[Row]:
    for definition in binding.catalog.maps.values():
        for ordinal, column in enumerate(definition.key, 1):
            yield CATALOG, definition.schema, definition.name, f"{definition.name}_key", column, ordinal


def _described(*names: str, numbers: tuple[str, ...] = ()) -> tuple[tuple[str, SqlType], ...]:
    return tuple((name, BIGINT if name in numbers else VARCHAR) for name in names)


_TABLES: dict[str, tuple[tuple[tuple[str, SqlType], ...], Callable[[BindContext], Iterator[Row]]]] = {
    "schemata": (_described("catalog_name", "schema_name"), _schemata),
    "tables": (_described("table_catalog", "table_schema", "table_name", "table_type"), _tables),
    "columns": (
        _described(
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "data_type",
            "is_nullable",
            "numeric_precision",
            "numeric_scale",
            "character_maximum_length",
            numbers=("ordinal_position", "numeric_precision", "numeric_scale", "character_maximum_length"),
        ),
        _columns,
    ),
    "views": (_described("table_catalog", "table_schema", "table_name", "view_definition"), _views),
    "indexes": (
        _described(
            "table_catalog",
            "table_schema",
            "table_name",
            "index_name",
            "index_type",
            "column_name",
            "ordinal_position",
            numbers=("ordinal_position",),
        ),
        _indexes,
    ),
    "key_column_usage": (
        _described(
            "table_catalog",
            "table_schema",
            "table_name",
            "constraint_name",
            "column_name",
            "ordinal_position",
            numbers=("ordinal_position",),
        ),
        _key_columns,
    ),
}
