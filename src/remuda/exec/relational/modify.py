"""Modify: gathers the rows of a statement that writes, then has them written, all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.exec.batch import Row, RowBatch, pieces
from remuda.exec.memory import bytes_of_tuples
from remuda.exec.operator import BlockingExec, Exec
from remuda.expr.cancellation import cancelled_by

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Modify


class ModifyExec(BlockingExec):
    """The rows are read at the snapshot before the statement and written only when all have been read."""

    writes = True

    def __init__(self, node: Modify, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        self._rows: list[tuple[Any, ...]] = []

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        assert context.modify is not None, "statements that write run on the coordinator"
        self._modify = context.modify
        self._context = context

    def consume(self, batch: RowBatch) -> None:
        for piece in pieces(batch, self._context):
            self._rows.extend(piece.tuples())
        self._context.hold(self, "the statement", bytes_of_tuples(len(self._rows), len(batch.columns)))

    def finish(self) -> RowBatch:
        with cancelled_by(None):  # from here on the commit guard decides whether the statement may still be given up
            return Row(self._node.columns, (self._modify(self._node, self._rows),))
