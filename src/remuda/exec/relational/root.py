"""Root: the last operator, from which the result reads; it leaves out what only the order needed."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, RowBatch, TupleBatch, layout_of
from remuda.exec.operator import Exec, IterationResult, UnaryExec

if TYPE_CHECKING:
    from remuda.plan.physical import Root


class RootExec(UnaryExec):
    def __init__(self, node: Root, source: Exec) -> None:
        super().__init__(source)
        layout = layout_of(node.input.columns)
        self._columns = node.columns
        self._places = [layout[column.id] for column in node.columns]
        self._is_whole = self._places == list(range(len(node.input.columns)))

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is not IterationResult.WAIT:
            batch = self.source.current_batch
            self.current_batch = batch if self._is_whole else self._selected(batch)
        return result

    def _selected(self, batch: RowBatch) -> RowBatch:
        if isinstance(batch, TupleBatch):
            if len(self._places) == 1:
                place = self._places[0]
                return TupleBatch(self._columns, [(row[place],) for row in batch.tuples()])
            pick = itemgetter(*self._places)
            return TupleBatch(self._columns, [pick(row) for row in batch.tuples()])
        return ArrowBatch(self._columns, batch.arrow().select(self._places))
