"""Sort: all rows in order. TopN: the first rows of the order, holding no more than those."""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.batch import ArrowBatch, RowBatch, empty_batch, layout_of
from remuda.exec.memory import bytes_of
from remuda.exec.offload import RowBudget
from remuda.exec.operator import BlockingExec, Exec
from remuda.exec.relational.limit import row_number
from remuda.exec.scan.zone_order import TopNBound
from remuda.exec.selection import gather, take_rows
from remuda.exec.sort.ordering import concatenate, sort_positions, top_positions
from remuda.exec.sort.sorted_runs import SortedRuns
from remuda.expr.evaluate.mask import true_rows
from remuda.types.arrow_arrays import null_mask
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.exec.memory import MemoryLimit
    from remuda.exec.spill.spill_folder import SpillFolder
    from remuda.plan.physical import Sort, TopN

SMALL_SHARE = 0.1
"""Of a batch's rows: a bound that more of them reach is not worth finding."""
SAMPLE_ROWS = 32_768
"""Rows of a batch that are enough to find a bound, if not many are kept."""
SPARE_ROWS = 128
"""TopN holds so many rows beyond those it keeps, or as many again, before it looks which of them are the first."""
_INTEGERS = {4: "<i4", 8: "<i8"}


class SortExec(BlockingExec):
    """Sorts in memory as long as the limit has room, and by runs in spill files where half of it is taken."""

    def __init__(self, node: Sort, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        layout = layout_of(node.columns)
        self._ordinals = [layout[key.column] for key in node.collation]
        self._runs: SortedRuns | None = None
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context

    def consume(self, batch: RowBatch) -> None:
        arrow, memory, folder = batch.arrow(), self._context.memory, self._context.spill
        # Once as they came, and once in order.
        size = 0 if memory is None else 2 * bytes_of(arrow)
        if memory is not None and folder is not None and not memory.try_hold(self, self._bytes + size):
            self._consume_beyond(memory, folder, arrow, size)
            return
        self._batches.append(arrow)
        if memory is not None:
            self._bytes += size
            memory.hold(self, "the sort", self._bytes)

    def _consume_beyond(self, memory: MemoryLimit, folder: SpillFolder, batch: pa.RecordBatch, size: int) -> None:
        """Spill what is held to make room for a batch; one that finds none even so is spilled an eighth at a time."""
        if self._runs is None:
            node = self._node
            self._runs = SortedRuns(self._context, folder, node.columns, self._ordinals, node.collation, memory.limit)
        self._spill(self._runs)
        if memory.try_hold(self, size):
            self._batches, self._bytes = [batch], size
            return
        step = max(1, batch.num_rows * (memory.limit // 8) // max(size, 1))
        for start in range(0, batch.num_rows, step):
            self._runs.add([batch.slice(start, step)])

    def _spill(self, runs: SortedRuns) -> None:
        """Write the rows that are held as a run, and give their memory back."""
        if self._batches:
            runs.add(self._batches)
        self._batches, self._bytes = [], 0
        self._context.hold(self, "the sort", 0)

    def finish(self) -> RowBatch:
        columns = self._node.columns
        if self._runs is not None:
            self._spill(self._runs)
            self._following = (ArrowBatch(columns, batch) for batch in self._runs.merged())
        if not self._batches:
            return empty_batch(columns)
        together = concatenate(self._batches)
        positions = sort_positions(together, self._ordinals, self._node.collation)
        return ArrowBatch(self._node.columns, take_rows(together, positions.to_numpy()))


class TopNExec(BlockingExec):
    """Holds the rows that may be among the first, and from time to time only those that are, up to then.

    Looking for them costs as much as there are: as many must have come since, or each batch would be paid for again.

    `_bound` is a value of the first key that as many rows as are kept have reached: no row behind it is needed. Where
    the plan says so, the scan below learns of it and leaves out zones (`exec/scan/zone_order.py`).
    """

    def __init__(self, node: TopN, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        layout = layout_of(node.columns)
        self._ordinals = [layout[key.column] for key in node.collation]
        self._descending = node.collation[0].descending
        self._nulls_first = node.collation[0].nulls_first
        self._scan_bound: TopNBound | None = None
        self._begin()

    def _begin(self) -> None:
        self._candidates: list[pa.RecordBatch] = []
        self._candidate_rows = 0
        self._bound: pa.Scalar | None = None

    def setup(self, context: ExecContext) -> None:
        node = self._node
        self._context = context
        self._skipped = row_number(node.offset, context.parameters.values, "OFFSET")
        self._kept = self._skipped + row_number(node.count, context.parameters.values, "LIMIT")
        if node.bound is not None:
            column = node.columns[self._ordinals[0]]
            self._scan_bound = TopNBound(column, descending=self._descending, kept=self._kept)
            context.top_n_bounds[node.bound] = self._scan_bound
        super().setup(context)

    def wants_parts(self, scan_rows: int) -> bool:  # noqa: ARG002  (the first rows of a part are few)
        return True

    def part(self, source: Exec) -> Exec:
        """Return an operator for the first rows, none skipped, of a part of the input."""
        forked = copy(self)
        forked.source, forked._skipped = source, 0
        forked._begin()
        forked._weight = RowBudget()
        return forked

    def consume(self, batch: RowBatch) -> None:
        new = self._not_behind(batch.arrow())
        if new.num_rows:
            self._candidates.append(new)
            self._candidate_rows += new.num_rows
            if self._candidate_rows > self._kept + max(SPARE_ROWS, self._kept):
                self._select_first()
            if self._context.memory is not None:
                # Once as they came, and once when the first of them are selected.
                self._context.hold(self, "the sort", 2 * sum(map(bytes_of, self._candidates)))

    def _not_behind(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Drop the rows that by the first key alone come behind the bound: nearly all of them."""
        column = batch.column(self._ordinals[0])
        if self._bound is None:
            self._raise_bound(bound_within(column, self._kept, descending=self._descending))
        if self._bound is None or pa.types.is_dictionary(column.type):
            return batch
        mask = reaches_bound(column, self._bound, descending=self._descending, nulls_first=self._nulls_first)
        return gather(batch, mask, int(np.count_nonzero(mask)))

    def _select_first(self) -> None:
        """Keep only the first rows of the candidates."""
        together = concatenate(self._candidates)
        best = together.take(top_positions(together, self._ordinals, self._node.collation, self._kept))
        self._candidates, self._candidate_rows = [best], best.num_rows
        if 0 < self._kept <= best.num_rows:
            self._raise_bound(last_value(best.column(self._ordinals[0])))

    def _raise_bound(self, bound: pa.Scalar | None) -> None:
        self._bound = bound
        if bound is not None and self._scan_bound is not None:
            self._scan_bound.raise_to(bound)

    def finish(self) -> RowBatch:
        if not self._candidates:
            return empty_batch(self._node.columns)
        self._select_first()
        return ArrowBatch(self._node.columns, self._candidates[0].slice(self._skipped))


def reaches_bound(column: pa.Array, bound: pa.Scalar, *, descending: bool, nulls_first: bool) -> np.ndarray:
    """Return the mask of the rows that are not behind the bound. Ties are kept: a later key may decide them.

    NaN, which is not below any number, is above all of them. A NULL is before every bound or behind it.
    """
    values, nulls = _numbers(column), null_mask(column)
    reached: np.ndarray
    if values is None:
        reached = true_rows(pc.invert(pc.less(column, bound)) if descending else pc.less_equal(column, bound))
    else:
        least = values.dtype.type(bound.value if pa.types.is_temporal(bound.type) else bound.as_py())
        reached = ~(values < least) if descending else values <= least
    if nulls is not None:
        reached = reached | nulls if nulls_first else reached & ~nulls
    return reached


def last_value(ordered: pa.Array) -> pa.Scalar | None:
    """Return the last value, where it can be a bound: not NULL, nor NaN, which nothing is above or below to Arrow."""
    if pa.types.is_dictionary(ordered.type):
        return None
    last = ordered[len(ordered) - 1]
    if not last.is_valid or (pa.types.is_floating(ordered.type) and math.isnan(last.as_py())):
        return None
    return last


def bound_within(column: pa.Array, kept: int, *, descending: bool) -> pa.Scalar | None:
    """Return the last of the first `kept` values of a batch, or of its beginning: found without sorting all of them.

    NULLs are left out: where they come first, the first `kept` rows reach this value all the more.
    """
    if not 0 < kept <= SMALL_SHARE * len(column):
        return None
    column = column.slice(0, max(SAMPLE_ROWS, int(kept / SMALL_SHARE)))
    values, nulls = _numbers(column), null_mask(column)
    if values is not None and nulls is not None:
        values = values[~nulls]
    if values is None or len(values) < kept or (values.dtype.kind == "f" and np.isnan(values).any()):
        return None
    position = len(values) - kept if descending else kept - 1
    found = np.partition(values, position)[position : position + 1]
    return pa.Array.from_buffers(column.type, 1, [None, pa.py_buffer(found)])[0]


def _numbers(column: pa.Array) -> np.ndarray | None:
    """Return the values of a column of numbers, dates or times, as they lie in memory."""
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
