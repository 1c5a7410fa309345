"""Frames: for every row of a window, which rows of its partition a call sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import frame_error
from remuda.exec.sort.ordering import order_codes
from remuda.expr import as_array, call, coerce, compile_batch, evaluate_constant
from remuda.plan.windows import FrameEnd, FrameExclusion, FrameUnit
from remuda.types import common_type
from remuda.types.arrow_arrays import null_mask

if TYPE_CHECKING:
    from remuda.exec.window.window_rows import WindowRows
    from remuda.expr import Column, Expression, Parameters
    from remuda.plan.traits import SortKey
    from remuda.plan.windows import Frame

Piece = tuple[np.ndarray, np.ndarray]
"""The positions [start, stop) of the rows seen from each row."""


@dataclass(frozen=True, slots=True)
class Frames:
    """What is seen from each row: one piece, or, where rows around it are left out, several, in order."""

    pieces: tuple[Piece, ...]

    @property
    def sizes(self) -> np.ndarray:
        sizes = [stop - start for start, stop in self.pieces]
        total: np.ndarray = np.sum(sizes, axis=0)
        return total

    def within(self, positions: np.ndarray) -> Frames:
        """Return the frames counted in other positions: `positions[i]` of the new rows stand before row i."""
        return Frames(tuple((positions[start], positions[stop]) for start, stop in self.pieces))

    def position_of(self, number: np.ndarray) -> np.ndarray:
        """Return the position of the row with a number, counted from 0, within each frame; -1 where there is none."""
        positions = np.full(len(number), -1, np.int64)
        remaining = number.copy()
        for start, stop in self.pieces:
            size = stop - start
            here = (positions < 0) & (remaining >= 0) & (remaining < size)
            positions[here] = start[here] + remaining[here]
            remaining = remaining - size
        return positions


@dataclass(frozen=True, slots=True)
class RangeOrder:
    """The only column of the order, where RANGE counts from its values."""

    column: Column
    key: SortKey
    layout: dict[int, int]


def frames_of(rows: WindowRows, frame: Frame, order: RangeOrder | None, parameters: Parameters) -> Frames:
    start = _bound(rows, frame, frame.start, frame.start_offset, order, parameters, is_end=False)
    stop = _bound(rows, frame, frame.end, frame.end_offset, order, parameters, is_end=True)
    start = np.clip(start, rows.partition_start, rows.partition_stop)
    stop = np.maximum(start, np.clip(stop, rows.partition_start, rows.partition_stop))
    return Frames(_without_excluded(rows, start, stop, frame.exclusion))


def _bound(
    rows: WindowRows,
    frame: Frame,
    end: FrameEnd,
    offset: Expression | None,
    order: RangeOrder | None,
    parameters: Parameters,
    *,
    is_end: bool,
) -> np.ndarray:
    match end:
        case FrameEnd.UNBOUNDED_PRECEDING:
            return rows.partition_start
        case FrameEnd.UNBOUNDED_FOLLOWING:
            return rows.partition_stop
        case FrameEnd.CURRENT_ROW if frame.unit is FrameUnit.ROWS:
            return np.arange(rows.count) + is_end
        case FrameEnd.CURRENT_ROW:
            return rows.peer_stop if is_end else rows.peer_start
    assert offset is not None, "the end has an offset"
    distance = _distance(offset, parameters)
    sign = -1 if end is FrameEnd.PRECEDING else 1
    if frame.unit is FrameUnit.RANGE:
        assert order is not None, "RANGE with an offset has one column of order"
        return _range_bound(rows, offset, sign, order, parameters, is_end=is_end)
    # A distance beyond all rows is as good as the number of rows.
    step = sign * min(int(distance), rows.count + 1)
    if frame.unit is FrameUnit.ROWS:
        return np.arange(rows.count) + step + is_end
    return _group_bound(rows, step, is_end=is_end)


def _distance(offset: Expression, parameters: Parameters) -> Any:
    distance = evaluate_constant(offset, parameters.values)
    if distance is None or distance < 0:
        raise frame_error(f"the offset of a frame must not be {'NULL' if distance is None else 'negative'}")
    return distance


def _group_bound(rows: WindowRows, step: int, *, is_end: bool) -> np.ndarray:
    groups = rows.group_id + step
    before = groups < rows.group_id[rows.partition_start] if rows.count else groups < 0
    after = groups > rows.group_id[rows.partition_stop - 1] if rows.count else groups < 0
    inside = rows.group_starts[np.clip(groups + is_end, 0, len(rows.group_starts) - 1)]
    return np.where(before, rows.partition_start, np.where(after, rows.partition_stop, inside))


def _range_bound(
    rows: WindowRows, offset: Expression, sign: int, order: RangeOrder, parameters: Parameters, *, is_end: bool
) -> np.ndarray:
    """Find the first row that is not before (an end: that is behind) the value at the distance."""
    ahead = (sign > 0) != order.key.descending
    target = call("+" if ahead else "-", order.column, offset)
    assert target is not None, "the binder checked the types"
    compared = common_type(order.column.type, target.type)
    assert compared is not None, "the binder checked the types"
    values, targets = (
        as_array(compile_batch(coerce(side, compared), order.layout)(rows.batch, parameters), rows.count)
        for side in (order.column, target)
    )
    codes = order_codes(pa.concat_arrays([values, targets])).astype(np.int64)
    own, wanted = codes[: rows.count], codes[rows.count :]
    most = int(codes.max(initial=0)) + 1
    if order.key.descending:
        own, wanted = most - 1 - own, most - 1 - wanted
    nulls = null_mask(values)
    if nulls is not None:
        own = np.where(nulls, -1 if order.key.nulls_first else most, own)
    # Partition and value in one number, ascending over all rows.
    span = most + 2
    keys = rows.partition_ordinal * span + own + 1
    found = np.searchsorted(keys, rows.partition_ordinal * span + wanted + 1, side="right" if is_end else "left")
    if nulls is None:
        return found
    return np.where(nulls, rows.peer_stop if is_end else rows.peer_start, found)


def _without_excluded(
    rows: WindowRows, start: np.ndarray, stop: np.ndarray, exclusion: FrameExclusion
) -> tuple[Piece, ...]:
    here = np.arange(rows.count)
    if exclusion is FrameExclusion.NO_OTHERS:
        return ((start, stop),)
    is_row = exclusion is FrameExclusion.CURRENT_ROW
    first, last = (here, here + 1) if is_row else (rows.peer_start, rows.peer_stop)
    before = (start, np.maximum(start, np.minimum(stop, first)))
    behind = (np.minimum(stop, np.maximum(start, last)), stop)
    if exclusion is not FrameExclusion.TIES:
        return (before, behind)
    inside = (here >= start) & (here < stop)
    return (before, (here, here + inside), behind)
