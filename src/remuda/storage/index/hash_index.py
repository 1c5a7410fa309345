"""The HASH index of a segment: positions grouped by value, and a table from a value's hash to its group.

    positions  [4 9 | 0 | 2 3 7]      starts  [0 2 3 6]      table: hash of the value -> group + 1

A group is verified at its first row alone, because all its rows are equal: rows of one hash that differ (VARBINARY
X'FF' and NULL do, by construction) are split into groups when the index is built. NULL is a value here.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from xxhash import xxh64_intdigest

from remuda.storage.index.key_index import build_table, prober
from remuda.storage.index.sorted_index import sort_keys
from remuda.storage.segment.block_guard import view_of
from remuda.storage.segment.row_order import BLOCK, stable_order, taken
from remuda.types.arrow_arrays import code_values, fixed_values, is_dictionary, is_fixed_width, null_mask
from remuda.types.column_hash import hash_columns
from remuda.types.normalized_key import hashable
from remuda.types.partition_hash import SEED, hashed_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from remuda.storage.index.index_condition import Lookup
    from remuda.storage.index.index_types import IndexedColumns
    from remuda.storage.segment.block_guard import Array
    from remuda.storage.segment.column_reader import ColumnReader
    from remuda.types import SqlType

POSITIONS = "positions"
"""The array of positions: the one that `Segment` checks in a file that is not proven."""

_NULL_BYTES = b"\xff"
"""What `hash_columns` hashes for NULL where NULL is a value."""


_COUNTED = 1 << 20
"""Rows that are counted at a time: numpy copies them as 64-bit integers."""


class HashIndex:
    """Open: ready for lookups over the readers of its columns."""

    __slots__ = ("_hash", "_probe", "_starts", "positions")

    def __init__(self, arrays: Mapping[str, Array], columns: IndexedColumns) -> None:
        self.positions = arrays[POSITIONS]
        self._starts = view_of(arrays["starts"])
        self._hash = value_hasher(columns.types)
        groups = len(arrays["starts"]) - 1
        self._probe = prober(arrays["table"], groups, None, _group_reader(arrays, columns.readers))

    def span(self, lookup: Lookup) -> tuple[int, int]:
        """Return where in `positions` the matches stand. Positions ascend."""
        assert lookup.range is None, "a HASH index serves equalities"
        values = tuple(hashable(value) for value in lookup.prefix)
        group = self._probe(values, self._hash(values))
        return (0, 0) if group < 0 else (self._starts[group], self._starts[group + 1])


class MemtableHashIndex:
    """Finds entries of a memtable by value, live or not."""

    __slots__ = ("_columns", "_entries", "_length", "_lock")

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._columns = columns
        self._entries: dict[tuple[Any, ...], list[int]] = {}
        self._length = 0
        self._lock = Lock()

    def extend(self, rows: Sequence[tuple[Any, ...] | None], length: int) -> None:
        with self._lock:
            for entry in range(self._length, length):
                row = rows[entry]
                if row is not None:
                    value = tuple([hashable(row[column]) for column in self._columns])
                    self._entries.setdefault(value, []).append(entry)
            self._length = max(self._length, length)

    def count(self, lookup: Lookup) -> int:
        return len(self._matches(lookup))

    def find(self, lookup: Lookup) -> list[int]:
        return list(self._matches(lookup))

    def pieces(self, lookup: Lookup, *, descending: bool) -> Iterator[list[int]]:  # noqa: ARG002
        raise AssertionError("a HASH index has no order")

    def _matches(self, lookup: Lookup) -> list[int]:
        assert lookup.range is None, "a HASH index serves equalities"
        return self._entries.get(tuple([hashable(value) for value in lookup.prefix]), [])


def build_hash_index(columns: Sequence[pa.Array], types: Sequence[SqlType]) -> dict[str, np.ndarray]:
    """Return the arrays of the index, from flat columns of one segment."""
    if len(columns) == 1 and is_dictionary(columns[0]):
        return _index_of_codes(columns[0], types[0])
    hashes = hash_columns(columns, types, null_is_value=True).view(np.uint64)
    order = stable_order(hashes)
    hashes = taken(hashes, order)
    fresh = np.ones(len(order), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=fresh[1:])
    if not all(
        _same_within_groups(column, sql_type, order, fresh) for column, sql_type in zip(columns, types, strict=True)
    ):
        order, fresh = _split_by_value(columns, types, hashes, order)
    starts = np.flatnonzero(fresh)
    return _arrays(order, np.append(starts, len(order)), hashes.take(starts))


def _index_of_codes(column: pa.DictionaryArray, sql_type: SqlType) -> dict[str, np.ndarray]:
    """Build the index of a dictionary column.

    Each entry of the dictionary is a group, and NULL is one more: counting takes the place of comparing.
    """
    entries = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
    hashes = hash_columns([entries], [sql_type], null_is_value=True).view(np.uint64)
    by_hash = stable_order(hashes)
    group_of = np.empty(len(entries), np.int32)
    group_of[by_hash] = np.arange(len(entries), dtype=np.int32)
    groups, nulls = taken(group_of, code_values(column)), null_mask(column)
    if nulls is not None:
        groups[nulls] = group_of[-1]
    counts = np.zeros(len(entries), np.int64)
    for start in range(0, len(groups), _COUNTED):
        counts += np.bincount(groups[start : start + _COUNTED], minlength=len(entries))
    present = np.flatnonzero(counts)
    return _arrays(
        stable_order(groups), np.concatenate([[0], np.cumsum(counts[present])]), hashes.take(by_hash.take(present))
    )


def _arrays(order: np.ndarray, starts: np.ndarray, hashes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays: `starts` has an entry more than there are groups; `hashes` are theirs, ascending."""
    return {
        POSITIONS: order.astype(np.uint32),
        "starts": starts.astype(np.uint32),
        "table": build_table(hashes, np.arange(1, len(hashes) + 1, dtype=np.uint32)),
    }


