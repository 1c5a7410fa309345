"""Columns of texts and bytes of any size: an Arrow array of them ends at 2 GiB, as its offsets have 32 bits.

A column that is longer stays in chunks. What makes one array of chunks, or of the values of a dictionary, asks here
first whether they fit, and works piece by piece where they do not.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.types.arrow_arrays import flat, is_dictionary, null_mask, string_parts
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT_BYTES = 2_000_000_000
"""Bytes of texts that are put into one array: below 2 GiB, with room for what an operation pads."""


def has_texts(column: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether the column has values of different lengths, without a dictionary."""
    return bool(pa.types.is_string(column.type) or pa.types.is_binary(column.type))


def text_bytes(column: pa.Array | pa.ChunkedArray) -> int:
    """Return how many bytes the texts of a column have; 0 for other columns and where a dictionary has them."""
    if not has_texts(column):
        return 0
    ends = (string_parts(chunk)[0] for chunk in chunks_of(column) if len(chunk))
    return sum(int(offsets[-1]) - int(offsets[0]) for offsets in ends)


def text_lengths(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return the bytes of each text."""
    lengths = [np.diff(string_parts(chunk)[0]) for chunk in chunks_of(column) if len(chunk)]
    return np.concatenate(lengths) if lengths else np.empty(0, np.int32)


def chunks_of(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def fits_one_array(column: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether the chunks of a column can be put together."""
    if isinstance(column, pa.ChunkedArray) and is_dictionary(column):
        return sum(text_bytes(chunk.dictionary) for chunk in column.chunks) <= TEXT_BYTES
    return text_bytes(column) <= TEXT_BYTES


def decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column without its dictionaries, in chunks where one array could not hold them."""
    if not is_dictionary(column):
        return column
    pieces = [piece.dictionary_decode() for chunk in chunks_of(column) for piece in _decodable(chunk)]
    return pieces[0] if len(pieces) == 1 else pa.chunked_array(pieces, column.type.value_type)


def _decodable(array: pa.DictionaryArray) -> Iterator[pa.DictionaryArray]:
    """Cut an array with a dictionary where its decoded values would be too long for one array."""
    if not has_texts(array.dictionary) or text_bytes(array.dictionary) * len(array) <= TEXT_BYTES:
        yield array
        return
    sizes = pc.fill_null(pc.take(pc.binary_length(array.dictionary), array.indices), 0)
    for start, stop in ranges_within(np.asarray(sizes), TEXT_BYTES):
        yield array.slice(start, stop - start)


def ranges_within(sizes: np.ndarray, limit: int) -> list[tuple[int, int]]:
    """Cut rows into ranges [start, stop) of at most `limit` bytes each; a row that is larger is alone in its range.

    >>> ranges_within(np.array([4, 4, 4, 20, 1]), 10)
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    cuts = [0]
    while cuts[-1] < len(ends):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, before + limit, side="right"))))
    return list(itertools.pairwise(cuts))


def in_short_chunks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts with offsets of 64 bits, or of views, in chunks that a cast to offsets of 32 bits takes.

    Each is a copy: the offsets of a slice would still count from the beginning of the whole array.
    """
    if not is_text(column.type) or has_texts(column):
        return column
    pieces: list[pa.Array] = []
    for chunk in column.chunks:
        ranges = ranges_within(_lengths(chunk), TEXT_BYTES)
        if len(ranges) == 1:
            pieces.append(chunk)
        else:
            pieces.extend(pa.concat_arrays([chunk.slice(start, stop - start)]) for start, stop in ranges)
    return pa.chunked_array(pieces, column.type)


def _lengths(array: pa.Array) -> np.ndarray:
    if array.type not in (pa.string_view(), pa.binary_view()):
        return np.asarray(pc.fill_null(pc.binary_length(array), 0))
    # A view of 16 bytes begins with the length; Arrow has no function for it.
    lengths = np.frombuffer(array.buffers()[1], "<i4")[4 * array.offset :: 4][: len(array)]
    nulls = null_mask(array)
    return lengths if nulls is None else np.where(nulls, 0, lengths)


def is_text(given: pa.DataType) -> bool:
    """Tell whether a type is of texts or bytes, however Arrow keeps them."""
    kinds = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary(), pa.string_view(), pa.binary_view())
    return given in kinds


def gathered(column: pa.Array | pa.ChunkedArray, positions: pa.Array, pool: pa.MemoryPool | None = None) -> pa.Array:
    """Return the values at positions that exist, which fit one array though the whole column may not."""
    if not isinstance(column, pa.ChunkedArray) or fits_one_array(column):
        return pc.take(flat(column), positions, boundscheck=False, memory_pool=pool)
    return gathered_by_chunk(column, np.asarray(positions), pool)


def gathered_by_chunk(
    column: pa.Array | pa.ChunkedArray, positions: np.ndarray, pool: pa.MemoryPool | None = None
) -> pa.Array:
    """Return the values at positions that exist: those of each chunk, and then all in the order of the positions.

    Arrow's own `take` puts all chunks together first.
    """
    if not isinstance(column, pa.ChunkedArray) or column.num_chunks == 1:
        return pc.take(chunks_of(column)[0], pa.array(positions), boundscheck=False, memory_pool=pool)
    wanted = positions.astype(np.int64, copy=False)
    starts = np.cumsum([0, *map(len, column.chunks)])
    order = np.argsort(wanted, kind="stable")
    ascending = wanted[order]
    ends = np.searchsorted(ascending, starts)
    pieces = [
        pc.take(chunk, pa.array(ascending[first:end] - start), boundscheck=False, memory_pool=pool)
        for chunk, start, (first, end) in zip(column.chunks, starts.tolist(), itertools.pairwise(ends), strict=False)
        if end > first
    ]
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    together = pa.concat_arrays([decoded(piece) for piece in pieces] or [pa.nulls(0, _plain(column.type))])
    return pc.take(together, pa.array(back), boundscheck=False, memory_pool=pool)


def _plain(given: pa.DataType) -> pa.DataType:
    return given.value_type if pa.types.is_dictionary(given) else given
