"""The maps that the statements of these tests talk about."""

from __future__ import annotations

from remuda.catalog import DEFAULT_SCHEMA, Catalog, ColumnDefinition, MapDefinition
from remuda.sql import BoundQuery, Query, bind, parse
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    VARBINARY,
    VARCHAR,
    SqlType,
    decimal,
)


def define(name: str, key: tuple[str, ...], columns: dict[str, SqlType], *, hidden: str | None = None) -> MapDefinition:
    definitions = tuple(
        ColumnDefinition(column, type_, nullable=column not in key, hidden=column == hidden)
        for column, type_ in columns.items()
    )
    return MapDefinition(f"id of {name}", DEFAULT_SCHEMA, name, definitions, key, key, partitions=271)


ORDERS = define(
    "orders",
    ("id",),
    {
        "id": BIGINT,
        "customer": VARCHAR,
        "status": VARCHAR,
        "amount": DOUBLE,
        "quantity": INTEGER,
        "paid": BOOLEAN,
        "created": TIMESTAMP,
    },
)
LINES = define("lines", ("order_id", "line"), {"order_id": BIGINT, "line": INTEGER, "price": decimal(10, 2)})
EVENTS = define("events", ("__key",), {"__key": BIGINT, "what": VARCHAR, "day": DATE}, hidden="__key")
ODDS = define(
    "odds",
    ("code",),
    {"code": SMALLINT, "share": REAL, "raw": VARBINARY, "Mixed Case": INTEGER},
)

CATALOG = Catalog().with_map(ORDERS).with_map(LINES).with_map(EVENTS).with_map(ODDS)


def bound(text: str, catalog: Catalog = CATALOG) -> BoundQuery:
    statement = parse(text)
    assert isinstance(statement, Query)
    return bind(statement, catalog, (DEFAULT_SCHEMA,))
