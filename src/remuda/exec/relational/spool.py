"""Spool: rows that are computed once and read by several operators of one fragment.

Whichever reader needs a batch that has not been made advances the common input; all others find the batch kept. So it
makes no difference which of them is read first, or that one stops early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, TupleBatch, empty_batch
from remuda.exec.memory import bytes_held
from remuda.exec.operator import Exec, IterationResult
from remuda.exec.selection import materialized

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.expr import Column
    from remuda.plan.physical import Spool, SpoolRead


class SpooledRows:
    """The batches of a spool that have been made so far, and the operator that makes the next one."""

    def __init__(self, source: Exec) -> None:
        self.source = source
        self._batches: list[RowBatch] = []
        self._bytes = 0
        self._is_done = False

    def setup(self, context: ExecContext) -> None:
        self._context = context
        self.source.setup(context)

    def has(self, position: int) -> bool:
        """Make the batch where it is not kept; False where its source has to wait."""
        while position >= len(self._batches) and not self._is_done:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return False
            batch = self.source.current_batch
            if batch.row_count:
                self._batches.append(materialized(batch))
                if self._context.memory is not None:
                    self._bytes += bytes_held(batch)
                    self._context.hold(self, "the spool", self._bytes)
            self._is_done = result is IterationResult.FETCHED_DONE
        return True

    def batch(self, position: int) -> RowBatch | None:
        """Return a kept batch; None after the last one."""
        return self._batches[position] if position < len(self._batches) else None


class SpoolReadExec(Exec):
    """One reader of a spool. The spool registers its rows in the context under its number."""

    def __init__(self, node: Spool | SpoolRead) -> None:
        self._number = node.number
        self._columns = node.columns
        self._position = 0

    def setup(self, context: ExecContext) -> None:
        self._context = context

    def advance(self) -> IterationResult:
        rows = self._context.spools[self._number]
        if not rows.has(self._position):
            return IterationResult.WAIT
        self._context.verify()
        batch = rows.batch(self._position)
        self._position += 1
        if batch is None:
            self.current_batch = empty_batch(self._columns)
            return IterationResult.FETCHED_DONE
        self.current_batch = _renamed(batch, self._columns)
        return IterationResult.FETCHED


class SpoolExec(SpoolReadExec):
    """The reader that brings the input with it."""

    def __init__(self, node: Spool, source: Exec) -> None:
        super().__init__(node)
        self._rows = SpooledRows(source)

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        context.spools[self._number] = self._rows
        self._rows.setup(context)


def _renamed(batch: RowBatch, columns: tuple[Column, ...]) -> RowBatch:
    if isinstance(batch, TupleBatch):
        return TupleBatch(columns, batch.tuples())
    return ArrowBatch(columns, batch.arrow())
