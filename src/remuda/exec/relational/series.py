"""Series: every row once for each value of its series, a batch of them at a time.

    rows of the input    series of each    batches of five
    a                    1, 2, 3           a 1, a 2, a 3, b 1, b 2
    b                    1, 2, 3, 4        b 3, b 4

Of a series only the next value and the number of those that follow are kept, so one of a billion values takes no more
memory than one of a thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import option_error
from remuda.exec.batch import ArrowBatch, empty_batch, layout_of, positional
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.expr import Literal, as_array, compile_batch, evaluate_row_count
from remuda.types import BIGINT
from remuda.types.arrow_arrays import fixed_values
from remuda.types.calendar import DAY, add_months_to_days

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.expr import BatchExpression
    from remuda.plan.physical import Series
    from remuda.plan.series import SeriesCall

# The arithmetic of series, for many rows at once: how many values each has, and which.
#
# Values are 64-bit integers, numbers or microseconds. The distance of two of them need not fit into one, so distances
# and counts are unsigned; sums wrap around and are right in the end, as no value lies beyond the stop.


_MOST = np.uint64(2**64 - 2)
_LONGEST_MONTH = 31


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How values of a kind follow each other: see the functions for numbers."""

    count: Callable[..., np.ndarray]
    at: Callable[[Any, Any, np.ndarray], np.ndarray]
    after: Callable[[int, int], int]


def is_within(values: np.ndarray, stop: np.ndarray, step: np.ndarray, *, includes_stop: bool) -> np.ndarray:
    """Return whether a step of this direction has not yet led from the values past the stop."""
    up, down = (values <= stop, values >= stop) if includes_stop else (values < stop, values > stop)
    within: np.ndarray = np.where(step > 0, up, down)
    return within


