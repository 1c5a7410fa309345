"""Limit: skips and counts rows as they come, and stops when it has enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import limit_error
from remuda.exec.batch import slice_batch
from remuda.exec.exchange.exchange import abandon_inputs
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.expr import Expression, evaluate_row_count, parameters_of

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Limit

ALL_ROWS = 2**62


def row_number(expression: Expression | None, parameters: tuple[Any, ...], clause: str) -> int:
    """Evaluate LIMIT or OFFSET; absent: all rows, none skipped."""
    if expression is None:
        return ALL_ROWS if clause == "LIMIT" else 0
    value = evaluate_row_count(expression, parameters)
    if value is None or value < 0:
        span = next((node.span for node in parameters_of(expression).values()), None)
        raise limit_error(f"{clause} must not be {'NULL' if value is None else 'negative'}", span=span)
    return int(value)


class LimitExec(UnaryExec):
    def __init__(self, node: Limit, source: Exec) -> None:
        super().__init__(source)
        self._node = node

    def setup(self, context: ExecContext) -> None:
        self._to_skip = row_number(self._node.offset, context.parameters.values, "OFFSET")
        self._to_pass = row_number(self._node.count, context.parameters.values, "LIMIT")
        self._context = context
        super().setup(context)

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is IterationResult.WAIT:
            return result
        batch = self.source.current_batch
        skipped = min(self._to_skip, batch.row_count)
        passed = min(self._to_pass, batch.row_count - skipped)
        self._to_skip -= skipped
        self._to_pass -= passed
        self.current_batch = slice_batch(batch, skipped, passed)
        if self._to_pass:
            return result
        abandon_inputs(self._node.input, self._context)
        return IterationResult.FETCHED_DONE
