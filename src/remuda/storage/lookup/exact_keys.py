"""Converts Arrow arrays of keys to the type of a column, exactly: a value that the type does not hold becomes NULL.

A NULL key has no row, so such a value finds nothing, as a comparison in SQL does. A DECIMAL and a DOUBLE are equal
where the one is the nearest to the other: the DOUBLE 0.1 is the DECIMAL 0.1, as SQL compares them.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from remuda.errors import value_error
from remuda.types import INTEGER_RANGES, Kind, SqlType, common_type, from_arrow
from remuda.types.arrow_arrays import is_dictionary, null_mask
from remuda.types.arrow_compute import pc

_ZONED = {Kind.TIMESTAMP_TZ}
_WIDEST = 76
"""Digits of a decimal256: 38 before the point and 38 behind it."""


def exact_keys(array: pa.Array, sql_type: SqlType, name: str) -> pa.Array:
    """Return the keys as values of a column, which errors name; NULL where its type does not hold a value exactly."""
    target = sql_type.arrow
    if array.type == target:
        return array
    if is_dictionary(array):
        return exact_keys(array.dictionary, sql_type, name).take(array.indices)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    refuse_incomparable(array.type, sql_type, name)
    if sql_type.kind is Kind.DECIMAL:
        return _decimals(array, target)
    if sql_type.is_integer:
        return _integers(array, sql_type)
    if sql_type.is_floating:
        return _floats(array, target)
    return _cast(array, target)


def refuse_incomparable(given: pa.DataType, sql_type: SqlType, name: str) -> None:
    """Raise where SQL does not compare values of an Arrow type with those of a column."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_uint64(given) and sql_type.is_numeric:
        return
    held = from_arrow(given)
    both_zoned = (held.kind in _ZONED) == (sql_type.kind in _ZONED)
    if held.kind is not Kind.NULL and (common_type(held, sql_type) is None or not both_zoned):
        raise value_error(f"the keys are {held}, and {name} is {sql_type}: cast them first")


def _integers(array: pa.Array, sql_type: SqlType) -> pa.Array:
    low, high = INTEGER_RANGES[sql_type.kind]
    if pa.types.is_decimal(array.type):
        array = _decimals(array, pa.decimal128(len(str(high)), 0))
        fits = pc.and_(pc.greater_equal(array, Decimal(low)), pc.less_equal(array, Decimal(high)))
    else:
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        whole = (values >= low) & (values < high + 1)
        if values.dtype.kind == "f":
            whole &= values == np.trunc(values)
        fits = pa.array(whole)
    return _kept(array, fits).cast(sql_type.arrow)


def _floats(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return whole numbers exactly, and other decimals as the DOUBLE nearest to them, which a REAL may not hold."""
    if pa.types.is_integer(array.type):
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        floats = values.astype(target.to_pandas_dtype())
        limits = np.iinfo(values.dtype)
        held = (floats >= limits.min) & (floats < limits.max + 1)
        held[held] = floats[held].astype(values.dtype) == values[held]
        return _kept(pa.array(floats, mask=null_mask(array)), pa.array(held))
    if pa.types.is_decimal(array.type):
        given = array.cast(pa.decimal256(_WIDEST, array.type.scale))
        array = array.cast(pa.float64())
        array = _kept(array, pc.equal(array.cast(given.type), given))
    narrow = pc.cast(array, target, safe=False)
    return _kept(narrow, pc.or_(pc.equal(narrow.cast(array.type), array), pc.is_nan(array)))


def _decimals(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return decimals of a precision and scale."""
    if pa.types.is_floating(array.type):
        array = array.cast(pa.float64())
        limit = 10.0 ** (target.precision - target.scale)
        array = _kept(array, pc.and_(pc.greater(array, -limit), pc.less(array, limit)))
        given, array = array, array.cast(pa.decimal256(_WIDEST, target.scale))
        array = _kept(array, pc.equal(array.cast(given.type), given))
    elif pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(38, 0))
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        wide = array.cast(pa.decimal256(_WIDEST, max(array.type.scale, target.scale)))
        cut = pc.cast(wide, pa.decimal256(_WIDEST, target.scale), safe=False)
        least, most = (Decimal((sign, (9,) * target.precision, -target.scale)) for sign in (1, 0))
        inside = pc.and_(pc.greater_equal(cut, least), pc.less_equal(cut, most))
        return _kept(cut, pc.and_(inside, pc.equal(cut.cast(wide.type), wide))).cast(target)


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast what is no number: by halves, so that a value that Arrow refuses takes no other one with it."""
    try:
        converted = pc.cast(array, target, safe=False)
    except pa.ArrowException:
        if len(array) == 1:
            return pa.nulls(1, target)
        middle = len(array) // 2
        return pa.concat_arrays([_cast(array.slice(0, middle), target), _cast(array.slice(middle), target)])
    return _kept(converted, pc.equal(pc.cast(converted, array.type, safe=False), array))


def _kept(array: pa.Array, fits: pa.Array) -> pa.Array:
    """Return the values that fit, and NULL in the place of the others."""
    return array if fits.null_count == 0 and fits.false_count == 0 else pc.if_else(fits, array, None)
