"""Project: computes columns from columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, RowBatch, TupleBatch, layout_of, positional
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.expr import as_array, compile_batch, compile_row

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Project


class ProjectExec(UnaryExec):
    def __init__(self, node: Project, source: Exec) -> None:
        super().__init__(source)
        layout = layout_of(node.input.columns)
        self._columns = node.columns
        self._expressions = [compile_batch(item.expression, layout) for item in node.assignments]
        self._row_expressions = [compile_row(item.expression, layout) for item in node.assignments]

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._parameters = context.parameters

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is not IterationResult.WAIT:
            self.current_batch = self._projected(self.source.current_batch)
        return result

    def _projected(self, batch: RowBatch) -> RowBatch:
        parameters = self._parameters
        if isinstance(batch, TupleBatch):
            expressions, values = self._row_expressions, parameters.values
            tuples = [tuple([expression(row, values) for expression in expressions]) for row in batch.tuples()]
            return TupleBatch(self._columns, tuples)
        arrow = batch.arrow()
        arrays = [as_array(expression(arrow, parameters), arrow.num_rows) for expression in self._expressions]
        return ArrowBatch(self._columns, positional(arrays))
