"""Union: the rows of one input after the other, under common columns."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.exec.batch import ArrowBatch, RowBatch, TupleBatch, empty_batch, layout_of, positional
from remuda.exec.operator import Exec, IterationResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.exec.context import ExecContext
    from remuda.expr import Column
    from remuda.plan.physical import Union


class UnionExec(Exec):
    """An input that has to wait does not hold the others up."""

    def __init__(self, node: Union, sources: Sequence[Exec]) -> None:
        self._columns = node.columns
        self._waiting = [
            (source, Picker(node.columns, columns, below.columns))
            for source, columns, below in zip(sources, node.sources, node.inputs, strict=True)
        ]

    def setup(self, context: ExecContext) -> None:
        for source, _ in self._waiting:
            source.setup(context)

    def advance(self) -> IterationResult:
        for number, (source, picker) in enumerate(self._waiting):
            result = source.advance()
            if result is IterationResult.WAIT:
                continue
            self.current_batch = picker.pick(source.current_batch)
            if result is IterationResult.FETCHED_DONE:
                del self._waiting[number]
            return IterationResult.FETCHED if self._waiting else IterationResult.FETCHED_DONE
        if not self._waiting:
            self.current_batch = empty_batch(self._columns)
            return IterationResult.FETCHED_DONE
        return IterationResult.WAIT


class Picker:
    """Some columns of a batch, in another order and under other names."""

    def __init__(self, columns: tuple[Column, ...], chosen: Sequence[Column], available: Sequence[Column]) -> None:
        layout = layout_of(available)
        self._columns = columns
        self._ordinals = [layout[column.id] for column in chosen]
        self._is_whole = self._ordinals == list(range(len(available)))

    def pick(self, batch: RowBatch) -> RowBatch:
        if isinstance(batch, TupleBatch):
            tuples = batch.tuples()
            return TupleBatch(self._columns, tuples if self._is_whole else [self._picked(row) for row in tuples])
        arrow = batch.arrow()
        if not self._is_whole:
            arrow = positional([arrow.column(ordinal) for ordinal in self._ordinals], arrow.num_rows)
        return ArrowBatch(self._columns, arrow)

    def _picked(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(self._ordinals) == 1:
            return (row[self._ordinals[0]],)
        picked: tuple[Any, ...] = itemgetter(*self._ordinals)(row) if self._ordinals else ()
        return picked