def count_values(start: np.ndarray, stop: np.ndarray, step: np.ndarray, *, includes_stop: bool) -> np.ndarray:
    """Count the values from each start; of 2^64, whose end no reader will see, one is forgotten."""
    distance = np.where(step > 0, stop - start, start - stop).astype(np.uint64)
    if not includes_stop:
        distance -= np.uint64(1)
    counts = np.minimum(distance // np.abs(step).astype(np.uint64), _MOST) + np.uint64(1)
    return np.where(is_within(start, stop, step, includes_stop=includes_stop), counts, np.uint64(0))


def values_at(first: np.ndarray, step: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the value at each index, counted from the first, 0."""
    is_by_one = step.ndim == 0 and step == 1
    found: np.ndarray = (steps if is_by_one else steps * step) + first
    return found


def value_after(last: int, step: int) -> int:
    """Return the value that follows."""
    return last + step


def count_months(start: np.ndarray, stop: np.ndarray, step: np.ndarray, *, includes_stop: bool) -> np.ndarray:
    """Count the values at most: the last may be in the month of the stop, but after it."""
    distance = _month_of(stop) - _month_of(start)
    counts = distance // np.where(step == 0, 1, step) + 1
    return np.where(is_within(start, stop, step, includes_stop=includes_stop), counts, 0).astype(np.uint64)


def months_at(first: np.ndarray, step: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return values some months after each other: a day once lost does not come back.

    Places begin at 0 for each series and ascend. The days of a series are the least of those so far; for that to begin
    anew with the next series each is moved below all days of the one before.

        31 Jan, 29 Feb, 31 → 29 Mar | 30 Apr, 31 → 30 May:     days 30 28 28 | 29 - 31, 29 - 31
    """
    days = first // DAY
    months = days.astype("M8[D]").astype("M8[M]")
    moved = months + np.asarray(steps * step).astype("m8[M]")
    month_starts = moved.astype("M8[D]").astype(np.int64)
    longest = (moved + np.timedelta64(1, "M")).astype("M8[D]").astype(np.int64) - month_starts - 1
    own = np.minimum(days - months.astype("M8[D]").astype(np.int64), longest)
    below = np.cumsum(steps == 0) * _LONGEST_MONTH
    kept = np.minimum.accumulate(own - below) + below
    found: np.ndarray = (month_starts + kept) * DAY + (first - days * DAY)
    return found


def month_after(last: int, step: int) -> int:
    day = last // DAY
    return int(add_months_to_days(np.array([day]), np.array([step]))[0]) * DAY + last - day * DAY


def _month_of(moments: np.ndarray) -> np.ndarray:
    return (moments // DAY).astype("M8[D]").astype("M8[M]").astype(np.int64)


NUMBERS = Arithmetic(count_values, values_at, value_after)
MONTHS = Arithmetic(count_months, months_at, month_after)


ROWS_AT_ONCE = 16_384
"""Rows of the input whose series are looked at for one batch: counting them up is little beside making the batch."""


class SeriesExec(UnaryExec):
    def __init__(self, node: Series, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source)
        self._node = node
        self._arguments = code.of(node, _compile)
        self._left: _Left | None = None
        self._source_done = False

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context
        self._most = self._first = context.scan_batch_rows
        if self._node.first_rows is not None:
            wanted = evaluate_row_count(self._node.first_rows, context.parameters.values)
            self._first = min(max(wanted, 1), self._most)

    def advance(self) -> IterationResult:
        self._context.verify()
        if self._context.weight.should_offload:
            return IterationResult.WAIT
        if self._left is None:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._source_done = result is IterationResult.FETCHED_DONE
            self._left = self._begun(self.source.current_batch)
        self.current_batch = self._next(self._left)
        self._context.weight.add(self.current_batch.row_count)
        if self._left.is_empty:
            self._left = None
        return IterationResult.FETCHED_DONE if self._left is None and self._source_done else IterationResult.FETCHED

    def _begun(self, batch: RowBatch) -> _Left:
        arrow = batch.arrow()
        parameters = self._context.parameters
        return _Left(
            self._node.call,
            arrow,
            [as_array(argument(arrow, parameters), arrow.num_rows) for argument in self._arguments],
        )

    def _next(self, left: _Left) -> RowBatch:
        columns = self._node.columns
        if left.is_empty:
            return empty_batch(columns)
        rows, self._first = self._first, self._most
        return ArrowBatch(columns, left.take(rows))


class _Left:
    """What is left of the series of a batch: of each row the next value, and how many there are from it on."""

    def __init__(self, call: SeriesCall, batch: pa.RecordBatch, arguments: list[pa.Array]) -> None:
        self._call = call
        self._batch = batch
        type_ = call.column.type
        self._next = fixed_values(arguments[0], type_).copy()
        self._stop, self._step = fixed_values(arguments[1], type_), fixed_values(arguments[2], BIGINT)
        is_known = np.logical_and.reduce([np.asarray(argument.is_valid()) for argument in arguments])
        if np.any(is_known & (self._step == 0)):
            raise option_error(f"the step of {call.name} is zero", span=call.span)
        self._arithmetic = MONTHS if call.is_of_months else NUMBERS
        step = np.where(is_known, self._step, 1)
        counts = self._arithmetic.count(self._next, self._stop, step, includes_stop=call.includes_stop)
        self._counts = np.where(is_known, counts, np.uint64(0))
        self._row = 0
        self._places = np.arange(0)

    @property
    def is_empty(self) -> bool:
        return bool(self._row >= self._batch.num_rows)

    def take(self, most: int) -> pa.RecordBatch:
        """Return the next rows, no more than `most`."""
        first = self._row
        counts = np.minimum(self._counts[first : first + ROWS_AT_ONCE], np.uint64(most + 1)).astype(np.int64)
        ends = np.cumsum(counts)
        whole = int(np.searchsorted(ends, most, side="right"))
        if whole < len(counts):
            counts = counts[: whole + 1]
            counts[whole] = most - (ends[whole - 1] if whole else 0)
        self._row = first + whole
        rows, values = self._values(first, counts)
        if whole < len(counts) and counts[whole]:
            self._go_on(self._row, int(values[-1]), int(counts[whole]))
        return self._rows_with(rows, values)

    def _values(self, first: int, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the next values of the rows from `first` on, so many of each, and the row of each value."""
        at = self._arithmetic.at
        if len(counts) == 1:
            count = int(counts[0])
            if count > len(self._places):
                self._places = np.arange(count)
            rows = np.broadcast_to(first, count)
            return rows, at(self._next[first], self._step[first], self._places[:count])
        rows = np.repeat(np.arange(first, first + len(counts)), counts)
        steps = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, at(self._next[rows], self._step[rows], steps)

    def _go_on(self, row: int, last: int, taken: int) -> None:
        """Continue the series of this row after the value that was its last."""
        self._counts[row] -= np.uint64(taken)
        self._next[row] = self._arithmetic.after(last, int(self._step[row]))

    def _rows_with(self, rows: np.ndarray, values: np.ndarray) -> pa.RecordBatch:
        call = self._call
        if call.is_of_months:
            within = is_within(values, self._stop[rows], self._step[rows], includes_stop=call.includes_stop)
            rows, values = rows[within], values[within]
        column = pa.Array.from_buffers(call.column.type.arrow, len(values), [None, pa.py_buffer(values)])
        passed = self._batch.take(pa.array(rows)).columns if self._batch.num_columns else []
        return positional([*passed, column])


def _compile(node: Series) -> list[BatchExpression]:
    """Compile a bound; an INTERVAL literal counts as the number of its months or microseconds."""
    layout = layout_of(node.input.columns)
    start, stop, step = node.call.arguments
    if step.type.is_interval:
        assert isinstance(step, Literal), "the binder refuses others"
        step = Literal(step.value, BIGINT)
    return [compile_batch(argument, layout) for argument in (start, stop, step)]
