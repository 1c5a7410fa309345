"""Where the rows of a load are cut into segments: by rows and by bytes, at the boundary of a partition where there is
one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from remuda.types.arrow_arrays import is_dictionary
from remuda.types.arrow_texts import has_texts, ranges_within, text_bytes, text_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

PART_ROWS = 16_000_000
"""Rows of a segment: a look-up takes longer in two segments than in one that is twice as large, and an index is asked
in every segment, so few large ones are better than many."""

SEGMENT_BYTES = 2_000_000_000
"""Bytes of the rows of a segment: no column of it then has more than one Arrow array of texts can have."""

_DICTIONARY_CODE = 4


def row_bytes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> int | np.ndarray:
    """Return how many bytes each row has: one number where that is the same for all, or does not matter.

    It does not where all rows together are no more than a segment can have.
    """
    fixed = sum(map(_width, columns))
    texts = sum(map(text_bytes, columns))
    return fixed if not texts or len(columns[0]) * fixed + texts <= SEGMENT_BYTES else row_sizes(columns)


def row_sizes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> np.ndarray:
    """Return how many bytes each row has, those of dictionaries not counted."""
    sizes = np.full(len(columns[0]), sum(map(_width, columns)), np.int64)
    for column in columns:
        if has_texts(column):
            sizes += text_lengths(column)
    return sizes


def cut_rows(order: np.ndarray, offsets: np.ndarray, sizes: int | np.ndarray) -> list[tuple[int, int]]:
    """Return ranges [start, stop) of the rows in order of their partitions, each for a segment.

    `offsets` are those of the partitions in that order, `sizes` the bytes of each row as it was given. Segments of
    about equally many rows end at partitions. One with too many bytes is cut again: at partitions, and inside of a
    partition only where that has too many by itself.
    """
    rows = int(offsets[-1])
    parts = max(1, round(rows / PART_ROWS))
    targets = [rows * part // parts for part in range(1, parts)]
    ends = sorted({int(each) for each in offsets[np.searchsorted(offsets, targets)]} | {0, rows})
    ranges = [(start, stop) for start, stop in itertools.pairwise(ends) if stop > start]
    if not isinstance(sizes, np.ndarray):
        most = max(1, SEGMENT_BYTES // sizes)
        return [part for each in ranges for part in _cut_alike(each, offsets, most)]
    bytes_before = np.concatenate([[0], np.cumsum(sizes[order], dtype=np.int64)])
    return [part for each in ranges for part in _cut_by_bytes(each, offsets, bytes_before)]


def _cut_alike(rows: tuple[int, int], offsets: np.ndarray, most: int) -> list[tuple[int, int]]:
    if rows[1] - rows[0] <= most:
        return [rows]
    return _cut_by_bytes(rows, offsets, np.arange(int(offsets[-1]) + 1) * (SEGMENT_BYTES // most))


def _cut_by_bytes(rows: tuple[int, int], offsets: np.ndarray, bytes_before: np.ndarray) -> list[tuple[int, int]]:
    inside = offsets[(offsets > rows[0]) & (offsets < rows[1])]
    cuts = np.unique(np.concatenate([[rows[0]], inside, [rows[1]]]))
    sizes = np.diff(bytes_before[cuts])
    pieces: list[tuple[int, int]] = []
    # About equally many bytes in each, instead of a small rest.
    total = int(sizes.sum())
    even = total // -(-total // SEGMENT_BYTES) + int(sizes.max())
    for first, end in ranges_within(sizes, min(SEGMENT_BYTES, even)):
        start, stop = int(cuts[first]), int(cuts[end])
        if bytes_before[stop] - bytes_before[start] <= SEGMENT_BYTES:
            pieces.append((start, stop))
        else:
            within = ranges_within(np.diff(bytes_before[start : stop + 1]), SEGMENT_BYTES)
            pieces.extend((start + begin, start + finish) for begin, finish in within)
    return pieces


def _width(column: pa.Array | pa.ChunkedArray) -> int:
    """Return the bytes of a row beside its text: its value, its code or its offset."""
    if is_dictionary(column) or has_texts(column):
        return _DICTIONARY_CODE
    return max(1, int(column.type.bit_width) // 8)
