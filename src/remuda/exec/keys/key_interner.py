"""The interner: gives equal keys of one or several columns one dense id.

Equality is SQL's: NaN equals itself, -0.0 equals 0.0, and NULL equals itself where a column is null-safe, else nothing.
Every column is interned by itself; the ids of several columns are interned pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from remuda.exec.keys.integer_interner import NULL_ID, IntegerInterner
from remuda.exec.keys.integer_tables import NOT_FOUND
from remuda.exec.keys.text_interner import TextInterner
from remuda.types import LONG_DIGITS, Kind
from remuda.types.arrow_arrays import (
    decimal_array,
    decimal_words,
    first_present,
    is_dictionary,
    null_mask,
    null_positions,
)
from remuda.types.normalized_key import normalized_keys, values_of_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.types import SqlType


class _ColumnInterner(Protocol):
    @property
    def count(self) -> int: ...

    def intern(self, column: pa.Array, nulls: np.ndarray | None) -> np.ndarray:
        """Return the id of each value, NULL_ID for those at the positions `nulls`, in an array of the caller's own."""

    def find(self, column: pa.Array) -> np.ndarray:
        """Return the id of each value, NOT_FOUND for one without; arbitrary at a NULL."""

    def take(self, ids: np.ndarray) -> pa.Array:
        """Return the values with these ids."""


