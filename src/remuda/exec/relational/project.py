"""Project: computes columns from columns."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, RowBatch, TupleBatch, layout_of, positional
from remuda.exec.operator import Exec, IterationResult, PassingExec, UnaryExec
from remuda.expr import as_array, compile_batch, compile_row

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.expr import BatchExpression, RowExpression
    from remuda.plan.physical import Project, Root


class ProjectExec(PassingExec):
    def __init__(self, node: Project, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source, node.columns)
        self._expressions, self._row_expressions = code.of(node, _compile)

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
            return TupleBatch(self.columns, tuples)
        arrow = batch.arrow()
        arrays = [as_array(expression(arrow, parameters), arrow.num_rows) for expression in self._expressions]
        return ArrowBatch(self.columns, positional(arrays, arrow.num_rows))


def _compile(node: Project) -> tuple[list[BatchExpression], list[RowExpression]]:
    layout = layout_of(node.input.columns)
    expressions = [item.expression for item in node.assignments]
    batch = [compile_batch(expression, layout) for expression in expressions]
    return batch, [compile_row(expression, layout) for expression in expressions]


class RootExec(UnaryExec):
    """The last operator, from which the result reads; it leaves out columns that only the order needed."""

    def __init__(self, node: Root, source: Exec) -> None:
        super().__init__(source)
        layout = layout_of(node.input.columns)
        self._columns = node.columns
        self._ordinals = [layout[column.id] for column in node.columns]
        self._is_whole = self._ordinals == list(range(len(node.input.columns)))

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is not IterationResult.WAIT:
            batch = self.source.current_batch
            self.current_batch = batch if self._is_whole else self._selected(batch)
        return result

    def _selected(self, batch: RowBatch) -> RowBatch:
        if isinstance(batch, TupleBatch):
            if len(self._ordinals) == 1:
                ordinal = self._ordinals[0]
                return TupleBatch(self._columns, [(row[ordinal],) for row in batch.tuples()])
            pick = itemgetter(*self._ordinals)
            return TupleBatch(self._columns, [pick(row) for row in batch.tuples()])
        return ArrowBatch(self._columns, batch.arrow().select(self._ordinals))
