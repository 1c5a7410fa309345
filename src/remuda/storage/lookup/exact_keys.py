"""Converts Arrow arrays of keys to the type of a column, exactly: a value that the type does not hold becomes NULL.

A NULL key has no row, so such a value finds nothing, as a comparison in SQL does.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.errors import value_error
from remuda.types import INTEGER_RANGES, Kind, SqlType, common_type, from_arrow
from remuda.types.arrow_arrays import is_dictionary
from remuda.types.arrow_compute import pc

_ZONED = {Kind.TIMESTAMP_TZ}


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
    if sql_type.is_integer and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        array = _inside(array, *INTEGER_RANGES[sql_type.kind])
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


def _inside(array: pa.Array, low: int, high: int) -> pa.Array:
    """Return whole numbers of a range, NULL elsewhere."""
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    fits = (values >= low) & (values < high + 1)
    if values.dtype.kind == "f":
        fits &= values == np.trunc(values)
    return array if bool(fits.all()) else pc.if_else(pa.array(fits), array, pa.scalar(None, array.type))


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast by halves, so that a value that Arrow refuses takes no other one with it."""
    try:
        converted = pc.cast(array, target, safe=True)
    except pa.ArrowException:
        if len(array) == 1:
            return pa.nulls(1, target)
        middle = len(array) // 2
        return pa.concat_arrays([_cast(array.slice(0, middle), target), _cast(array.slice(middle), target)])
    same = pc.equal(pc.cast(converted, array.type, safe=False), array)
    if pa.types.is_floating(array.type):
        same = pc.or_(same, pc.is_nan(array))
    return pc.if_else(same, converted, pa.scalar(None, target))
