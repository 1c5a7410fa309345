"""The memory that rows are put into when a segment is made of them.

A look-up reads a value here and a value there. In pages of 4 KiB each of them is on a page of its own, and the
processor has to find out first where that page lies: with ten million rows that took a sixth of a look-up's time. So
the values of large columns are put into arrays of numpy, which asks the system for pages of 2 MiB; Arrow does not.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.storage.segment.row_order import taken
from remuda.types.arrow_arrays import buffer_values, flat, is_dictionary

LARGE = 1 << 22
"""Bytes from which on numpy asks for large pages."""


def rows_of(column: pa.Array | pa.ChunkedArray, positions: pa.Array) -> pa.Array:
    """Return the rows at positions that exist, in memory that goes back to the system once it is freed
    (`release_unused`)."""
    pool = pa.system_memory_pool()
    if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1:
        column = pa.concat_arrays(column.chunks, memory_pool=pool)
    array = flat(column)
    if is_dictionary(array):
        codes = rows_of(array.indices, positions)
        return pa.DictionaryArray.from_arrays(codes, array.dictionary, ordered=array.type.ordered)
    width = _bytes_of_a_value(array.type)
    if width is None:
        return _in_large_pages(pc.take(array, positions, boundscheck=False, memory_pool=pool))
    values = taken(buffer_values(array, 1, f"V{width}"), positions.to_numpy())
    present = pc.take(array.is_valid(), positions, boundscheck=False).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(array.type, len(positions), [present, pa.py_buffer(values)])


def release_unused() -> None:
    """Gives memory that was freed back to the system: both pools keep it otherwise, in pieces that do not fit again."""
    pa.default_memory_pool().release_unused()
    pa.system_memory_pool().release_unused()


def _bytes_of_a_value(arrow_type: pa.DataType) -> int | None:
    """Return the bytes of a value; None where values are bits or of different lengths."""
    try:
        bits = arrow_type.bit_width
    except ValueError:
        return None
    return None if bits % 8 else bits // 8


def _in_large_pages(array: pa.Array) -> pa.Array:
    buffers = [
        pa.py_buffer(np.frombuffer(buffer, np.uint8).copy()) if buffer is not None and buffer.size >= LARGE else buffer
        for buffer in array.buffers()
    ]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, array.offset)