def value_hasher(types: Sequence[SqlType]) -> Callable[[tuple[Any, ...]], int]:
    """Return the unsigned hash of values in stored form, NULLs among them."""
    encoders = tuple(hashed_bytes(sql_type) for sql_type in types)

    def hash_of(values: tuple[Any, ...]) -> int:
        seed = SEED
        for encode, value in zip(encoders, values, strict=True):
            seed = xxh64_intdigest(_NULL_BYTES if value is None else encode(value), seed)
        return seed

    return hash_of


def _group_reader(arrays: Mapping[str, Array], readers: Sequence[ColumnReader]) -> Callable[[int], tuple[Any, ...]]:
    starts, positions = view_of(arrays["starts"]), view_of(arrays[POSITIONS])
    values = tuple(reader.value for reader in readers)

    def value_of_group(group: int) -> tuple[Any, ...]:
        position = positions[starts[group]]
        return tuple([hashable(value(position)) for value in values])

    return value_of_group


def _same_within_groups(column: pa.Array, sql_type: SqlType, order: np.ndarray, fresh: np.ndarray) -> bool:
    """Tell whether each row equals the row before it, wherever the two share a hash."""
    same = _comparison(column, sql_type)
    for start in range(1, len(order), BLOCK):
        later = np.flatnonzero(~fresh[start : start + BLOCK]) + start
        if len(later) and not same(order[later], order[later - 1]):
            return False
    return True


def _comparison(column: pa.Array, sql_type: SqlType) -> Callable[[np.ndarray, np.ndarray], bool]:
    """Return the function that tells whether the rows at some positions equal, one by one, those at others."""
    if not is_dictionary(column) and not is_fixed_width(sql_type):
        # Mostly distinct strings and long decimals: few rows share a group, so few are compared.
        return lambda left, right: bool(column.take(pa.array(left)).equals(column.take(pa.array(right))))
    values = code_values(column) if is_dictionary(column) else fixed_values(column, sql_type)
    nulls, floating = null_mask(column), sql_type.is_floating

    def same(left: np.ndarray, right: np.ndarray) -> bool:
        if nulls is not None:
            missing = nulls[left]
            if not np.array_equal(missing, nulls[right]):
                return False
            left, right = left[~missing], right[~missing]
        return bool(np.array_equal(values[left], values[right], equal_nan=floating))

    return same


def _split_by_value(
    columns: Sequence[pa.Array], types: Sequence[SqlType], hashes: np.ndarray, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order by hash and then by value, and where a new value begins."""
    keys = [sort_keys(column, sql_type)[order] for column, sql_type in zip(columns, types, strict=True)]
    within = np.lexsort((*keys, hashes))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = False
    for part in (hashes, *keys):
        fresh[1:] |= part[within][1:] != part[within][:-1]
    return order[within], fresh
