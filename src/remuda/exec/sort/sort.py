"""Sort: all rows in order. TopN: the first rows of the order, holding no more than those."""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.exec.batch import ArrowBatch, RowBatch, empty_batch, layout_of
from remuda.exec.memory import bytes_of
from remuda.exec.offload import RowBudget
from remuda.exec.operator import BlockingExec, Exec
from remuda.exec.parallel import in_parallel, scan_passed_on
from remuda.exec.relational.limit import row_number
from remuda.exec.scan.zone_order import TopNBound
from remuda.exec.selection import gather
from remuda.exec.sort.ordering import concatenate, sort_positions, top_positions
from remuda.expr.evaluate.mask import true_rows

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Sort, TopN

# The threshold of an order: the value of its first key that a row must reach to be among the first ones.


SMALL_SHARE = 0.1
"""Of a batch's rows: a threshold that more of them reach is not worth finding."""

LOOKED_AT = 32_768
"""Rows of a batch that are enough to find a threshold, if not many are wanted."""

_INTEGERS = {4: "<i4", 8: "<i8"}


def reaching(column: pa.Array, threshold: pa.Scalar, *, descending: bool) -> np.ndarray:
    """For each row whether it is not behind the threshold. Ties are kept: a later key may decide them.

    NaN, which is not below any number, is above all of them. The column has no NULL.
    """
    values = _numbers(column)
    if values is None:
        return true_rows(pc.invert(pc.less(column, threshold)) if descending else pc.less_equal(column, threshold))
    least = values.dtype.type(threshold.value if pa.types.is_temporal(threshold.type) else threshold.as_py())
    reached: np.ndarray = ~(values < least) if descending else values <= least
    return reached


def last_value(ordered: pa.Array) -> pa.Scalar | None:
    """The last value, where it can be a threshold: not NULL, and not NaN, which nothing is above or below to Arrow."""
    if ordered.null_count or pa.types.is_dictionary(ordered.type):
        return None
    value = ordered[len(ordered) - 1]
    return None if pa.types.is_floating(ordered.type) and math.isnan(value.as_py()) else value


def threshold_within(column: pa.Array, wanted: int, *, descending: bool) -> pa.Scalar | None:
    """The last of the wanted first values of a batch, or of its beginning: found without sorting all of them."""
    if not 0 < wanted <= SMALL_SHARE * len(column):
        return None
    column = column.slice(0, max(LOOKED_AT, int(wanted / SMALL_SHARE)))
    if column.null_count:
        return None
    values = _numbers(column)
    if values is None or (values.dtype.kind == "f" and np.isnan(values).any()):
        return None
    place = len(values) - wanted if descending else wanted - 1
    found = np.partition(values, place)[place : place + 1]
    return pa.Array.from_buffers(column.type, 1, [None, pa.py_buffer(found)])[0]


def _numbers(column: pa.Array) -> np.ndarray | None:
    """The values of a column of numbers, dates or times, as they lie in memory."""
    arrow = column.type
    if pa.types.is_float64(arrow):
        dtype: str | None = "<f8"
    elif pa.types.is_signed_integer(arrow) or pa.types.is_temporal(arrow):
        dtype = _INTEGERS.get(arrow.bit_width // 8)
    else:
        return None
    if dtype is None:
        return None
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * arrow.bit_width // 8)


SPARE_ROWS = 128
"""TopN holds so many rows beyond those wanted, or as many again, before it looks which of them are the first."""


class SortExec(BlockingExec):
    def __init__(self, node: Sort, source: Exec) -> None:
        super().__init__(in_parallel(source))
        self._node = node
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context

    def consume(self, batch: RowBatch) -> None:
        self._batches.append(batch.arrow())
        if self._context.memory is not None:
            # Once as they came, and once in order.
            self._bytes += 2 * bytes_of(self._batches[-1])
            self._context.hold(self, "the sort", self._bytes)

    def finish(self) -> RowBatch:
        if not self._batches:
            return empty_batch(self._node.columns)
        layout = layout_of(self._node.columns)
        places = [layout[key.column] for key in self._node.collation]
        together = concatenate(self._batches)
        return ArrowBatch(self._node.columns, together.take(sort_positions(together, places, self._node.collation)))


class TopNExec(BlockingExec):
    """Holds the rows that may be among the first, and from time to time only those that are, up to then.

    Looking for them costs as much as there are: as many must have come since, or each batch would be paid for again.

    `_threshold` is a value of the first key that so many rows have reached that no row behind it is wanted.
    """

    def __init__(self, node: TopN, source: Exec) -> None:
        super().__init__(in_parallel(source, self.part))
        self._node = node
        layout = layout_of(node.columns)
        self._places = [layout[key.column] for key in node.collation]
        self._descending = node.collation[0].descending
        self._reached: TopNBound | None = None
        self._scan = scan_passed_on(source)
        self._begin()

    def _begin(self) -> None:
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._threshold: pa.Scalar | None = None

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context
        self._skipped = row_number(self._node.offset, context.parameters.values, "OFFSET")
        self._wanted = self._skipped + row_number(self._node.count, context.parameters.values, "LIMIT")
        first = self._node.collation[0]
        if self._scan is not None and any(column.id == first.column for column in self._scan.columns):
            self._reached = TopNBound(self._node.columns[self._places[0]], descending=self._descending)
            source: Any = self._node.input
            expected = source.estimate.rows or self._scan.most_rows
            looked_at = self._wanted * max(1.0, self._scan.most_rows / max(1.0, expected))
            self._scan.seek_first(first, self._reached, looked_at)

    def part(self, source: Exec) -> Exec:
        """The first rows, none skipped, of a part of the input."""
        forked = copy(self)
        forked.source, forked._skipped = source, 0
        forked._begin()
        forked._weight = RowBudget()
        return forked

    def consume(self, batch: RowBatch) -> None:
        able = self._able(batch.arrow())
        if able.num_rows:
            self._held.append(able)
            self._held_rows += able.num_rows
            if self._held_rows > self._wanted + max(SPARE_ROWS, self._wanted):
                self._choose()
            if self._context.memory is not None:
                # Once as they came, and once when the first of them are chosen.
                self._context.hold(self, "the sort", 2 * sum(map(bytes_of, self._held)))

    def _able(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without the rows that by the first key alone come behind the threshold: nearly all of them."""
        column = batch.column(self._places[0])
        if self._threshold is None:
            self._reach(threshold_within(column, self._wanted, descending=self._descending))
        if self._threshold is None or column.null_count or pa.types.is_dictionary(column.type):
            return batch
        able = reaching(column, self._threshold, descending=self._descending)
        return gather(batch, able, int(np.count_nonzero(able)))

    def _choose(self) -> None:
        """Leaves only the first rows of those held."""
        together = concatenate(self._held)
        best = together.take(top_positions(together, self._places, self._node.collation, self._wanted))
        self._held, self._held_rows = [best], best.num_rows
        if 0 < self._wanted <= best.num_rows:
            self._reach(last_value(best.column(self._places[0])))

    def _reach(self, threshold: pa.Scalar | None) -> None:
        self._threshold = threshold
        if threshold is not None and self._reached is not None:
            self._reached.reach(threshold)

    def finish(self) -> RowBatch:
        if not self._held:
            return empty_batch(self._node.columns)
        self._choose()
        return ArrowBatch(self._node.columns, self._held[0].slice(self._skipped))
