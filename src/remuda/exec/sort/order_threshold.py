"""The threshold of an order: the value of its first key that a row must reach to be among the first ones."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.expr.evaluate.truth import true_rows

SMALL_SHARE = 0.1
"""Of a batch's rows: a threshold that more of them reach is not worth finding."""

LOOKED_AT = 32_768
"""Rows of a batch that are enough to find a threshold, if not many are wanted."""

_INTEGERS = {4: "<i4", 8: "<i8"}


def reaching(column: pa.Array, threshold: pa.Scalar, *, descending: bool) -> np.ndarray:
    """For each row whether it is not behind the threshold. Ties are kept: a later key may decide them.

    NaN, which is not below any number, is above all of them. The column has no NULL.
    """
    values = _numbers(column)
    if values is None:
        return true_rows(pc.invert(pc.less(column, threshold)) if descending else pc.less_equal(column, threshold))
    least = values.dtype.type(threshold.value if pa.types.is_temporal(threshold.type) else threshold.as_py())
    reached: np.ndarray = ~(values < least) if descending else values <= least
    return reached


def last_value(ordered: pa.Array) -> pa.Scalar | None:
    """The last value, where it can be a threshold: not NULL, and not NaN, which nothing is above or below to Arrow."""
    if ordered.null_count or pa.types.is_dictionary(ordered.type):
        return None
    value = ordered[len(ordered) - 1]
    return None if pa.types.is_floating(ordered.type) and math.isnan(value.as_py()) else value


def threshold_within(column: pa.Array, wanted: int, *, descending: bool) -> pa.Scalar | None:
    """The last of the wanted first values of a batch, or of its beginning: found without sorting all of them."""
    if not 0 < wanted <= SMALL_SHARE * len(column):
        return None
    column = column.slice(0, max(LOOKED_AT, int(wanted / SMALL_SHARE)))
    if column.null_count:
        return None
    values = _numbers(column)
    if values is None or (values.dtype.kind == "f" and np.isnan(values).any()):
        return None
    place = len(values) - wanted if descending else wanted - 1
    found = np.partition(values, place)[place : place + 1]
    return pa.Array.from_buffers(column.type, 1, [None, pa.py_buffer(found)])[0]


def _numbers(column: pa.Array) -> np.ndarray | None:
    """The values of a column of numbers, dates or times, as they lie in memory."""
    arrow = column.type
    if pa.types.is_float64(arrow):
        dtype: str | None = "<f8"
    elif pa.types.is_signed_integer(arrow) or pa.types.is_temporal(arrow):
        dtype = _INTEGERS.get(arrow.bit_width // 8)
    else:
        return None
    if dtype is None:
        return None
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * arrow.bit_width // 8)
