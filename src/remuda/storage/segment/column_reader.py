"""Single values out of an Arrow array without Arrow: closures over memoryviews.

Arrow's own way to one Python value costs a microsecond a column; a memoryview costs fifty nanoseconds. That is the
difference between a key lookup that beats a B-tree in C and one that does not.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.storage.segment.block_guard import Array, Values, check_column, check_nulls, guarded, is_proven, view_of
from remuda.types import NUMPY_UNITS, Kind, SqlType, python_column_converter
from remuda.types.arrow_arrays import (
    buffer_values,
    code_values,
    fixed_values,
    is_dictionary,
    is_fixed_width,
    null_mask,
    stored_list,
    string_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = 3
"""Up to so many values are read one by one; for more, one call over all of them is cheaper (measured): rows that an
index finds are scattered, and numpy waits for the memory of many at once."""

KEPT_STRINGS = 1 << 17
"""A dictionary of up to so many strings keeps those that were read decoded: a decoded one takes 60 bytes."""

_EXACT = Context(prec=100)


class ColumnReader:
    """Reads the values of one column in stored form, by position."""

    __slots__ = ("_array", "_codes", "_hold", "_kept", "_nulls", "_numbers", "_to_python", "_type", "_unit", "value")

    def __init__(self, array: pa.Array, sql_type: SqlType, hold: object = None) -> None:
        """`hold` is that of the segment. What is not proven is verified before it is read, and Arrow, which does not
        check offsets, does not read it."""
        self._array = array
        self._hold = hold
        self._type = sql_type
        check_nulls(array, hold)
        self._nulls = null_mask(array)
        self._to_python, self._unit = python_column_converter(sql_type), NUMPY_UNITS.get(sql_type.kind)
        self._numbers: Array | None = None
        self._codes: Array | None = None
        self._kept: list[Any] = []
        self.value: Callable[[int], Any] = _no_value
        if len(array):
            self.value = _or_null(self._reader_of_values(array), self._nulls)

    def _reader_of_values(self, array: pa.Array) -> Callable[[int], Any]:
        sql_type, hold = self._type, self._hold
        if is_fixed_width(sql_type) and sql_type.kind is not Kind.BOOLEAN:
            self._numbers = guarded(fixed_values(array, sql_type), hold)
            return view_of(self._numbers).__getitem__
        if is_dictionary(array) and len(array.dictionary) <= KEPT_STRINGS:
            self._codes = guarded(code_values(array), hold)
            self._kept = [None] * len(array.dictionary)
            return _kept_value_reader(view_of(self._codes), self._kept, _value_reader(array.dictionary, sql_type, hold))
        return _value_reader(array, sql_type, hold)

    @property
    def numbers(self) -> Values | None:
        """Return the raw values, where every one of them is a number and none is NULL."""
        return None if self._numbers is None or self._nulls is not None else view_of(self._numbers)

    @property
    def number_array(self) -> Array | None:
        """`numbers` for those who read many at a time."""
        return None if self._nulls is not None else self._numbers

    @property
    def has_nulls(self) -> bool:
        return self._nulls is not None

    def written(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return an expression for the value at `position`, and what its names stand for: `value` without the call."""
        if self._nulls is None and self._numbers is not None:
            return f"{name}[position]", {name: view_of(self._numbers)}
        if self._nulls is None and self._codes is not None:
            # A string that was not read yet, and an empty one, are left to the function.
            text = f"{name}_kept[{name}_codes[position]] or {name}(position)"
            return text, {f"{name}_kept": self._kept, f"{name}_codes": view_of(self._codes), name: self.value}
        return f"{name}(position)", {name: self.value}

    def written_values(self, name: str, *, python: bool) -> tuple[str, dict[str, Any]]:
        """Return an expression for the list of values at many `positions`, stored or in Python form, and what its names
        stand for."""
        if self._nulls is None and self._numbers is not None and not (python and self._to_python is not None):
            return f"{name}[positions].tolist()", {name: self._numbers}
        return f"{name}(positions)", {name: self.python_values if python else self.values}

    def python_values(self, positions: np.ndarray) -> list[Any]:
        """Read `values` in Python form. numpy makes dates and timestamps from the numbers as they are stored."""
        if self._unit is not None and self._numbers is not None and self._nulls is None:
            found: list[Any] = self._numbers[positions].astype(self._unit).tolist()
            # Beyond the years that Python has, numpy gives numbers; the converter says what is wrong with them.
            if int not in set(map(type, found)):
                return found
        stored = self.values(positions)
        return stored if self._to_python is None else self._to_python(stored)

    def values(self, positions: np.ndarray) -> list[Any]:
        """Return the values at many positions, which are `intp`: numpy would convert any other kind anew for each
        column."""
        if self._numbers is not None:
            found: list[Any] = self._numbers[positions].tolist()
            if self._nulls is not None:
                for ordinal in np.flatnonzero(self._nulls[positions]).tolist():
                    found[ordinal] = None
            return found
        if self._codes is not None:
            if self._nulls is None:
                kept = self._kept
                found = [kept[code] for code in self._codes[positions].tolist()]
                # The first test is cheaper, and suffices unless a string is empty or was never read.
                if all(found) or None not in found:
                    return found
            return list(map(self.value, positions.tolist()))
        if not is_proven(self._hold):
            return list(map(self.value, positions.tolist()))
        return stored_list(self._array.take(pa.array(positions)), self._type)


