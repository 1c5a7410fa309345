"""Normalized keys: 64-bit integers that compare as the values of a column do, by SQL's order and SQL's equality.

NaN is one key above those of all numbers, -0.0 has the key of 0.0. Joins, groups, sorts, extremes and indexes work on
these keys, so that all of them agree on what is equal and what is less. Strings, and DECIMALs of more than 18 digits,
have no such key. NULL is below everything; what has no bit for it has the key `NULL_KEY`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.types.arrow_arrays import decimal_array, decimal_words, fixed_values, null_mask
from remuda.types.partition_hash import unscaled
from remuda.types.sql_type import BIGINT, LONG_DIGITS, Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable

NULL_KEY = -(2**63)
"""The key of NULL. Doubles never have it; where an integer does, the column has no `nullable_keys`."""

GREATEST_KEY = 2**63 - 1

INFINITE_KEY = 0x7FF0000000000000
"""The key of infinity; those above it are NaN's."""

NAN = float("nan")
"""The one NaN object by which dictionaries find NaN: they compare by identity first."""

_POSITIVE = 0x7FFFFFFFFFFFFFFF
_SIGN_BIT = np.int64(63)
_pack = struct.Struct("<d").pack
_unpack = struct.Struct("<q").unpack


def normalized_key(sql_type: SqlType) -> Callable[[Any], int] | None:
    """Return the function from a stored, non-NULL value to its key; None for types whose values have none."""
    match sql_type.kind:
        case Kind.DOUBLE | Kind.REAL:
            return _float_key
        case Kind.DECIMAL if sql_type.precision <= LONG_DIGITS:
            return lambda value: unscaled(value, sql_type.scale)
        case Kind.DECIMAL | Kind.VARCHAR | Kind.VARBINARY:
            return None
        case _:
            return int


def _float_key(value: float) -> int:
    bits: int = _unpack(_pack(NAN if value != value else value + 0.0))[0]
    return bits if bits >= 0 else bits ^ _POSITIVE


def normalized_keys(column: pa.Array, sql_type: SqlType) -> np.ndarray:
    """Return the keys of a column; arbitrary at a NULL."""
    match sql_type.kind:
        case Kind.NULL:
            return np.zeros(len(column), np.int64)
        case Kind.REAL | Kind.DOUBLE:
            return float_keys(fixed_values(column, sql_type))
        case Kind.DECIMAL:
            return np.ascontiguousarray(decimal_words(column)[0]).view(np.int64)
        case Kind.INTERVAL_MONTHS:
            return fixed_values(column, BIGINT)
        case Kind.INTERVAL_TIME:
            return fixed_values(column.view(pa.int64()), BIGINT)
        case _:
            return fixed_values(column, sql_type).astype(np.int64, copy=False)


def nullable_keys(column: pa.Array, sql_type: SqlType) -> np.ndarray | None:
    """Return the keys of a column, NULL_KEY at a NULL; None where that is also the key of a value."""
    keys, nulls = normalized_keys(column, sql_type), null_mask(column)
    if nulls is None:
        return keys
    if sql_type.kind is not Kind.DOUBLE and bool(np.any((keys == NULL_KEY) & ~nulls)):
        return None
    return np.where(nulls, np.int64(NULL_KEY), keys)


def float_keys(values: np.ndarray) -> np.ndarray:
    """Return the keys of floating-point numbers.

    >>> float_keys(np.array([-1.5, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort(kind="stable").tolist()
    [0, 1, 2, 3, 4, 5]
    """
    doubles = values + np.float64(0.0)
    doubles[np.isnan(doubles)] = np.nan
    return _mirror_negatives(doubles.view(np.int64))


def values_of_keys(keys: np.ndarray, sql_type: SqlType, nulls: np.ndarray | None = None) -> pa.Array:
    """Return the column with these keys, the inverse of `normalized_keys`; NULL where `nulls` is true."""
    mask = None if nulls is None or not nulls.any() else nulls
    match sql_type.kind:
        case Kind.NULL:
            return pa.nulls(len(keys))
        case Kind.BOOLEAN:
            return pa.array(keys.astype(np.bool_), mask=mask)
        case Kind.REAL | Kind.DOUBLE:
            doubles = _mirror_negatives(keys).view(np.float64)
            return pa.array(doubles.astype(sql_type.arrow.to_pandas_dtype()), mask=mask)
        case Kind.DECIMAL:
            return decimal_array(keys.view(np.uint64), keys >> 63, sql_type, mask)
        case Kind.DATE:
            return pa.array(keys.astype(np.int32), mask=mask).view(sql_type.arrow)
        case _ if sql_type.is_temporal:
            return pa.array(keys, mask=mask).view(sql_type.arrow)
        case _:
            return pa.array(keys.astype(sql_type.arrow.to_pandas_dtype()), sql_type.arrow, mask=mask)


def _mirror_negatives(bits: np.ndarray) -> np.ndarray:
    """Swap the bits of negative doubles and their keys: the greater the magnitude, the lower the key."""
    mirrored: np.ndarray = bits ^ ((bits >> _SIGN_BIT) & np.int64(_POSITIVE))
    return mirrored


def hashable(value: Any) -> Any:
    """Return the value as a dictionary finds it: every NaN is the one `NAN`."""
    return NAN if value != value else value


def canonical_key(key: Any) -> Any:
    """Apply `hashable` to the key of a map: a value or a tuple of values."""
    if isinstance(key, tuple):
        return tuple([hashable(part) for part in key])
    return hashable(key)


def comparable(value: Any) -> tuple[int, Any]:
    """Return a pair that sorts as the value does among values of its type: NULL, numbers, NaN."""
    if value is None:
        return (0, 0)
    return (2, 0) if value != value else (1, value)
