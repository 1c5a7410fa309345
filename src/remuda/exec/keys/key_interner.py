"""Numbers for distinct keys of one or several columns of any type, by SQL's idea of equality.

A NULL equals nothing, or itself where the key is null-safe; NaN equals itself, -0.0 equals 0.0. Every column is
brought to numbers first, the numbers of several columns are brought together pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.exec.keys.integer_interner import NOT_FOUND, IntegerInterner
from remuda.exec.keys.text_interner import TextInterner
from remuda.exec.sort.ordering import floats_from_ordered, ordered_integers
from remuda.types import BIGINT, Kind
from remuda.types.arrow_arrays import decimal_words, fixed_values, null_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.types import SqlType

LONG_DIGITS = 18
"""A decimal of so many digits fits one 64-bit word."""


class Interner(Protocol):
    count: int
    given: np.ndarray

    def find(self, values: pa.Array) -> np.ndarray: ...


class KeyInterner:
    """Gives every distinct key of `columns` a number from 0 to `count` - 1; `given` are those of the rows, in order.

    A row whose key has a NULL that equals nothing has the number ABSENT.
    """

    def __init__(self, columns: Sequence[pa.Array], types: Sequence[SqlType], null_safe: Sequence[bool]) -> None:
        self._parts = [
            _ColumnInterner(column, sql_type, safe)
            for column, sql_type, safe in zip(columns, types, null_safe, strict=True)
        ]
        self._pairs: list[IntegerInterner] = []
        self.given, self.count = self._parts[0].given, self._parts[0].count
        for part in self._parts[1:]:
            both = _paired(self.given, part.given, part.count)
            present = both >= 0
            pairs = IntegerInterner(both[present])
            self._pairs.append(pairs)
            self.given = np.full(len(both), NOT_FOUND, np.int32)
            self.given[present] = pairs.given
            self.count = pairs.count

    def find(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """The number of the key of each row, ABSENT where no row that was given has that key."""
        numbers = self._parts[0].find(columns[0])
        for part, pairs, column in zip(self._parts[1:], self._pairs, columns[1:], strict=True):
            both = _paired(numbers, part.find(column), part.count)
            numbers = pairs.find(both)
        return numbers


def _paired(first: np.ndarray, second: np.ndarray, second_count: int) -> np.ndarray:
    both: np.ndarray = first.astype(np.int64) * second_count + second
    both[(first < 0) | (second < 0)] = NOT_FOUND
    return both


class _ColumnInterner:
    """The numbers of one column. NULL has the last one where it equals itself."""

    def __init__(self, column: pa.Array, sql_type: SqlType, null_safe: bool) -> None:
        self._type = sql_type
        nulls = null_mask(column)
        present = column if nulls is None else column.drop_null()
        self._numbers = _numbers_of(present, sql_type)
        self.count = self._numbers.count
        self._null_number = NOT_FOUND
        self.given = self._numbers.given
        if nulls is not None:
            if null_safe:
                self._null_number = self.count
                self.count += 1
            self.given = np.full(len(column), self._null_number, np.int32)
            self.given[~nulls] = self._numbers.given

    def find(self, column: pa.Array) -> np.ndarray:
        nulls = null_mask(column)
        numbers = self._numbers.find(column)
        if nulls is not None:
            numbers[nulls] = self._null_number
        return numbers


def _numbers_of(column: pa.Array, sql_type: SqlType) -> Interner:
    match sql_type.kind:
        case Kind.VARCHAR | Kind.VARBINARY:
            return TextInterner(column)
        case Kind.DECIMAL if sql_type.precision > LONG_DIGITS:
            return _WideDecimalInterner(column)
        case Kind.NULL:
            return _WordInterner(pa.array([], pa.int64()), BIGINT)
        case _:
            return _WordInterner(column, sql_type)


class _WordInterner:
    """Of values that are one 64-bit word each."""

    def __init__(self, column: pa.Array, sql_type: SqlType) -> None:
        self._type = sql_type
        self._numbers = IntegerInterner(words(column, sql_type))
        self.count = self._numbers.count
        self.given = self._numbers.given

    def find(self, column: pa.Array) -> np.ndarray:
        return self._numbers.find(words(column, self._type))


class _WideDecimalInterner:
    """Of decimals of two words: a pair of columns."""

    def __init__(self, column: pa.Array) -> None:
        self._numbers = KeyInterner(_halves(column), (BIGINT, BIGINT), (False, False))
        self.count = self._numbers.count
        self.given = self._numbers.given

    def find(self, column: pa.Array) -> np.ndarray:
        return self._numbers.find(_halves(column))


def _halves(column: pa.Array) -> list[pa.Array]:
    low, high = decimal_words(column)
    return [pa.array(low.view(np.int64)), pa.array(high)]


def words(column: pa.Array, sql_type: SqlType) -> np.ndarray:
    """The values as integers that are equal where the values are; arbitrary at a NULL."""
    match sql_type.kind:
        case Kind.NULL:
            return np.zeros(len(column), np.int64)
        case Kind.REAL | Kind.DOUBLE:
            values: np.ndarray = pc.fill_null(ordered_integers(column), 0).to_numpy()
            return values
        case Kind.DECIMAL:
            return np.ascontiguousarray(decimal_words(column)[0]).view(np.int64)
        case Kind.INTERVAL_MONTHS:
            return fixed_values(column, BIGINT)
        case Kind.INTERVAL_TIME:
            return fixed_values(column.view(pa.int64()), BIGINT)
        case _:
            return fixed_values(column, sql_type).astype(np.int64, copy=False)


def from_words(values: np.ndarray, sql_type: SqlType, nulls: np.ndarray | None = None) -> pa.Array:
    """The inverse of `words`."""
    mask = None if nulls is None or not nulls.any() else nulls
    match sql_type.kind:
        case Kind.NULL:
            return pa.nulls(len(values))
        case Kind.BOOLEAN:
            return pa.array(values.astype(np.bool_), mask=mask)
        case Kind.REAL | Kind.DOUBLE:
            return floats_from_ordered(pa.array(values, mask=mask), sql_type.arrow)
        case Kind.DECIMAL:
            return decimal_array(values.view(np.uint64), values >> 63, sql_type, mask)
        case Kind.DATE:
            return pa.array(values.astype(np.int32), mask=mask).view(sql_type.arrow)
        case _ if sql_type.is_temporal:
            return pa.array(values, mask=mask).view(sql_type.arrow)
        case _:
            return pa.array(values.astype(sql_type.arrow.to_pandas_dtype()), sql_type.arrow, mask=mask)


def decimal_array(low: np.ndarray, high: np.ndarray, sql_type: SqlType, nulls: np.ndarray | None) -> pa.Array:
    """Decimals from their two 64-bit halves."""
    both = np.empty(2 * len(low), np.uint64)
    both[0::2], both[1::2] = low, high.view(np.uint64)
    present = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little").tobytes())
    return pa.Array.from_buffers(sql_type.arrow, len(low), [present, pa.py_buffer(both.tobytes())])
