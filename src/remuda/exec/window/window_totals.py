"""Sums, extremes and counts over frames, for all rows at once.

Exact numbers are differences of running totals. Floating-point totals are not: a difference would keep the rounding,
and the infinities, of rows that the frame does not have. They are put together from totals of blocks of 1, 2, 4, ...
rows, so that only rows of the frame take part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from remuda.exec.window.window_frames import Frames, Piece
    from remuda.exec.window.window_rows import WindowRows


def exact_totals(values: np.ndarray, frames: Frames) -> np.ndarray:
    """Sums of integers, 64-bit ones or Python's own."""
    running = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=running[1:])
    totals: np.ndarray = sum(running[stop] - running[start] for start, stop in frames.pieces)  # type: ignore[assignment]
    return totals


def floating_totals(values: np.ndarray, frames: Frames, rows: WindowRows) -> np.ndarray:
    totals = np.zeros(rows.count)
    for start, stop in frames.pieces:
        if is_whole_partition((start, stop), rows):
            firsts = rows.partition_start[np.flatnonzero(rows.partition_start == np.arange(rows.count))]
            totals += np.add.reduceat(values, firsts)[rows.partition_number] if rows.count else 0.0
        else:
            totals += _block_totals(values, start, stop)
    return totals


def is_whole_partition(piece: Piece, rows: WindowRows) -> bool:
    start, stop = piece
    return bool((start == rows.partition_start).all() and (stop == rows.partition_stop).all())


def _block_totals(values: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """A frame is cut into at most two blocks of each size: those at its ends that no larger block covers.

    rows 3 to 10:   3 | 4 5 6 7 | 8 9 | 10
    """
    totals = np.zeros(len(start))
    blocks, low, high = values, start.copy(), stop.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        first, last = low[open_], high[open_]
        odd_first = (first & 1) == 1
        totals[open_[odd_first]] += blocks[first[odd_first]]
        odd_last = ((last & 1) == 1) & (last > first + odd_first)
        totals[open_[odd_last]] += blocks[last[odd_last] - 1]
        low[open_], high[open_] = (first + 1) >> 1, last >> 1
        open_ = open_[low[open_] < high[open_]]
        even = len(blocks) & ~1
        blocks = blocks[0:even:2] + blocks[1:even:2]
    return totals


def lowest(codes: np.ndarray, frames: Frames, nothing: int) -> np.ndarray:
    """The lowest code of each frame, `nothing` (above all codes) where it is empty."""
    result = np.full(len(codes), nothing, codes.dtype)
    for start, stop in frames.pieces:
        np.minimum(result, _lowest(codes, start, stop, nothing), out=result)
    return result


def _lowest(codes: np.ndarray, start: np.ndarray, stop: np.ndarray, nothing: int) -> np.ndarray:
    """Two overlapping blocks, of the largest power of two that fits, cover a frame."""
    result = np.full(len(start), nothing, codes.dtype)
    sizes = stop - start
    levels = np.frexp(sizes.astype(np.float64))[1] - 1
    blocks = codes
    for level in range(int(levels.max(initial=-1)) + 1):
        here = np.flatnonzero((levels == level) & (sizes > 0))
        width = 1 << level
        result[here] = np.minimum(blocks[start[here]], blocks[stop[here] - width])
        if len(blocks) > width:
            blocks = np.minimum(blocks[:-width], blocks[width:])
    return result
