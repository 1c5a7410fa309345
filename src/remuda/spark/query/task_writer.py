"""The writer of a statement in a Spark task: rows become segments in the store's folder, the driver commits them."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from remuda.exec.memory import bytes_held
from remuda.storage.load.statement_load import column_of

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.storage import SegmentInfo
    from remuda.storage.load.task_target import TaskTarget

TASK_BYTES = 256 << 20
"""Rows that a task holds before it makes a segment of them: several tasks share the memory of a machine."""


class TaskWriter:
    """It is its own and only part: a task has one fragment that writes."""

    def __init__(self, target: TaskTarget) -> None:
        self._target = target
        self._context: ExecContext | None = None
        self._held: list[RowBatch] = []
        self._rows = self._size = 0
        self._saved: list[SegmentInfo] = []

    def part(self, context: ExecContext) -> TaskWriter:
        self._context = context
        return self

    def add(self, batch: RowBatch) -> None:
        self._held.append(batch)
        self._rows += batch.row_count
        self._size += bytes_held(batch)
        self._hold()
        if self._size >= TASK_BYTES:
            self._save()

    def finish(self) -> int:
        if self._held:
            self._save()
        return self._rows

    def prepared(self) -> bytes:
        return pickle.dumps(self._saved)

    def _save(self) -> None:
        held = [batch.arrow() for batch in self._held]
        self._held, self._size = [], 0
        columns = range(len(self._target.definition.columns))
        self._saved.extend(self._target.save([column_of([batch.column(each) for batch in held]) for each in columns]))
        self._hold()

    def _hold(self) -> None:
        assert self._context is not None, "a part is made before rows come"
        self._context.hold(self, "the statement", self._size)
