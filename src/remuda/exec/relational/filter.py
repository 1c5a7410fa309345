"""Filter: keeps the rows for which the condition is TRUE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import RowBatch, TupleBatch, layout_of
from remuda.exec.operator import Exec, IterationResult, PassingExec
from remuda.exec.selection import SelectedBatch
from remuda.expr import compile_row
from remuda.expr.evaluate.mask import compile_mask

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.expr import RowExpression
    from remuda.expr.evaluate.mask import Mask
    from remuda.plan.physical import Filter


class FilterExec(PassingExec):
    def __init__(self, node: Filter, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source, node.columns)
        self._truth, self._row_predicate = code.of(node, _compile)

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._parameters = context.parameters

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is not IterationResult.WAIT:
            self.current_batch = self._kept(self.source.current_batch)
        return result

    def _kept(self, batch: RowBatch) -> RowBatch:
        if isinstance(batch, TupleBatch):
            passes, values = self._row_predicate, self._parameters.values
            return TupleBatch(batch.columns, [row for row in batch.tuples() if passes(row, values)])
        arrow = batch.arrow()
        return SelectedBatch(batch.columns, arrow, self._truth(arrow, self._parameters))


def _compile(node: Filter) -> tuple[Mask, RowExpression]:
    layout = layout_of(node.input.columns)
    return compile_mask(node.condition, layout), compile_row(node.condition, layout)
