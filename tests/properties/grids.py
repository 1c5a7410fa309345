"""A random map in a real grid, filled in the ways in which maps are filled, with the model beside it."""

from __future__ import annotations

import datetime as dt
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import remuda

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.properties.schemas import Row, Schema

MAP = "data"

ARROW_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
}


@contextmanager
def grid_of(schema: Schema, loaded: Sequence[Row], inserted: Sequence[Row], members: int) -> Iterator[Any]:
    """The first rows come in bulk, half of the indexes are made on them; the others come one by one, into the log."""
    with remuda.open(members=members) as grid:
        grid.sql(schema.create(MAP))
        half = len(schema.indexes) // 2
        for index in schema.indexes[:half]:
            grid.sql(index.create(MAP))
        if loaded:
            grid.load(MAP, table_of(schema, loaded))
        for index in schema.indexes[half:]:
            grid.sql(index.create(MAP))
        marks = ", ".join("?" for _ in schema.columns)
        for row in inserted:
            assert grid.sql(f"INSERT INTO {MAP} VALUES ({marks})", *row).update_count == 1
        yield grid


def table_of(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    columns = {
        column.name: pa.array([row[at] for row in rows], ARROW_TYPES[column.type])
        for at, column in enumerate(schema.columns)
    }
    return pa.table(columns)


def canonical(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows as a sorted list in which NaN equals itself and 0.0 equals -0.0; every value with its type."""
    return sorted(tuple(_canonical_value(value) for value in row) for row in rows)


def _canonical_value(value: Any) -> tuple[str, str]:
    match value:
        case float() if math.isnan(value):
            return "float", "nan"
        case float():
            return "float", repr(value + 0.0)
        case dt.date() | str() | int() | None:
            return type(value).__name__, str(value)
        case _:
            raise TypeError(f"{value!r} is not of a type that the schemas have")