class KeyInterner:
    """Ids are below `count`. Some may belong to no row: id 0 where there is no NULL, and those of values of a
    dictionary that no row has, which `find` finds nevertheless (see `used_values`).

    By default all columns are null-safe, as in GROUP BY.
    """

    def __init__(self, types: Sequence[SqlType], null_safe: Sequence[bool] | None = None) -> None:
        self._columns = [_column_interner(sql_type) for sql_type in types]
        self._pairs = [_PairInterner() for _ in types[1:]]
        self._null_safe = [True] * len(types) if null_safe is None else list(null_safe)
        self._null_ids = [NOT_FOUND] * len(types)
        """What NULL has been interned as, for each column."""

    @property
    def count(self) -> int:
        return self._pairs[-1].count if self._pairs else self._columns[0].count

    @property
    def distinct(self) -> int:
        """How many keys have been interned."""
        return self.count - 1 + (not self._pairs and self._null_ids[0] == NULL_ID)

    @property
    def bytes(self) -> int:
        """The memory that the texts among the keys take."""
        return sum(column.bytes for column in self._columns if isinstance(column, TextInterner))

    def intern(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return the id of each row's key, adding new keys; NOT_FOUND where a NULL equals nothing."""
        columns = [_with_plain_nulls(column) for column in columns]
        present = self._rows_with_keys(columns)
        if present is not None:
            ids = np.full(len(present), NOT_FOUND, np.int32)
            ids[present] = self.intern([column.filter(pa.array(present)) for column in columns])
            return ids
        ids = self._intern_column(0, columns[0])
        for ordinal, pairs in enumerate(self._pairs, 1):
            ids = pairs.intern(ids, self._intern_column(ordinal, columns[ordinal]), self._columns[ordinal].count)
        return ids

    def find(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return the id of each row's key, NOT_FOUND for a key that was never interned. Threads may share this."""
        ids = self._find_column(0, columns[0])
        for ordinal, pairs in enumerate(self._pairs, 1):
            ids = pairs.find(ids, self._find_column(ordinal, columns[ordinal]))
        return ids

    def contains(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return whether each row's key was interned. Threads may share this."""
        column = self._columns[0]
        if self._pairs or not isinstance(column, _NormalizedKeyInterner):
            return self.find(columns) >= 0
        found = column.contains(columns[0])
        nulls = null_positions(columns[0])
        if nulls is not None:
            found[nulls] = self._null_ids[0] == NULL_ID
        return found

    def keys(self, ids: np.ndarray) -> list[pa.Array]:
        """Return the key columns of these ids."""
        arrays: list[pa.Array] = []
        for pairs, column in zip(reversed(self._pairs), reversed(self._columns[1:]), strict=True):
            ids, second = pairs.halves(ids)
            arrays.append(column.take(second))
        arrays.append(self._columns[0].take(ids))
        return arrays[::-1]

    def _rows_with_keys(self, columns: Sequence[pa.Array]) -> np.ndarray | None:
        """Return the rows without a NULL that equals nothing; None for all rows."""
        masks = [null_mask(column) for column, safe in zip(columns, self._null_safe, strict=True) if not safe]
        found = [mask for mask in masks if mask is not None]
        return ~np.logical_or.reduce(found) if found else None

    def _intern_column(self, ordinal: int, column: pa.Array) -> np.ndarray:
        nulls = null_positions(column)
        if nulls is not None:
            self._null_ids[ordinal] = NULL_ID
        return self._columns[ordinal].intern(column, nulls)

    def _find_column(self, ordinal: int, column: pa.Array) -> np.ndarray:
        column = _with_plain_nulls(column)
        nulls = null_positions(column)
        ids = self._columns[ordinal].find(column)
        if nulls is not None:
            ids[nulls] = self._null_ids[ordinal]
        return ids


def _with_plain_nulls(column: pa.Array) -> pa.Array:
    """Return the column with its NULLs in its validity, and none in a dictionary, where a code would hide it."""
    return column.dictionary_decode() if is_dictionary(column) and column.dictionary.null_count else column


class _PairInterner:
    """Interns pairs of ids as one integer. The second has some bits and room to grow; beyond, pairs are repacked."""

    def __init__(self) -> None:
        self._bits = 0
        self._packed = IntegerInterner()

    @property
    def count(self) -> int:
        return self._packed.count

    def intern(self, first: np.ndarray, second: np.ndarray, seconds: int) -> np.ndarray:
        """Intern pairs of ids; `seconds` is a bound for the second ids."""
        if seconds > 1 << self._bits:
            known_first, known_second = self._unpack(self._packed.values[1:])
            self._bits = seconds.bit_length()
            self._packed = IntegerInterner(self._pack(known_first, known_second))
        return self._packed.intern(self._pack(first, second))

    def find(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return self._packed.find(self._pack(first, second))

    def halves(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._unpack(self._packed.values[ids])

    def _pack(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Pack pairs; with NOT_FOUND in either half a pair is below zero, and never found."""
        pairs = first.astype(np.int64)
        pairs <<= self._bits
        pairs |= second
        return pairs

    def _unpack(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return pairs >> self._bits, pairs & ((1 << self._bits) - 1)


def _column_interner(sql_type: SqlType) -> _ColumnInterner:
    match sql_type.kind:
        case Kind.VARCHAR | Kind.VARBINARY:
            return TextInterner(sql_type)
        case Kind.DECIMAL if sql_type.precision > LONG_DIGITS:
            return _WideDecimalInterner(sql_type)
        case _:
            return _NormalizedKeyInterner(sql_type)


class _NormalizedKeyInterner:
    """Interns values that have a normalized key."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._keys = IntegerInterner()

    @property
    def count(self) -> int:
        return self._keys.count

    def intern(self, column: pa.Array, nulls: np.ndarray | None) -> np.ndarray:
        keys = normalized_keys(column, self._type)
        if nulls is None:
            return self._keys.intern(keys)
        if len(nulls) == len(keys):
            return np.full(len(keys), NULL_ID, np.int32)
        keys = keys.copy()
        keys[nulls] = keys[first_present(nulls)]  # what lies at a NULL is arbitrary, and no key
        ids = self._keys.intern(keys)
        ids[nulls] = NULL_ID
        return ids

    def find(self, column: pa.Array) -> np.ndarray:
        return self._keys.find(normalized_keys(column, self._type))

    def contains(self, column: pa.Array) -> np.ndarray:
        """Return whether each value has an id; arbitrary at a NULL."""
        return self._keys.contains(normalized_keys(column, self._type))

    def take(self, ids: np.ndarray) -> pa.Array:
        return values_of_keys(self._keys.values[ids], self._type, ids == NULL_ID)


class _WideDecimalInterner:
    """Interns DECIMALs of more than 64 bits as pairs of their halves."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._low, self._high = IntegerInterner(), IntegerInterner()
        self._pairs = _PairInterner()

    @property
    def count(self) -> int:
        return self._pairs.count

    def intern(self, column: pa.Array, nulls: np.ndarray | None) -> np.ndarray:
        low, high = decimal_words(column) if nulls is None else decimal_words(column.drop_null())
        high_ids = self._high.intern(high)
        ids = self._pairs.intern(self._low.intern(low.view(np.int64)), high_ids, self._high.count)
        return ids if nulls is None else np.insert(ids, nulls - np.arange(len(nulls)), NULL_ID)

    def find(self, column: pa.Array) -> np.ndarray:
        low, high = decimal_words(column)
        return self._pairs.find(self._low.find(low.view(np.int64)), self._high.find(high))

    def take(self, ids: np.ndarray) -> pa.Array:
        low, high = self._pairs.halves(ids)
        nulls = ids == NULL_ID
        halves = self._low.values[low].view(np.uint64), self._high.values[high]
        return decimal_array(*halves, self._type, nulls if nulls.any() else None)
