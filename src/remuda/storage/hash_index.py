"""The HASH index of a segment: positions grouped by value, and a table from a value's hash to its group.

    positions  [4 9 | 0 | 2 3 7]      starts  [0 2 3 6]      table: hash of the value -> group + 1

A group is verified at its first row alone, because all its rows are equal: rows of one hash that differ (VARBINARY
X'FF' and NULL do, by construction) are split into groups when the index is built. NULL is a value here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from xxhash import xxh64_intdigest

from remuda.storage.arrow_arrays import code_values, fixed_values, is_dictionary, is_fixed_width, null_mask
from remuda.storage.column_hash import hash_columns
from remuda.storage.key_index import build_table, prober
from remuda.storage.partition_hash import SEED, hashed_bytes
from remuda.storage.row_order import stable_order
from remuda.storage.sorted_index import sort_keys
from remuda.storage.value_order import hashable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.storage.column_reader import ColumnReader
    from remuda.storage.conditions import Lookup
    from remuda.types import SqlType

_NULL_BYTES = b"\xff"
"""What `hash_columns` hashes for NULL where NULL is a value."""


class HashIndex:
    """Open: ready for lookups over the readers of its columns."""

    __slots__ = ("_hash", "_probe", "_starts", "positions")

    def __init__(
        self, arrays: dict[str, np.ndarray], readers: Sequence[ColumnReader], types: Sequence[SqlType]
    ) -> None:
        self.positions = arrays["positions"]
        self._starts = memoryview(arrays["starts"])
        self._hash = value_hasher(types)
        groups = len(arrays["starts"]) - 1
        self._probe = prober(arrays["table"], groups, None, _group_reader(arrays, readers))

    def span(self, lookup: Lookup) -> tuple[int, int]:
        """Where in `positions` the matches stand. Positions ascend."""
        assert lookup.range is None, "a HASH index serves equalities"
        wanted = tuple(hashable(value) for value in lookup.prefix)
        group = self._probe(wanted, self._hash(wanted))
        return (0, 0) if group < 0 else (self._starts[group], self._starts[group + 1])


def build_hash_index(columns: Sequence[pa.Array], types: Sequence[SqlType]) -> dict[str, np.ndarray]:
    """The arrays of the index, from flat columns of one segment."""
    hashes = hash_columns(columns, types, null_is_value=True).view(np.uint64)
    order = stable_order(hashes)
    hashes = hashes.take(order)
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = hashes[1:] != hashes[:-1]
    if not all(
        _same_within_groups(column, sql_type, order, fresh) for column, sql_type in zip(columns, types, strict=True)
    ):
        order, fresh = _split_by_value(columns, types, hashes, order)
    starts = np.flatnonzero(fresh)
    table = build_table(hashes.take(starts), np.arange(1, len(starts) + 1, dtype=np.uint32))
    return {
        "positions": order.astype(np.uint32),
        "starts": np.append(starts, len(order)).astype(np.uint32),
        "table": table,
    }


def value_hasher(types: Sequence[SqlType]) -> Callable[[tuple[Any, ...]], int]:
    """The unsigned hash of values in stored form, NULLs among them."""
    encoders = tuple(hashed_bytes(sql_type) for sql_type in types)

    def hash_of(values: tuple[Any, ...]) -> int:
        seed = SEED
        for encode, value in zip(encoders, values, strict=True):
            seed = xxh64_intdigest(_NULL_BYTES if value is None else encode(value), seed)
        return seed

    return hash_of


def _group_reader(arrays: dict[str, np.ndarray], readers: Sequence[ColumnReader]) -> Callable[[int], tuple[Any, ...]]:
    starts, positions = memoryview(arrays["starts"]), memoryview(arrays["positions"])
    values = tuple(reader.value for reader in readers)

    def value_of_group(group: int) -> tuple[Any, ...]:
        position = positions[starts[group]]
        return tuple([hashable(value(position)) for value in values])

    return value_of_group


def _same_within_groups(column: pa.Array, sql_type: SqlType, order: np.ndarray, fresh: np.ndarray) -> bool:
    """Whether each row equals the row before it, wherever the two share a hash."""
    later = np.flatnonzero(~fresh)
    if len(later) == 0:
        return True
    nulls = null_mask(column)
    if is_dictionary(column):
        values = code_values(column)
    elif is_fixed_width(sql_type):
        values = fixed_values(column, sql_type)
        values = np.where(np.isnan(values), np.inf, values) if sql_type.is_floating else values
    else:
        # Mostly distinct strings and long decimals: few rows share a group, so few are compared.
        left, right = column.take(pa.array(order[later])), column.take(pa.array(order[later - 1]))
        return bool(left.equals(right))
    if nulls is not None:
        if not np.array_equal(nulls[order[later]], nulls[order[later - 1]]):
            return False
        later = later[~nulls[order[later]]]
    return bool(np.array_equal(values[order[later]], values[order[later - 1]]))


def _split_by_value(
    columns: Sequence[pa.Array], types: Sequence[SqlType], hashes: np.ndarray, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The order by hash and then by value, and where a new value begins."""
    keys = [sort_keys(column, sql_type)[order] for column, sql_type in zip(columns, types, strict=True)]
    within = np.lexsort((*keys, hashes))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = False
    for part in (hashes, *keys):
        fresh[1:] |= part[within][1:] != part[within][:-1]
    return order[within], fresh
