"""Values as integers that compare as the values do: the keys of SORTED indexes.

NaN is above every number and equal to itself, -0.0 equals 0.0, NULL is below everything: the same in order, grouping,
joins and indexes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.types import LONG_DIGITS, Kind, SqlType
from remuda.types.arrow_arrays import decimal_words, fixed_values, null_mask
from remuda.types.partition_hash import unscaled

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

NULL_KEY = -(2**63)
"""The key of NULL. Doubles never have it; where an integer does, the column is not `direct` (see `direct_keys`)."""

GREATEST_KEY = 2**63 - 1

INFINITE_KEY = 0x7FF0000000000000
"""The key of infinity; those above it are NaN's."""

NAN = float("nan")
"""The one NaN object by which dictionaries find NaN: they compare by identity first."""

_POSITIVE = 0x7FFFFFFFFFFFFFFF
_pack = struct.Struct("<d").pack
_unpack = struct.Struct("<q").unpack


def direct_key(sql_type: SqlType) -> Callable[[Any], int] | None:
    """The function from a stored, non-NULL value to its key; None for types whose values do not fit into 64 bits."""
    match sql_type.kind:
        case Kind.DOUBLE | Kind.REAL:
            return _double_key
        case Kind.DECIMAL if sql_type.precision <= LONG_DIGITS:
            return lambda value: unscaled(value, sql_type.scale)
        case Kind.DECIMAL | Kind.VARCHAR | Kind.VARBINARY:
            return None
        case _:
            return int


def direct_keys(array: pa.Array, sql_type: SqlType) -> np.ndarray | None:
    """`direct_key` over a column, NULLs included; None where NULL's key is also the key of a value."""
    match sql_type.kind:
        case Kind.DOUBLE | Kind.REAL:
            keys = number_keys(fixed_values(array, sql_type))
        case Kind.DECIMAL:
            keys = decimal_words(array)[0].view(np.int64)
        case _:
            keys = fixed_values(array, sql_type).astype(np.int64, copy=False)
    nulls = null_mask(array)
    if nulls is None:
        return keys
    if sql_type.kind is not Kind.DOUBLE and bool(np.any((keys == NULL_KEY) & ~nulls)):
        return None
    return np.where(nulls, np.int64(NULL_KEY), keys)


def number_keys(values: np.ndarray) -> np.ndarray:
    """The keys of floating-point numbers."""
    doubles = values + np.float64(0.0)
    doubles[np.isnan(doubles)] = np.nan
    bits = doubles.view(np.int64)
    np.bitwise_xor(bits, np.int64(_POSITIVE), out=bits, where=bits < 0)
    return bits


def _double_key(value: float) -> int:
    bits: int = _unpack(_pack(NAN if value != value else value + 0.0))[0]
    return bits if bits >= 0 else bits ^ _POSITIVE


def hashable(value: Any) -> Any:
    """The value as a dictionary finds it: every NaN is the one `NAN`."""
    return NAN if value != value else value


def canonical_key(key: Any) -> Any:
    """`hashable` for the key of a map: a value or a tuple of them."""
    if isinstance(key, tuple):
        return tuple([hashable(part) for part in key])
    return hashable(key)


def comparable(value: Any) -> tuple[int, Any]:
    """A pair that sorts as the value does among values of its type: NULL, numbers, NaN."""
    if value is None:
        return (0, 0)
    return (2, 0) if value != value else (1, value)
