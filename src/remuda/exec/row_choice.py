"""Choosing rows by a condition: several times faster than Arrow's own filter where columns are of fixed width.

The positions of the chosen rows are found once and numpy gathers them from each column's memory; Arrow tests the bits
of the condition again for every column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.storage.arrow_arrays import is_dictionary

if TYPE_CHECKING:
    from collections.abc import Callable

FEW, NEARLY_ALL = 0.1, 0.95
"""Shares of the rows below and above which Arrow's filter, which skips and copies whole words, is the faster one."""

_DTYPES = {1: "<i1", 2: "<i2", 4: "<i4", 8: "<i8"}


def choose(batch: pa.RecordBatch, condition: pa.BooleanArray) -> pa.RecordBatch:
    """The rows for which the condition is TRUE."""
    count = condition.true_count
    if count == batch.num_rows:
        return batch
    if count == 0:
        return batch.slice(0, 0)
    if not FEW <= count / batch.num_rows <= NEARLY_ALL:
        return batch.filter(condition)
    if not batch.num_columns:
        return batch.slice(0, count)
    positions = np.flatnonzero(truth_values(condition))
    wanted: pa.Array | None = None
    arrays: list[pa.Array] = []
    for array in batch.columns:
        gathered = _gathered(array, positions)
        if gathered is None:
            wanted = pa.array(positions) if wanted is None else wanted
            gathered = _take(array, wanted)
        arrays.append(gathered)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def truth_values(condition: pa.BooleanArray) -> np.ndarray:
    """TRUE as ones; NULL counts as FALSE."""
    validity, values = condition.buffers()
    bits = _unpacked(values, condition)
    if condition.null_count:
        bits = bits & _unpacked(validity, condition)
    return bits


def _unpacked(buffer: pa.Buffer, array: pa.Array) -> np.ndarray:
    first, last = array.offset >> 3, (array.offset + len(array) + 7) >> 3
    unpacked = np.unpackbits(np.frombuffer(buffer, np.uint8)[first:last], bitorder="little")
    skipped = array.offset & 7
    # As truth values, among which numpy finds the true ones many times faster than among numbers those that are not 0.
    return unpacked[skipped : skipped + len(array)].view(np.bool_)


def _gathered(array: pa.Array, positions: np.ndarray) -> pa.Array | None:
    """The values at these positions, where they are of fixed width and none is NULL; else None."""
    if is_dictionary(array):
        codes = _gathered(array.indices, positions)
        return None if codes is None else pa.DictionaryArray.from_arrays(codes, array.dictionary, safe=False)
    if array.null_count or not pa.types.is_primitive(array.type) or pa.types.is_boolean(array.type):
        return None
    dtype = _DTYPES.get(array.type.bit_width // 8)
    if dtype is None:
        return None
    width = array.type.bit_width // 8
    values = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * width)
    # Arrow keeps the memory it has freed, where numpy would ask the system for it again with every batch.
    buffer = pa.allocate_buffer(len(positions) * width)
    values.take(positions, out=np.frombuffer(buffer, dtype), mode="clip")
    return pa.Array.from_buffers(array.type, len(positions), [None, buffer])


def _take(array: pa.Array, positions: pa.Array) -> pa.Array:
    return _arrow_take(array, positions, boundscheck=False)


_arrow_take: Callable[..., pa.Array] = pc.take
