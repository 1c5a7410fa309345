"""Values: the rows that the query itself spells out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import TupleBatch
from remuda.exec.operator import Exec, IterationResult
from remuda.expr import compile_row

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.expr import RowExpression
    from remuda.plan.physical import Values


class ValuesExec(Exec):
    def __init__(self, node: Values, code: ExpressionCache) -> None:
        self._columns = node.columns
        self._rows = code.of(node, _compile)

    def setup(self, context: ExecContext) -> None:
        self._parameters = context.parameters.values

    def advance(self) -> IterationResult:
        parameters = self._parameters
        tuples = [tuple([value((), parameters) for value in row]) for row in self._rows]
        self.current_batch = TupleBatch(self._columns, tuples)
        return IterationResult.FETCHED_DONE


def _compile(node: Values) -> list[list[RowExpression]]:
    return [[compile_row(value, {}) for value in row] for row in node.rows]
