"""Aggregates over frames."""

from __future__ import annotations

from decimal import Context
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import overflow_error
from remuda.exec.aggregate.aggregate import HashAggregateExec
from remuda.exec.aggregate.aggregate_calls import average
from remuda.exec.batch import ArrowBatch, positional
from remuda.exec.expression_cache import ExpressionCache
from remuda.exec.join.join_table import cuts
from remuda.exec.keys.integer_interner import IntegerInterner
from remuda.exec.relational.values import ValuesExec
from remuda.exec.sort.ordering import order_codes
from remuda.exec.window.window_frames import Frames
from remuda.expr import Column
from remuda.plan.aggregates import AggregateCall, partial_type
from remuda.plan.physical import HashAggregate, Phase, Values
from remuda.plan.traits import Traits
from remuda.types import BIGINT, Kind
from remuda.types.arrow_arrays import decimal_array, decimal_words, fixed_values, null_mask

if TYPE_CHECKING:
    from remuda.exec.window.window_frames import Piece
    from remuda.exec.window.window_rows import WindowRows
    from remuda.plan.windows import WindowCall
    from remuda.types import SqlType

# Sums, extremes and counts over frames, for all rows at once.
#
# Exact numbers are differences of running totals. Floating-point totals are not: a difference would keep the rounding,
# and the infinities, of rows that the frame does not have. They are put together from totals of blocks of 1, 2, 4, ...
# rows, so that only rows of the frame take part.


def exact_totals(values: np.ndarray, frames: Frames) -> np.ndarray:
    """Sum integers, 64-bit ones or Python's own."""
    running = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=running[1:])
    totals: np.ndarray = sum(running[stop] - running[start] for start, stop in frames.pieces)  # type: ignore[assignment]
    return totals


def floating_totals(values: np.ndarray, frames: Frames, rows: WindowRows) -> np.ndarray:
    totals = np.zeros(rows.count)
    for start, stop in frames.pieces:
        if is_whole_partition((start, stop), rows):
            firsts = rows.partition_start[np.flatnonzero(rows.partition_start == np.arange(rows.count))]
            totals += np.add.reduceat(values, firsts)[rows.partition_ordinal] if rows.count else 0.0
        else:
            totals += _block_totals(values, start, stop)
    return totals


def is_whole_partition(piece: Piece, rows: WindowRows) -> bool:
    start, stop = piece
    return bool((start == rows.partition_start).all() and (stop == rows.partition_stop).all())


