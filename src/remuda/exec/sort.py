"""Sort: all rows in order. TopN: the first rows of the order, holding no more than those."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from remuda.exec.batch import ArrowBatch, RowBatch, empty_batch, layout_of
from remuda.exec.limit import row_number
from remuda.exec.memory import bytes_of
from remuda.exec.operator import BlockingExec, Exec
from remuda.exec.ordering import concatenate, sort_positions, top_positions
from remuda.exec.parallel import in_parallel
from remuda.exec.row_choice import choose

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Sort, TopN


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
    def __init__(self, node: TopN, source: Exec) -> None:
        super().__init__(in_parallel(source, self.part))
        self._node = node
        layout = layout_of(node.columns)
        self._places = [layout[key.column] for key in node.collation]
        self._best: pa.RecordBatch | None = None

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._skipped = row_number(self._node.offset, context.parameters.values, "OFFSET")
        self._wanted = self._skipped + row_number(self._node.count, context.parameters.values, "LIMIT")

    def part(self, source: Exec) -> Exec:
        """The first rows, none skipped, of a part of the input."""
        forked = copy(self)
        forked.source, forked._skipped, forked._best = source, 0, None
        return forked

    def consume(self, batch: RowBatch) -> None:
        """The best of the batch, then the best of those and the best so far."""
        arrow = batch.arrow()
        if self._best is not None and self._best.num_rows >= self._wanted:
            arrow = self._able(arrow, self._best)
            if not arrow.num_rows:
                return
        best = self._top(arrow)
        self._best = best if self._best is None else self._top(concatenate([self._best, best]))

    def _able(self, batch: pa.RecordBatch, best: pa.RecordBatch) -> pa.RecordBatch:
        """Without the rows that by the first key alone come behind the last of the best: nearly all of them."""
        place, key = self._places[0], self._node.collation[0]
        column, last = batch.column(place), best.column(place)
        if column.null_count or last.null_count or not best.num_rows or pa.types.is_dictionary(column.type):
            return batch
        bound = last[best.num_rows - 1]
        if pa.types.is_dictionary(last.type):
            return batch
        # NaN is above all numbers; Arrow finds it neither above nor below.
        if pa.types.is_floating(column.type) and (pc.is_nan(bound).as_py() or pc.any(pc.is_nan(column)).as_py()):
            return batch
        return choose(batch, _reaching(column, bound, descending=key.descending))

    def _top(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.take(top_positions(batch, self._places, self._node.collation, self._wanted))

    def finish(self) -> RowBatch:
        if self._best is None:
            return empty_batch(self._node.columns)
        return ArrowBatch(self._node.columns, self._best.slice(self._skipped))


def _reaching(column: pa.Array, bound: pa.Scalar, *, descending: bool) -> pa.BooleanArray:
    """Ties are kept: a later key may decide them."""
    return pc.greater_equal(column, bound) if descending else pc.less_equal(column, bound)
