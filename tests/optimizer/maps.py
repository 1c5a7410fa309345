"""The map that these tests filter, and a query on it planned without a grid: nothing here reads data."""

from __future__ import annotations

from typing import Any

from remuda.catalog import (
    DEFAULT_SCHEMA,
    Catalog,
    ColumnDefinition,
    ColumnStatistics,
    IndexDefinition,
    IndexType,
    MapDefinition,
    MapStatistics,
)
from remuda.expr import Expression
from remuda.optimizer import Optimized, OptimizerSettings, optimize
from remuda.plan import logical
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.rules.normalize.normalize import normalize
from remuda.rules.normalize.trim import trim_columns
from remuda.sql import BoundQuery, Query, bind, parse
from remuda.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, VARCHAR, SqlType

COLUMNS: dict[str, SqlType] = {
    "id": BIGINT,
    "a": INTEGER,
    "b": INTEGER,
    "c": INTEGER,
    "f": INTEGER,
    "g": INTEGER,
    "x": DOUBLE,
    "s": VARCHAR,
    "flag": BOOLEAN,
    "day": DATE,
}


def index(text: str) -> IndexDefinition:
    """`SORTED(a, b)` as a definition, called the same."""
    kind, _, columns = text.rstrip(")").partition("(")
    return IndexDefinition(f"id of {text}", text, tuple(columns.split(", ")), IndexType[kind])


def define(
    *indexes: str, key: tuple[str, ...] = ("id",), partitioned_by: tuple[str, ...] = (), **changes: Any
) -> MapDefinition:
    columns = tuple(ColumnDefinition(name, type_, nullable=name not in key) for name, type_ in COLUMNS.items())
    return MapDefinition(
        "id of m",
        DEFAULT_SCHEMA,
        "m",
        columns,
        key,
        partitioned_by or key,
        partitions=271,
        indexes=tuple(map(index, indexes)),
        **changes,
    )


def bound(text: str, definition: MapDefinition, values: dict[int, Any] | None = None) -> BoundQuery:
    query = parse(text)
    assert isinstance(query, Query)
    return bind(query, Catalog().with_map(definition), (DEFAULT_SCHEMA,), values)


def scan_of(text: str, definition: MapDefinition) -> logical.Scan:
    """The only scan of a query, when all filters have sunk into it."""
    tree = normalize(trim_columns(bound(text, definition).tree))
    (scan,) = (node for node in walk(tree) if isinstance(node, logical.Scan))
    return scan


def filter_of(condition: str, definition: MapDefinition) -> Expression | None:
    return scan_of(f"SELECT * FROM m WHERE {condition}", definition).filter


STATISTICS = MapStatistics(
    rows=1_000_000,
    columns={
        "id": ColumnStatistics(distinct=1_000_000, minimum=0, maximum=999_999),
        "a": ColumnStatistics(distinct=100_000, minimum=0, maximum=99_999),
        "b": ColumnStatistics(distinct=50_000, minimum=0, maximum=49_999),
        "g": ColumnStatistics(distinct=5, minimum=0, maximum=4),
        "x": ColumnStatistics(distinct=900_000, minimum=0.0, maximum=1_000.0),
    },
)


def plan(
    text: str,
    definition: MapDefinition,
    *,
    members: int = 1,
    conventions: tuple[Convention, ...] = (Convention.LOCAL,),
    statistics: MapStatistics = STATISTICS,
    disabled: frozenset[str] = frozenset(),
) -> Optimized:
    query = bound(text, definition)
    settings = OptimizerSettings(members, conventions, disabled, checked=True)
    return optimize(query.tree, query.next_column, lambda _: statistics, settings)
