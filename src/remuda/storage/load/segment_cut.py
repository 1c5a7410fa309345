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
"""Bytes of the rows of a segment of one partition: no column of it then has more than one Arrow array of texts can
have."""

GROUP_BYTES = 512 << 20
"""Target size of a partition group: bytes of the rows of its segments. A group with more is split."""

LOADED_SHARE = 0.75
"""A segment of a load has this share of its group's target at most, so that a group is not split at once."""

FOLDED_SHARE = 1 / 16
"""Rows of several groups are cut into one segment for each group where they have this share of all targets."""

_DICTIONARY_CODE = 4


def most_bytes() -> int:
    """Return the bytes of the rows of a segment, at most, where it can be cut at a partition."""
    return min(SEGMENT_BYTES, int(LOADED_SHARE * GROUP_BYTES))


def is_worth_cutting(size: int, cuts: Sequence[int]) -> bool:
    """Tell whether so many bytes are cut into a segment for each group: fewer would be too many small segments."""
    return size >= FOLDED_SHARE * GROUP_BYTES * (len(cuts) + 1)


def worthwhile_cuts(columns: Sequence[pa.Array | pa.ChunkedArray], cuts: Sequence[int]) -> Sequence[int]:
    """Return the cuts of the groups that rows are to be written into, nothing where they are too few for that."""
    return cuts if cuts and is_worth_cutting(_total_bytes(columns), cuts) else ()


def row_bytes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> int | np.ndarray:
    """Return how many bytes each row has: one number where that is the same for all, or does not matter.

    It does not where all rows together are no more than a segment should have.
    """
    if not any(map(text_bytes, columns)) or _total_bytes(columns) <= most_bytes():
        return sum(map(_width, columns))
    return row_sizes(columns)


def _total_bytes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> int:
    return len(columns[0]) * sum(map(_width, columns)) + sum(map(text_bytes, columns))


def row_sizes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> np.ndarray:
    """Return how many bytes each row has, those of dictionaries not counted."""
    sizes = np.full(len(columns[0]), sum(map(_width, columns)), np.int64)
    for column in columns:
        if has_texts(column):
            sizes += text_lengths(column)
    return sizes


def cut_rows(
    order: np.ndarray, offsets: np.ndarray, sizes: int | np.ndarray, cuts: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Return ranges [start, stop) of the rows in order of their partitions, each for a segment.

    `offsets` are those of the partitions in that order, `sizes` the bytes of each row as it was given, `cuts` the
    partitions before which a segment has to end. Segments of about equally many rows end at partitions. One with too
    many bytes is cut again: at partitions, and inside of a partition only where that has too many by itself.
    """
    rows = int(offsets[-1])
    parts = max(1, round(rows / PART_ROWS))
    targets = [rows * part // parts for part in range(1, parts)]
    at_partitions = [*offsets[np.searchsorted(offsets, targets)].tolist(), *offsets[list(cuts)].tolist()]
    ranges = [(start, stop) for start, stop in itertools.pairwise(sorted({0, rows, *at_partitions})) if stop > start]
    if isinstance(sizes, np.ndarray):
        bytes_before = np.concatenate([[0], np.cumsum(sizes[order], dtype=np.int64)])
        return [part for each in ranges for part in _cut_by_bytes(each, offsets, bytes_before)]
    most = max(1, most_bytes() // sizes)
    if all(stop - start <= most for start, stop in ranges):
        return ranges
    bytes_before = np.arange(rows + 1) * sizes
    return [part for each in ranges for part in _cut_by_bytes(each, offsets, bytes_before)]


def _cut_by_bytes(rows: tuple[int, int], offsets: np.ndarray, bytes_before: np.ndarray) -> list[tuple[int, int]]:
    inside = offsets[(offsets > rows[0]) & (offsets < rows[1])]
    cuts = np.unique(np.concatenate([[rows[0]], inside, [rows[1]]]))
    sizes = np.diff(bytes_before[cuts])
    pieces: list[tuple[int, int]] = []
    # About equally many bytes in each, instead of a small rest.
    total, most = int(sizes.sum()), most_bytes()
    even = total // -(-total // most) + int(sizes.max())
    for first, end in ranges_within(sizes, min(most, even)):
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
