"""Definitions and contents of maps for the tests of storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from remuda.catalog import ColumnDefinition, IndexDefinition, IndexType, MapDefinition, new_id
from remuda.storage import MapSnapshot
from remuda.types import BIGINT, DOUBLE, VARCHAR, SqlType
from remuda.types.arrow_arrays import stored_array, stored_list
from remuda.types.normalized_key import comparable


def map_of(
    columns: Sequence[tuple[str, SqlType]],
    key: tuple[str, ...] = ("id",),
    *,
    indexes: Sequence[IndexDefinition] = (),
    partitions: int = 7,
    partitioned_by: tuple[str, ...] | None = None,
) -> MapDefinition:
    defined = tuple(ColumnDefinition(name, sql_type, nullable=name not in key) for name, sql_type in columns)
    return MapDefinition(
        new_id(), "public", "orders", defined, key, partitioned_by or key, partitions, indexes=tuple(indexes)
    )


def index_on(*columns: str, type_: IndexType = IndexType.SORTED) -> IndexDefinition:
    return IndexDefinition(new_id(), "_".join((*columns, type_.value)), columns, type_)


ORDERS = (("id", BIGINT), ("customer", VARCHAR), ("amount", DOUBLE))


def orders_map(**options: Any) -> MapDefinition:
    """A key, a string and a number, with a HASH index on the one and a SORTED index on the other."""
    indexes = (index_on("customer", type_=IndexType.HASH), index_on("amount"))
    return map_of(ORDERS, indexes=indexes, **options)


def table_of(definition: MapDefinition, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    arrays = [
        stored_array([row[number] for row in rows], column.type) for number, column in enumerate(definition.columns)
    ]
    return pa.table(arrays, names=[column.name for column in definition.columns])


def contents(snapshot: MapSnapshot, partitions: np.ndarray | None = None) -> list[tuple[Any, ...]]:
    """All rows of a snapshot as its sources give them, in order of their values."""
    columns = snapshot.definition.columns
    names = [column.name for column in columns]
    rows: list[tuple[Any, ...]] = []
    for source in snapshot.sources:
        for start, stop in source.ranges(partitions):
            batch = source.read(names, start, stop)
            lists = [stored_list(array, column.type) for array, column in zip(batch.columns, columns, strict=True)]
            rows += zip(*lists, strict=True)
    return in_order(rows)


def in_order(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [comparable(value) for value in row])


def same(left: Sequence[tuple[Any, ...]], right: Sequence[tuple[Any, ...]]) -> bool:
    """Equality in which NaN equals itself."""
    return [[comparable(value) for value in row] for row in left] == [
        [comparable(value) for value in row] for row in right
    ]
