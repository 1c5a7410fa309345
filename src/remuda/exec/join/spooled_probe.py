"""The left side of a join, read ahead: where it is small it tells the right side, which is large, what it wants.

A join holds its right side. Of an inner join that is the smaller one; EXISTS has no choice, and would hold all rows of
a large map for a few outer rows. So those are read first, as far as they are few, and then given as if they came.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from remuda.exec.batch import layout_of, positional
from remuda.exec.join.join_table import KeyTable
from remuda.exec.memory import bytes_held
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.exec.selection import gathered
from remuda.exec.sort.ordering import concatenate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.join.runtime_filter import RuntimeFilter
    from remuda.expr import Column
    from remuda.plan.joins import JoinKey

MOST_ROWS = 262_144
"""Left rows that are read ahead; if there are more, the right side is told nothing."""


class LeftFirstExec(UnaryExec):
    """`keys` are those of the join that the right side shall be asked for, before it is read."""

    def __init__(
        self, source: Exec, columns: tuple[Column, ...], keys: Sequence[JoinKey], wanted: RuntimeFilter
    ) -> None:
        super().__init__(source)
        layout = layout_of(columns)
        self._places = [layout[key.left.id] for key in keys]
        self._keys = keys
        self._wanted = wanted
        self._ahead: deque[RowBatch] = deque()
        self._rows = self._bytes = 0
        self._source_done = False
        self._is_read = False

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context

    def read(self) -> bool:
        """Reads ahead; False where it has to wait."""
        while not self._is_read:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return False
            self._keep(gathered(self.source.current_batch))
            self._source_done = result is IterationResult.FETCHED_DONE
            self._is_read = self._source_done or self._rows > MOST_ROWS
            if self._source_done:
                self._wanted.table = self._table()
        return True

    def _keep(self, batch: RowBatch) -> None:
        self._ahead.append(batch)
        self._rows += batch.row_count
        if self._context.memory is not None:
            self._bytes += bytes_held(batch)
            self._context.hold(self, "the join", self._bytes)

    def _table(self) -> KeyTable:
        batches = [batch.arrow() for batch in self._ahead]
        keys = [positional([batch.column(place) for place in self._places]) for batch in batches]
        columns = concatenate([batch for batch in keys if batch.num_rows] or keys[:1]).columns
        return KeyTable(columns, [key.left.type for key in self._keys], [key.null_safe for key in self._keys])

    def advance(self) -> IterationResult:
        """What was read ahead, and then what is left."""
        if not self._ahead:
            result = self.source.advance()
            if result is not IterationResult.WAIT:
                self.current_batch = self.source.current_batch
            return result
        self.current_batch = self._ahead.popleft()
        return IterationResult.FETCHED_DONE if self._source_done and not self._ahead else IterationResult.FETCHED
