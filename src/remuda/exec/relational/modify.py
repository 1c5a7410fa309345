"""Modify and Commit: hand the rows of a statement that writes to its writer, which writes all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import Row, RowBatch
from remuda.exec.operator import BlockingExec, Exec

if TYPE_CHECKING:
    from remuda.exec.context import Committer, ExecContext
    from remuda.plan.physical import Commit, Modify


class PrepareExec(BlockingExec):
    """Prepares the rows of one member for the commit; what it delivers is how many they are."""

    def __init__(self, node: Modify, source: Exec) -> None:
        super().__init__(source)
        self._node = node

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        assert context.writer is not None, "a statement that writes has a writer"
        self._context = context
        self._part = context.writer.part(context)

    def consume(self, batch: RowBatch) -> None:
        self._part.add(batch)

    def finish(self) -> RowBatch:
        return Row(self._node.columns, (self._part.finish(), self._part.prepared()))


class ModifyExec(PrepareExec):
    """The rows are read at the snapshot before the statement and are committed only when all have been read."""

    writes = True

    def finish(self) -> RowBatch:
        self._part.finish()
        return Row(self._node.columns, (_committer(self._context).commit(),))


class CommitExec(BlockingExec):
    """Commits when every member has told how many rows it has prepared."""

    writes = True

    def __init__(self, node: Commit, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        self._prepared = 0

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._committer = _committer(context)
        self._activity = context.activity

    def consume(self, batch: RowBatch) -> None:
        for count, prepared in batch.tuples():
            self._prepared += count
            if prepared is not None:
                self._committer.take_over(count, prepared)

    def finish(self) -> RowBatch:
        self._activity.decide("prepared: {} rows", self._prepared)
        return Row(self._node.columns, (self._committer.commit(),))


def _committer(context: ExecContext) -> Committer:
    assert context.committer is not None, "a statement is committed on the coordinator"
    return context.committer
