"""Numbers for groups as their rows come: the same number for equal keys, NULL being equal to NULL.

A number may belong to no row: a dictionary's values are numbered as a whole, whether rows have them or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from remuda.exec.integer_numbers import IntegerNumbers
from remuda.exec.key_numbers import LONG_DIGITS, from_words, words
from remuda.exec.text_numbers import is_same_memory
from remuda.storage.arrow_arrays import code_values, decimal_words, is_dictionary, null_mask
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.types import SqlType

NULL_NUMBER = 0
"""In every column NULL is the first value that is known."""


class _Column(Protocol):
    @property
    def count(self) -> int: ...

    def add(self, column: pa.Array) -> np.ndarray: ...

    def take(self, numbers: np.ndarray) -> pa.Array:
        """The values with these numbers."""


class GroupNumbers:
    def __init__(self, types: Sequence[SqlType]) -> None:
        self._columns = [_column_of(sql_type) for sql_type in types]
        self._pairs = [_Pairs() for _ in types[1:]]

    @property
    def count(self) -> int:
        return self._pairs[-1].count if self._pairs else self._columns[0].count

    def add(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """The group of each row."""
        numbers = self._columns[0].add(columns[0])
        for pairs, known, column in zip(self._pairs, self._columns[1:], columns[1:], strict=True):
            numbers = pairs.add(numbers, known.add(column), known.count)
        return numbers

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
    """Numbers for pairs of numbers. The second one has room to grow; beyond it the pairs are numbered anew."""

    def __init__(self) -> None:
        self._room = 1
        self._numbers = IntegerNumbers(np.empty(0, np.int64))

    @property
    def count(self) -> int:
        return self._numbers.count

    def add(self, first: np.ndarray, second: np.ndarray, seconds: int) -> np.ndarray:
        if seconds > self._room:
            known_first, known_second = self.parts(np.arange(self.count))
            self._room = 1 << seconds.bit_length()
            self._numbers = IntegerNumbers.in_order(known_first * self._room + known_second)
        return self._numbers.add(first.astype(np.int64) * self._room + second)

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = self._numbers.values[numbers]
        return both // self._room, both % self._room


def _column_of(sql_type: SqlType) -> _Column:
    match sql_type.kind:
        case Kind.VARCHAR | Kind.VARBINARY:
            return _TextColumn(sql_type)
        case Kind.DECIMAL if sql_type.precision > LONG_DIGITS:
            return _WideDecimalColumn(sql_type)
        case _:
            return _WordColumn(sql_type)


class _WordColumn:
    """Values of one 64-bit word."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._numbers = IntegerNumbers(np.empty(0, np.int64))

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
        numbers = np.full(len(column), NULL_NUMBER, np.int32)
        numbers[~nulls] = self._numbers.add(values[~nulls]) + 1
        return numbers

    def take(self, numbers: np.ndarray) -> pa.Array:
        known = np.concatenate([np.zeros(1, np.int64), self._numbers.values])
        return from_words(known[numbers], self._type, numbers == NULL_NUMBER)


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
            numbers[nulls] = NULL_NUMBER
        return numbers

    def take(self, numbers: np.ndarray) -> pa.Array:
        parts = np.array([(low, high % 2**64) for high, low in [(0, 0), *self._known]], np.uint64).reshape(-1)
        present = np.packbits(np.arange(self.count) != NULL_NUMBER, bitorder="little")
        buffers = [pa.py_buffer(present.tobytes()), pa.py_buffer(parts.tobytes())]
        return pa.Array.from_buffers(self._type.arrow, self.count, buffers).take(pa.array(numbers))


class _TextColumn:
    """Strings. The numbers of a dictionary's values are kept, as batches of one segment share their dictionary."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._known: dict[str | bytes, int] | None = None
        """Made with the second dictionary: the numbers of the first are its codes."""
        self._parts: list[pa.Array] = [pa.nulls(1, sql_type.arrow)]
        self._dictionaries: list[tuple[pa.Array, np.ndarray]] = []
        self.count = 1

    def add(self, column: pa.Array) -> np.ndarray:
        if not is_dictionary(column) or column.dictionary.null_count:
            plain = column.dictionary_decode() if is_dictionary(column) else column
            column = plain.dictionary_encode()
            numbers_of = self._number(column.dictionary)
        else:
            numbers_of = self._numbers_of(column.dictionary)
        nulls = null_mask(column)
        if not len(numbers_of):
            return np.full(len(column), NULL_NUMBER, np.int32)
        # The code at a NULL is arbitrary: "clip" keeps it inside.
        numbers = numbers_of.take(code_values(column), mode="clip")
        if nulls is not None:
            numbers[nulls] = NULL_NUMBER
        return numbers

    def _numbers_of(self, dictionary: pa.Array) -> np.ndarray:
        for known, numbers in self._dictionaries:
            if is_same_memory(known, dictionary):
                return numbers
        numbers = self._number(dictionary)
        self._dictionaries.append((dictionary, numbers))
        return numbers

    def _number(self, values: pa.Array) -> np.ndarray:
        """The numbers of values, which need not differ."""
        if self.count == 1 and len(values.unique()) == len(values):
            self._parts.append(values)
            self.count += len(values)
            return np.arange(1, self.count, dtype=np.int32)
        if self._known is None:
            self._known = {value: number for number, value in enumerate(self._values().to_pylist()) if number}
        known, before = self._known, self.count
        first = before - len(known)  # 1: NULL has a number and is not among them
        numbers = np.fromiter(
            (known.setdefault(value, first + len(known)) for value in values.to_pylist()), np.int32, len(values)
        )
        self.count = first + len(known)
        new = np.flatnonzero(numbers >= before)
        row_of = np.empty(self.count - before, np.int64)
        row_of[numbers[new] - before] = new
        self._parts.append(values.take(pa.array(row_of)))
        return numbers

    def take(self, numbers: np.ndarray) -> pa.Array:
        if len(self._dictionaries) == 1 and self._known is None:
            # Over the same dictionary, by which whoever groups these groups again will know them.
            codes = pa.array(numbers - 1, pa.int32(), mask=numbers == NULL_NUMBER)
            return pa.DictionaryArray.from_arrays(codes, self._dictionaries[0][0])
        return self._values().take(pa.array(numbers))

    def _values(self) -> pa.Array:
        self._parts = [pa.concat_arrays(self._parts)]
        return self._parts[0]