def value_reader(array: pa.Array, sql_type: SqlType) -> Callable[[int], Any]:
    """Return the function from a position to the stored value there, None for NULL."""
    return _or_null(_value_reader(array, sql_type, None), null_mask(array)) if len(array) else _no_value


def _or_null(read: Callable[[int], Any], nulls: np.ndarray | None) -> Callable[[int], Any]:
    if nulls is None:
        return read
    missing = memoryview(nulls)
    return lambda position: None if missing[position] else read(position)


def bytes_reader(array: pa.Array, hold: object = None) -> Callable[[int], bytes]:
    """Return the raw bytes of strings, which compare as the strings do, and need no decoding."""
    begin, text = _string_views(array, hold)
    return lambda position: bytes(text[begin[position] : begin[position + 1]])


def _string_views(array: pa.Array, hold: object) -> tuple[Values, Values]:
    offsets, data = string_parts(array)
    return view_of(guarded(offsets, hold)), view_of(guarded(data, hold))


def _kept_value_reader(codes: Values, kept: list[Any], entry: Callable[[int], Any]) -> Callable[[int], Any]:
    """Make a reader that keeps the strings of a dictionary.

    `kept` has an item for each entry of the dictionary, None as long as it was not read.
    """

    def read(position: int) -> Any:
        code = codes[position]
        value = kept[code]
        if value is None:
            value = kept[code] = entry(code)
        return value

    return read


def _value_reader(array: pa.Array, sql_type: SqlType, hold: object) -> Callable[[int], Any]:
    if is_dictionary(array):
        codes, entry = view_of(guarded(code_values(array), hold)), _value_reader(array.dictionary, sql_type, hold)
        return lambda position: entry(codes[position])
    match sql_type.kind:
        case Kind.BOOLEAN:
            check_column(array, hold)
            flags = memoryview(fixed_values(array, sql_type).astype(np.bool_))
            return flags.__getitem__
        case Kind.VARCHAR:
            begin, text = _string_views(array, hold)
            return lambda position: str(text[begin[position] : begin[position + 1]], "utf-8")
        case Kind.VARBINARY:
            return bytes_reader(array, hold)
        case Kind.DECIMAL:
            raw = view_of(guarded(buffer_values(array, 1, "V16").view(np.uint8), hold))
            scale = sql_type.scale
            return lambda position: _decimal_at(raw, position, scale)
        case _:
            return view_of(guarded(fixed_values(array, sql_type), hold)).__getitem__


def _decimal_at(raw: Values, position: int, scale: int) -> Decimal:
    whole = int.from_bytes(raw[16 * position : 16 * position + 16], "little", signed=True)
    return _EXACT.scaleb(Decimal(whole), -scale)


def _no_value(position: int) -> Any:
    raise IndexError(position)