def _block_totals(values: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Cut each frame into at most two blocks of each size: those at its ends that no larger block covers.

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
    """Return the lowest code of each frame, `nothing` (above all codes) where it is empty."""
    result = np.full(len(codes), nothing, codes.dtype)
    for start, stop in frames.pieces:
        np.minimum(result, _lowest(codes, start, stop, nothing), out=result)
    return result


def _lowest(codes: np.ndarray, start: np.ndarray, stop: np.ndarray, nothing: int) -> np.ndarray:
    """Return the lowest value of each frame: two overlapping blocks of the largest power of two cover it."""
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


_INT64_LIMIT = 2**63
_EXACT = Context(prec=100)
_ROWS_AT_ONCE = 1 << 20


def aggregate_over_frames(
    call: WindowCall, argument: pa.Array | None, argument_type: SqlType | None, frames: Frames, rows: WindowRows
) -> pa.Array:
    """Aggregate over frames; `argument` is absent for COUNT(*)."""
    result = call.column.type
    if argument is None or argument_type is None:
        return pa.array(frames.sizes, pa.int64())
    counts = _counts(argument, frames)
    match call.function:
        case "count":
            return pa.array(counts, pa.int64())
        case "sum":
            return _sum(argument, argument_type, result, counts, frames, rows)
        case "avg":
            column = Column(-1, "argument", argument_type)
            total_type = partial_type("sum", AggregateCall(call.column, "avg", column))
            total = _sum(argument, argument_type, total_type, counts, frames, rows)
            return average(total, pa.array(counts, pa.int64()), result)
        case "min" | "max" | "bool_and" | "bool_or":
            return _extreme(argument, counts, frames, lowest_wanted=call.function in {"min", "bool_and"})
        case _:
            return _by_expansion(call, argument, argument_type, frames)


def _counts(argument: pa.Array, frames: Frames) -> np.ndarray:
    nulls = null_mask(argument)
    return frames.sizes if nulls is None else exact_totals((~nulls).astype(np.int64), frames)


def _sum(
    argument: pa.Array, argument_type: SqlType, result: SqlType, counts: np.ndarray, frames: Frames, rows: WindowRows
) -> pa.Array:
    nulls = null_mask(argument)
    empty = counts == 0
    if result.is_floating:
        values = fixed_values(argument, argument_type).astype(np.float64)
        if nulls is not None:
            values[nulls] = 0.0
        return pa.array(floating_totals(values, frames, rows), result.arrow, mask=empty)
    whole = _unscaled(argument, argument_type)
    if nulls is not None:
        whole = np.where(nulls, 0, whole)
    if (
        whole.dtype != object
        and len(whole)
        and int(np.abs(whole.astype(np.float64)).max()) * len(whole) >= _INT64_LIMIT // 2
    ):
        whole = whole.astype(object)
    totals = exact_totals(whole, frames)
    if result.kind is not Kind.DECIMAL:
        return pa.array(totals.astype(np.int64), result.arrow, mask=empty)
    return _decimals(totals, result, empty)


def _unscaled(argument: pa.Array, argument_type: SqlType) -> np.ndarray:
    """Exact numbers as integers: a DECIMAL without its point."""
    if argument_type.kind is not Kind.DECIMAL:
        return fixed_values(argument, argument_type).astype(np.int64)
    low, high = decimal_words(argument)
    narrow = low.view(np.int64) if low.flags.c_contiguous else np.ascontiguousarray(low).view(np.int64)
    if (high == narrow >> 63).all():
        return narrow
    wide: np.ndarray = high.astype(object) * 2**64 + low.astype(object)
    return wide


def _decimals(totals: np.ndarray, result: SqlType, empty: np.ndarray) -> pa.Array:
    if totals.dtype == object:
        limit = 10**result.precision
        if any(abs(total) >= limit for total in totals):
            raise overflow_error(f"the sum overflows {result}")
        values = [
            None if none else _EXACT.create_decimal(total).scaleb(-result.scale, _EXACT)
            for total, none in zip(totals, empty, strict=True)
        ]
        return pa.array(values, result.arrow)
    return decimal_array(totals.view(np.uint64), totals >> 63, result, empty)


def _extreme(argument: pa.Array, counts: np.ndarray, frames: Frames, *, lowest_wanted: bool) -> pa.Array:
    """Return the extreme of each frame, by integers that order as the values do."""
    codes = order_codes(argument)
    nothing = len(codes) + 1
    row_of = np.zeros(nothing + 1, np.int64)
    row_of[codes] = np.arange(len(codes))
    if not lowest_wanted:
        codes = nothing - 1 - codes
    nulls = null_mask(argument)
    if nulls is not None:
        codes = np.where(nulls, nothing, codes)
    found = lowest(codes, frames, nothing)
    if not lowest_wanted:
        found = np.where(found == nothing, nothing, nothing - 1 - found)
    return argument.take(pa.array(row_of[found], mask=counts == 0))


def _by_expansion(call: WindowCall, argument: pa.Array, argument_type: SqlType, frames: Frames) -> pa.Array:
    """Aggregate by expansion: frames are written out as groups, each different one once."""
    frames, frame_of = _distinct(frames)
    results: list[pa.Array] = []
    for first, stop in cuts(frames.sizes, _ROWS_AT_ONCE):
        frame_ids, positions = _written_out(frames, first, stop)
        results.append(_aggregated(call, argument, argument_type, frame_ids, positions, stop - first))
    if not results:
        return pa.nulls(0, call.column.type.arrow)
    return pa.concat_arrays(results).take(pa.array(frame_of))


def _distinct(frames: Frames) -> tuple[Frames, np.ndarray]:
    """Return each different frame once, and for every row which one is its own."""
    frame_of = np.zeros(len(frames.sizes), np.int64)
    count = 1
    for bound in (bound for piece in frames.pieces for bound in piece):
        different = IntegerInterner()
        frame_of = different.intern(bound * count + frame_of).astype(np.int64) - 1
        count = different.count - 1
    some_row = np.empty(count if len(frame_of) else 0, np.int64)
    some_row[frame_of] = np.arange(len(frame_of))
    return Frames(tuple((start[some_row], stop[some_row]) for start, stop in frames.pieces)), frame_of


def _written_out(frames: Frames, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of some frames: for each one the id of its frame and its position."""
    frame_ids: list[np.ndarray] = []
    positions: list[np.ndarray] = []
    for start, end in frames.pieces:
        sizes = (end - start)[first:stop]
        number = np.repeat(np.arange(stop - first), sizes)
        within = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        frame_ids.append(number)
        positions.append(np.repeat(start[first:stop], sizes) + within)
    return np.concatenate(frame_ids), np.concatenate(positions)


def _aggregated(
    call: WindowCall,
    argument: pa.Array,
    argument_type: SqlType,
    frame_ids: np.ndarray,
    positions: np.ndarray,
    frames: int,
) -> pa.Array:
    number, value = Column(-1, "frame", BIGINT), Column(-2, "value", argument_type)
    columns = (number, value)
    source = Values(columns, (), Traits())
    aggregate = AggregateCall(call.column, call.function, value)
    node = HashAggregate(source, (number,), (aggregate,), ((),), Phase.COMPLETE, Traits())
    operator = HashAggregateExec(node, ValuesExec(source, ExpressionCache()))
    if len(frame_ids):
        operator.consume(ArrowBatch(columns, positional([pa.array(frame_ids), argument.take(pa.array(positions))])))
    groups = operator.finish().arrow()
    row_of = np.full(frames, -1)
    row_of[groups.column(0).to_numpy()] = np.arange(groups.num_rows)
    return groups.column(1).take(pa.array(row_of, mask=row_of < 0))
