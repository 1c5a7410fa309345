"""Normalized keys: 64-bit integers that compare as the values of a column do, by SQL's order and SQL's equality.

NaN is one key above those of all numbers, -0.0 has the key of 0.0. Joins, groups, sorts, extremes and indexes work on
these keys, so that all of them agree on what is equal and what is less. Strings, and DECIMALs of more than 18 digits,
have no such key.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.types.arrow_arrays import decimal_array, decimal_words, fixed_values
from remuda.types.sql_type import BIGINT, Kind, SqlType

_POSITIVE = np.int64(0x7FFFFFFFFFFFFFFF)
_SIGN_BIT = np.int64(63)


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
    mirrored: np.ndarray = bits ^ ((bits >> _SIGN_BIT) & _POSITIVE)
    return mirrored
