"""Single values out of an Arrow array without Arrow: closures over memoryviews.

Arrow's own way to one Python value costs a microsecond a column; a memoryview costs fifty nanoseconds. That is the
difference between a key lookup that beats a B-tree in C and one that does not.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.storage.arrow_arrays import (
    buffer_values,
    code_values,
    fixed_values,
    is_dictionary,
    is_fixed_width,
    null_mask,
    stored_list,
    string_parts,
)
from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = 3
"""Up to so many values are read one by one; for more, one call over all of them is cheaper (measured): rows that an
index finds are scattered, and numpy waits for the memory of many at once."""

KEPT_STRINGS = 1 << 17
"""A dictionary of up to so many strings keeps those that were read decoded: a decoded one takes 60 bytes."""

_EXACT = Context(prec=100)


class ColumnReader:
    """The values of one column in stored form, by position."""

    __slots__ = ("_array", "_codes", "_kept", "_nulls", "_numbers", "_type", "value")

    def __init__(self, array: pa.Array, sql_type: SqlType) -> None:
        self._array = array
        self._type = sql_type
        self._nulls = null_mask(array)
        self._numbers: np.ndarray | None = None
        self._codes: np.ndarray | None = None
        self._kept: list[Any] = []
        if is_fixed_width(sql_type) and sql_type.kind is not Kind.BOOLEAN:
            self._numbers = fixed_values(array, sql_type)
        elif is_dictionary(array) and len(array.dictionary) <= KEPT_STRINGS:
            self._codes = code_values(array)
            self._kept = [None] * len(array.dictionary)
        self.value: Callable[[int], Any] = value_reader(array, sql_type, self._kept)

    @property
    def numbers(self) -> memoryview | None:
        """The raw values, where every one of them is a number and none is NULL."""
        return None if self._numbers is None or self._nulls is not None else memoryview(self._numbers)

    def values(self, positions: np.ndarray) -> list[Any]:
        """The values at many positions, which are `intp`: numpy would convert any other kind anew for each column."""
        if self._numbers is not None:
            found: list[Any] = self._numbers[positions].tolist()
            if self._nulls is not None:
                for place in np.flatnonzero(self._nulls[positions]).tolist():
                    found[place] = None
            return found
        if self._codes is not None:
            if self._nulls is None:
                kept = self._kept
                found = [kept[code] for code in self._codes[positions].tolist()]
                if None not in found:
                    return found
            return list(map(self.value, positions.tolist()))
        return stored_list(self._array.take(pa.array(positions)), self._type)


def value_reader(array: pa.Array, sql_type: SqlType, kept: list[Any] | None = None) -> Callable[[int], Any]:
    """The function from a position to the stored value there, None for NULL.

    `kept` has a place for each entry of the array's dictionary, None as long as it was not read.
    """
    if len(array) == 0:
        return _no_value
    read = _kept_value_reader(array, sql_type, kept) if kept else _value_reader(array, sql_type)
    nulls = null_mask(array)
    if nulls is None:
        return read
    missing = memoryview(nulls)
    return lambda position: None if missing[position] else read(position)


def bytes_reader(array: pa.Array) -> Callable[[int], bytes]:
    """The raw bytes of strings, which compare as the strings do, and need no decoding."""
    offsets, data = string_parts(array)
    begin, text = memoryview(offsets), memoryview(data)
    return lambda position: bytes(text[begin[position] : begin[position + 1]])


def _kept_value_reader(array: pa.DictionaryArray, sql_type: SqlType, kept: list[Any]) -> Callable[[int], Any]:
    codes, entry = memoryview(code_values(array)), _value_reader(array.dictionary, sql_type)

    def read(position: int) -> Any:
        code = codes[position]
        value = kept[code]
        if value is None:
            value = kept[code] = entry(code)
        return value

    return read


def _value_reader(array: pa.Array, sql_type: SqlType) -> Callable[[int], Any]:
    if is_dictionary(array):
        codes, entry = memoryview(code_values(array)), _value_reader(array.dictionary, sql_type)
        return lambda position: entry(codes[position])
    match sql_type.kind:
        case Kind.BOOLEAN:
            flags = memoryview(fixed_values(array, sql_type).astype(np.bool_))
            return flags.__getitem__
        case Kind.VARCHAR:
            offsets, data = string_parts(array)
            begin, text = memoryview(offsets), memoryview(data)
            return lambda position: str(text[begin[position] : begin[position + 1]], "utf-8")
        case Kind.VARBINARY:
            return bytes_reader(array)
        case Kind.DECIMAL:
            raw = memoryview(buffer_values(array, 1, "V16")).cast("B")
            scale = sql_type.scale
            return lambda position: _decimal_at(raw, position, scale)
        case _:
            return memoryview(fixed_values(array, sql_type)).__getitem__


def _decimal_at(raw: memoryview, position: int, scale: int) -> Decimal:
    whole = int.from_bytes(raw[16 * position : 16 * position + 16], "little", signed=True)
    return _EXACT.scaleb(Decimal(whole), -scale)


def _no_value(position: int) -> Any:
    raise IndexError(position)
