"""Spool: rows that are computed once and read by several operators of one fragment.

Whichever reader needs a batch that has not been made advances the common input; all others find the batch kept. So it
makes no difference which of them is read first, or that one stops early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, TupleBatch, arrow_schema, conformed, empty_batch
from remuda.exec.memory import bytes_held
from remuda.exec.operator import Exec, IterationResult
from remuda.exec.selection import materialized

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.spill.spill_file import SpillFile
    from remuda.exec.spill.spill_folder import SpillFolder
    from remuda.expr import Column
    from remuda.plan.physical import Spool, SpoolRead


class SpooledRows:
    """The batches of a spool that have been made so far, and the operator that makes the next one.

    Those for which the limit of memory has no room are in a spill file, behind those that are kept.
    """

    def __init__(self, source: Exec) -> None:
        self.source = source
        self._batches: list[RowBatch] = []
        self._bytes = 0
        self._file: SpillFile | None = None
        self._spilled = 0
        self._is_done = False

    def setup(self, context: ExecContext) -> None:
        self._context = context
        self.source.setup(context)

    def has(self, position: int) -> bool:
        """Make the batch where it is not kept; False where its source has to wait."""
        while position >= len(self._batches) + self._spilled and not self._is_done:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return False
            batch = self.source.current_batch
            if batch.row_count:
                self._keep(materialized(batch))
            self._is_done = result is IterationResult.FETCHED_DONE
        return True

    def _keep(self, batch: RowBatch) -> None:
        memory, folder = self._context.memory, self._context.spill
        if memory is not None:
            size = self._bytes + bytes_held(batch)
            if folder is not None and (self._file is not None or size > memory.room(self)):
                self._spill(folder, batch)
                return
            self._bytes = size
            self._context.hold(self, "the spool", size)
        self._batches.append(batch)

    def _spill(self, folder: SpillFolder, batch: RowBatch) -> None:
        if self._file is None:
            self._file = folder.new_file()
            self._columns = batch.columns
        before = self._file.bytes
        self._file.write(conformed(batch.arrow(), arrow_schema(self._columns)))
        self._spilled += 1
        self._context.activity.decide("spilled: {:,} rows, {:,} bytes", batch.row_count, self._file.bytes - before)

    def batch(self, position: int) -> RowBatch | None:
        """Return a kept batch; None after the last one."""
        if position < len(self._batches):
            return self._batches[position]
        position -= len(self._batches)
        if self._file is None or position >= self._spilled:
            return None
        return ArrowBatch(self._columns, self._file.batch(position))


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
