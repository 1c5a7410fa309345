"""Project: computes columns from columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, RowBatch, TupleBatch, layout_of, positional
from remuda.exec.operator import Exec, IterationResult, PassingExec
from remuda.expr import as_array, compile_batch, compile_row

if TYPE_CHECKING:
    from remuda.exec.code import Code
    from remuda.exec.context import ExecContext
    from remuda.expr import BatchExpression, RowExpression
    from remuda.plan.physical import Project


class ProjectExec(PassingExec):
    def __init__(self, node: Project, source: Exec, code: Code) -> None:
        super().__init__(source, node.columns)
        self._expressions, self._row_expressions = code.of(node, _compile)

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._parameters = context.parameters

    def expect_rows(self, count: int) -> None:
        self.source.expect_rows(count)

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
            return TupleBatch(self.columns, tuples)
        arrow = batch.arrow()
        arrays = [as_array(expression(arrow, parameters), arrow.num_rows) for expression in self._expressions]
        return ArrowBatch(self.columns, positional(arrays, arrow.num_rows))


def _compile(node: Project) -> tuple[list[BatchExpression], list[RowExpression]]:
    layout = layout_of(node.input.columns)
    expressions = [item.expression for item in node.assignments]
    batch = [compile_batch(expression, layout) for expression in expressions]
    return batch, [compile_row(expression, layout) for expression in expressions]
