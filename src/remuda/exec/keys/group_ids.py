"""Numbers for groups as their rows come: the same number for equal keys, NULL being equal to NULL.

A number may belong to no row: a dictionary's values are numbered as a whole, whether rows have them or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from remuda.exec.keys.integer_interner import IntegerInterner
from remuda.exec.keys.key_interner import LONG_DIGITS, from_words, words
from remuda.exec.keys.text_group_ids import NULL_ID, TextGroupIds
from remuda.types import Kind
from remuda.types.arrow_arrays import decimal_words, null_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.types import SqlType


class _Column(Protocol):
    @property
    def count(self) -> int: ...

    def add(self, column: pa.Array) -> np.ndarray: ...

    def take(self, numbers: np.ndarray) -> pa.Array:
        """The values with these numbers."""


class GroupIds:
    def __init__(self, types: Sequence[SqlType]) -> None:
        self._columns = [_column_of(sql_type) for sql_type in types]
        self._pairs = [_Pairs() for _ in types[1:]]

    @property
    def count(self) -> int:
        return self._pairs[-1].count if self._pairs else self._columns[0].count

    @property
    def bytes(self) -> int:
        """What the texts among the keys take."""
        return sum(known.bytes for known in self._columns if isinstance(known, TextGroupIds))

    def add(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """The group of each row, in numbers as wide as an index: whatever is done by group then need not widen them."""
        numbers = self._columns[0].add(columns[0])
        for pairs, known, column in zip(self._pairs, self._columns[1:], columns[1:], strict=True):
            numbers = pairs.add(numbers, known.add(column), known.count)
        return numbers.astype(np.intp, copy=False)

    def keys(self, chosen: np.ndarray) -> list[pa.Array]:
        """The key columns of some groups."""
        arrays: list[pa.Array] = []
        for pairs, known in zip(reversed(self._pairs), reversed(self._columns[1:]), strict=True):
            first, second = pairs.parts(chosen)
            arrays.append(known.take(second))
            chosen = first
        arrays.append(self._columns[0].take(chosen))
        return arrays[::-1]


class _Pairs:
    """Numbers for pairs of numbers. The second has some bits and room to grow; beyond, pairs are numbered anew."""

    def __init__(self) -> None:
        self._bits = 0
        self._numbers = IntegerInterner(np.empty(0, np.int64))

    @property
    def count(self) -> int:
        return self._numbers.count

    def add(self, first: np.ndarray, second: np.ndarray, seconds: int) -> np.ndarray:
        if seconds > 1 << self._bits:
            known_first, known_second = self.parts(np.arange(self.count))
            self._bits = seconds.bit_length()
            self._numbers = IntegerInterner.in_order((known_first << self._bits) | known_second)
        both = first.astype(np.int64)
        both <<= self._bits
        both |= second
        return self._numbers.add(both)

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = self._numbers.values[numbers]
        return both >> self._bits, both & ((1 << self._bits) - 1)


def _column_of(sql_type: SqlType) -> _Column:
    match sql_type.kind:
        case Kind.VARCHAR | Kind.VARBINARY:
            return TextGroupIds(sql_type)
        case Kind.DECIMAL if sql_type.precision > LONG_DIGITS:
            return _WideDecimalColumn(sql_type)
        case _:
            return _WordColumn(sql_type)


class _WordColumn:
    """Values of one 64-bit word."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._numbers = IntegerInterner(np.empty(0, np.int64))

    @property
    def count(self) -> int:
        return self._numbers.count + 1

    def add(self, column: pa.Array) -> np.ndarray:
        nulls = null_mask(column)
        values = words(column, self._type)
        if nulls is None:
            numbers = self._numbers.add(values)
            numbers += 1
            return numbers
        numbers = np.full(len(column), NULL_ID, np.int32)
        numbers[~nulls] = self._numbers.add(values[~nulls]) + 1
        return numbers

    def take(self, numbers: np.ndarray) -> pa.Array:
        known = np.concatenate([np.zeros(1, np.int64), self._numbers.values])
        return from_words(known[numbers], self._type, numbers == NULL_ID)


class _WideDecimalColumn:
    """Decimals of two words: pairs of them."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._known: dict[tuple[int, int], int] = {}

    @property
    def count(self) -> int:
        return len(self._known) + 1

    def add(self, column: pa.Array) -> np.ndarray:
        nulls = null_mask(column)
        low, high = decimal_words(column)
        known = self._known
        pairs = zip(high.tolist(), low.tolist(), strict=True)
        numbers = np.fromiter((known.setdefault(pair, len(known) + 1) for pair in pairs), np.int32, len(column))
        if nulls is not None:
            numbers[nulls] = NULL_ID
        return numbers

    def take(self, numbers: np.ndarray) -> pa.Array:
        parts = np.array([(low, high % 2**64) for high, low in [(0, 0), *self._known]], np.uint64).reshape(-1)
        present = np.packbits(np.arange(self.count) != NULL_ID, bitorder="little")
        buffers = [pa.py_buffer(present.tobytes()), pa.py_buffer(parts.tobytes())]
        return pa.Array.from_buffers(self._type.arrow, self.count, buffers).take(pa.array(numbers))
