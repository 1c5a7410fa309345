"""Expand: every row once for each projection, which is what GROUPING SETS groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, RowBatch, TupleBatch, layout_of, positional
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.expr import as_array, compile_batch, compile_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.expr import BatchExpression, RowExpression
    from remuda.plan.physical import Expand


class ExpandExec(UnaryExec):
    """One batch for each projection of each batch of the input."""

    def __init__(self, node: Expand, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source)
        self._columns = node.columns
        self._projections = code.of(node, _compile)
        self._ready: Iterator[RowBatch] = iter(())
        self._remaining = 0
        self._source_done = False

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._parameters = context.parameters

    def advance(self) -> IterationResult:
        if not self._remaining:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._source_done = result is IterationResult.FETCHED_DONE
            self._ready = self._expanded(self.source.current_batch)
            self._remaining = len(self._projections)
        self.current_batch = next(self._ready)
        self._remaining -= 1
        is_last = self._source_done and not self._remaining
        return IterationResult.FETCHED_DONE if is_last else IterationResult.FETCHED

    def _expanded(self, batch: RowBatch) -> Iterator[RowBatch]:
        parameters = self._parameters
        for over_batch, over_row in self._projections:
            if isinstance(batch, TupleBatch):
                values = parameters.values
                tuples = [tuple([expression(row, values) for expression in over_row]) for row in batch.tuples()]
                yield TupleBatch(self._columns, tuples)
            else:
                arrow = batch.arrow()
                arrays = [as_array(expression(arrow, parameters), arrow.num_rows) for expression in over_batch]
                yield ArrowBatch(self._columns, positional(arrays, arrow.num_rows))


def _compile(node: Expand) -> list[tuple[list[BatchExpression], list[RowExpression]]]:
    layout = layout_of(node.input.columns)
    return [
        (
            [compile_batch(expression, layout) for expression in projection],
            [compile_row(expression, layout) for expression in projection],
        )
        for projection in node.projections
    ]
