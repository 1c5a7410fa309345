"""Window functions that are no aggregates: numbers of rows, and values of other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import nth_value_error, ntile_error
from remuda.types.arrow_arrays import null_mask
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.errors import Span
    from remuda.exec.window.window_frames import Frames
    from remuda.exec.window.window_rows import WindowRows


def _row_number(rows: WindowRows) -> np.ndarray:
    number: np.ndarray = np.arange(rows.count) - rows.partition_start + 1
    return number


def _rank(rows: WindowRows) -> np.ndarray:
    rank: np.ndarray = rows.peer_start - rows.partition_start + 1
    return rank


def _dense_rank(rows: WindowRows) -> np.ndarray:
    rank: np.ndarray = rows.group_id - rows.group_id[rows.partition_start] + 1
    return rank


def _percent_rank(rows: WindowRows) -> np.ndarray:
    size = rows.partition_stop - rows.partition_start
    rank: np.ndarray = (_rank(rows) - 1) / np.maximum(size - 1, 1)
    return rank


def _cume_dist(rows: WindowRows) -> np.ndarray:
    share: np.ndarray = (rows.peer_stop - rows.partition_start) / (rows.partition_stop - rows.partition_start)
    return share


NUMBERING: dict[str, Callable[[WindowRows], np.ndarray]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}
"""Functions of a row's position alone."""


def ntile(rows: WindowRows, buckets: pa.Array, span: Span | None = None) -> pa.Array:
    """Assign buckets of equal size, the first ones larger by one where the rows do not divide evenly."""
    if pc.any(pc.less_equal(buckets, 0)).as_py():
        raise ntile_error("the number of buckets of NTILE must be positive", span=span)
    nulls = null_mask(buckets)
    wanted = pc.fill_null(buckets, 1).cast(pa.int64()).to_numpy()
    size = rows.partition_stop - rows.partition_start
    number = np.arange(rows.count) - rows.partition_start
    small, larger = size // wanted, size % wanted
    in_larger = larger * (small + 1)
    bucket = np.where(number < in_larger, number // (small + 1), larger + (number - in_larger) // np.maximum(small, 1))
    return pa.array(bucket + 1, mask=nulls)


def shifted(rows: WindowRows, arguments: Sequence[pa.Array], sign: int, *, ignores_nulls: bool) -> pa.Array:
    """LAG (sign -1) and LEAD: the value some rows away in the partition, else the default, else NULL."""
    values = arguments[0]
    here = np.arange(rows.count)
    offset_nulls = null_mask(arguments[1]) if len(arguments) > 1 else None
    offset = np.ones(rows.count, np.int64)
    if len(arguments) > 1:
        offset = pc.fill_null(arguments[1], 0).cast(pa.int64()).to_numpy()
    # An offset beyond all rows finds none, however large it is.
    offset = sign * np.clip(offset, -rows.count - 1, rows.count + 1)
    nulls = null_mask(values)
    positions = _among_present(~nulls, here, offset) if ignores_nulls and nulls is not None else here + offset
    outside = (positions < rows.partition_start) | (positions >= rows.partition_stop)
    found = values.take(pa.array(positions, mask=outside))
    if len(arguments) > 2:
        found = pc.if_else(pa.array(outside), _plain(arguments[2]), _plain(found))
    return found if offset_nulls is None else pc.if_else(pa.array(offset_nulls), pa.scalar(None, found.type), found)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _among_present(present: np.ndarray, here: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return the position so many rows away where only some rows count; -1 where there are not so many."""
    positions = np.flatnonzero(present)
    before = np.cumsum(present) - present  # rows that count before each row
    # Ahead, the first row that counts behind this one is the next of all, or this one's own number and one more.
    number = np.where(offset < 0, before + offset, before + offset - ~present.astype(np.bool_))
    number = np.where(offset == 0, -1, number)
    inside = (number >= 0) & (number < len(positions))
    found = np.full(len(here), -1, np.int64)
    found[inside] = positions[number[inside]]
    return np.where(offset == 0, here, found)


def value_in_frame(values: pa.Array, frames: Frames, number: pa.Array | None, *, ignores_nulls: bool) -> pa.Array:
    """Return the value of the row with a number within the frame, counted from 1; without one that of the last row."""
    nulls = null_mask(values)
    if ignores_nulls and nulls is not None:
        values = values.drop_null()
        frames = frames.within(np.concatenate([[0], np.cumsum(~nulls)]))
    if number is None:
        wanted, unknown = frames.sizes - 1, None
    else:
        if pc.any(pc.less_equal(number, 0)).as_py():
            raise nth_value_error("the number of a row for NTH_VALUE must be positive")
        unknown = null_mask(number)
        wanted = pc.fill_null(number, 1).cast(pa.int64()).to_numpy() - 1
    positions = frames.position_of(wanted)
    missing = positions < 0 if unknown is None else (positions < 0) | unknown
    return values.take(pa.array(positions, mask=missing))
