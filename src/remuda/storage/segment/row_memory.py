"""The memory that rows are put into when a segment is made of them.

A look-up reads a value here and a value there. In pages of 4 KiB each of them is on a page of its own, and the
processor has to find out first where that page lies: with ten million rows that took a sixth of a look-up's time. So
the values of large columns are put into arrays of numpy, which asks the system for pages of 2 MiB; Arrow does not.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.storage.segment.row_order import taken
from remuda.types.arrow_arrays import buffer_values, flat, is_dictionary, null_mask, string_parts
from remuda.types.arrow_compute import pc
from remuda.types.arrow_texts import (
    fits_one_array,
    gathered,
    gathered_by_chunk,
    has_texts,
    text_bytes,
    text_lengths,
)

LARGE = 1 << 22
"""Bytes from which on numpy asks for large pages."""


def rows_of(column: pa.Array | pa.ChunkedArray, positions: pa.Array) -> pa.Array:
    """Return the rows at positions that exist, in memory that goes back to the system once it is freed
    (`release_unused`)."""
    pool = pa.system_memory_pool()
    if has_texts(column) and text_bytes(column) >= LARGE:
        return _texts_of(column, positions)
    if not fits_one_array(column):
        return _in_large_pages(gathered(column, positions, pool))
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


def _texts_of(column: pa.Array | pa.ChunkedArray, positions: pa.Array) -> pa.Array:
    """Return the texts at positions, gathered some megabytes at a time into the memory that they stay in.

    Put together first, taken as a whole and copied into large pages they would be in memory three times more.
    """
    wanted = np.asarray(positions)
    offsets = np.zeros(len(wanted) + 1, np.int32)
    np.cumsum(taken(text_lengths(column), wanted), out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    present = np.ones(len(wanted), np.bool_)
    step = max(256, len(wanted) * LARGE // max(len(data), 1))
    for start in range(0, len(wanted), step):
        piece = gathered_by_chunk(column, wanted[start : start + step])
        begins, texts = string_parts(piece)
        data[offsets[start] : offsets[start + len(piece)]] = texts[begins[0] : begins[-1]]
        nulls = null_mask(piece)
        if nulls is not None:
            present[start : start + len(piece)] = ~nulls
    validity = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(column.type, len(wanted), [validity, pa.py_buffer(offsets), pa.py_buffer(data)])


def release_unused() -> None:
    """Gives memory that was freed back to the system: both pools keep it otherwise, in pieces that do not fit again."""
    pa.default_memory_pool().release_unused()
    pa.system_memory_pool().release_unused()


def trim_heap() -> None:
    """Gives memory back that the C library keeps of arrays below 32 MiB, as the batches of a table can be.

    `release_unused` of Arrow's pool for it does not (version 26): after each of two tables of 512 MiB that were loaded
    as many were still there. It takes milliseconds, so it is for loads that are large.
    """
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)


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
