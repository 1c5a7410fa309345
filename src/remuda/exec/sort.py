"""Sort: all rows in order. TopN: the first rows of the order, holding no more than those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, RowBatch, empty_batch, layout_of
from remuda.exec.limit import row_number
from remuda.exec.operator import BlockingExec, Exec
from remuda.exec.ordering import concatenate, sort_positions, top_positions

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Sort, TopN


class SortExec(BlockingExec):
    def __init__(self, node: Sort, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        self._batches: list[pa.RecordBatch] = []

    def consume(self, batch: RowBatch) -> None:
        self._batches.append(batch.arrow())

    def finish(self) -> RowBatch:
        if not self._batches:
            return empty_batch(self._node.columns)
        layout = layout_of(self._node.columns)
        places = [layout[key.column] for key in self._node.collation]
        together = concatenate(self._batches)
        return ArrowBatch(self._node.columns, together.take(sort_positions(together, places, self._node.collation)))


class TopNExec(BlockingExec):
    def __init__(self, node: TopN, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        layout = layout_of(node.columns)
        self._places = [layout[key.column] for key in node.collation]
        self._best: pa.RecordBatch | None = None

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._skipped = row_number(self._node.offset, context.parameters.values, "OFFSET")
        self._wanted = self._skipped + row_number(self._node.count, context.parameters.values, "LIMIT")

    def consume(self, batch: RowBatch) -> None:
        """The best of the batch, then the best of those and the best so far."""
        best = self._top(batch.arrow())
        self._best = best if self._best is None else self._top(concatenate([self._best, best]))

    def _top(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.take(top_positions(batch, self._places, self._node.collation, self._wanted))

    def finish(self) -> RowBatch:
        if self._best is None:
            return empty_batch(self._node.columns)
        return ArrowBatch(self._node.columns, self._best.slice(self._skipped))
