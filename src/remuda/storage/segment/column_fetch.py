"""Fetches what is about to be read of columns whose file has holes: all columns at once, by requests in parallel.

Nothing depends on it but time. The guard of the file fetches each block that it verifies, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.storage.segment.block_guard import fetch_memory
from remuda.storage.segment.checksum import BLOCK_BYTES, BLOCK_SHIFT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Rows = slice | np.ndarray
"""A range of rows, or positions."""
Place = tuple[int, int, int]
"""Some memory: an address, and where the bytes begin and stop from there."""

_OFFSETS = {pa.string(): np.dtype("<i4"), pa.binary(): np.dtype("<i4")} | {
    pa.large_string(): np.dtype("<i8"),
    pa.large_binary(): np.dtype("<i8"),
}


def fetch_columns(columns: Sequence[pa.Array], rows: Sequence[Rows], hold: object, *, whole_dictionaries: bool) -> None:
    """Fetch some rows of columns, by two rounds of requests: texts can lie anywhere, which only their offsets tell.

    With `whole_dictionaries` also those, which Arrow needs as a whole.
    """
    parts = [(array, rows) for array in map(_stored, columns)]
    if whole_dictionaries:
        dictionaries = [array.dictionary for array in columns if pa.types.is_dictionary(array.type)]
        parts += [(each, [slice(0, len(each))]) for each in dictionaries]
    fetch_memory([place for array, those in parts for place in _fixed_places(array, those)], hold)
    fetch_memory([place for array, those in parts for place in _text_places(array, those)], hold)


def _stored(array: pa.Array) -> pa.Array:
    return array.indices if pa.types.is_dictionary(array.type) else array


def _fixed_places(array: pa.Array, rows: Sequence[Rows]) -> Iterator[Place]:
    """Yield where the masks of NULLs and the values of fixed width lie; of texts the offsets."""
    present, values, *_ = array.buffers()
    offsets = _OFFSETS.get(array.type)
    for buffer, bits in ((present, 1), (values, array.type.bit_width if offsets is None else 8 * offsets.itemsize)):
        if buffer is not None and buffer.size:
            behind = 0 if offsets is None or buffer is present else 1
            for start, stop in _byte_ranges(array.offset, rows, bits, behind):
                yield buffer.address, start, min(stop, buffer.size)


def _byte_ranges(first: int, rows: Sequence[Rows], bits: int, behind: int) -> Iterator[tuple[int, int]]:
    for each in rows:
        if isinstance(each, slice):
            yield (first + each.start) * bits >> 3, ((first + each.stop + behind) * bits + 7) >> 3
        else:
            starts = (first + each.astype(np.int64, copy=False)) * bits >> 3
            stops = starts + (behind + 1) * max(bits >> 3, 1) - 1
            blocks = np.unique(np.concatenate([starts >> BLOCK_SHIFT, stops >> BLOCK_SHIFT])).tolist()
            yield from ((block << BLOCK_SHIFT, (block << BLOCK_SHIFT) + BLOCK_BYTES) for block in blocks)


def _text_places(array: pa.Array, rows: Sequence[Rows]) -> Iterator[Place]:
    """Yield where texts lie. The offsets are not verified yet: what makes no sense is left out here."""
    width = _OFFSETS.get(array.type)
    if width is None:
        return
    _, offsets, text = array.buffers()
    if offsets is None or text is None:
        return
    ends = np.frombuffer(offsets, width)
    for each in rows:
        if isinstance(each, slice):
            edges: Iterable[tuple[int, int]] = [
                (int(ends[array.offset + each.start]), int(ends[array.offset + each.stop]))
            ]
        else:
            positions = array.offset + each.astype(np.int64, copy=False)
            edges = zip(ends[positions].tolist(), ends[positions + 1].tolist(), strict=True)
        yield from ((text.address, start, stop) for start, stop in edges if 0 <= start < stop <= text.size)
