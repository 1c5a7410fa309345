"""The rows of a batch that pass a filter, not yet gathered: a sum over them need not gather them at all."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch
from remuda.exec.row_choice import FEW, choose, truth_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa

    from remuda.exec.batch import Row, RowBatch, Tuple
    from remuda.expr import Column


class ChosenBatch:
    """A batch like any other to whoever asks for its rows; they are gathered when they are first asked for.

    `whole` has all rows, chosen or not: it is the scan's own memory and costs nothing to hold.
    """

    def __init__(self, columns: tuple[Column, ...], whole: pa.RecordBatch, condition: pa.BooleanArray) -> None:
        self.columns = columns
        self.whole = whole
        self._condition = condition
        self.row_count = int(condition.true_count)

    @cached_property
    def chosen(self) -> np.ndarray:
        """Of each row of `whole`, whether it is chosen."""
        return truth_values(self._condition)

    @property
    def is_dense(self) -> bool:
        """Whether so many rows are chosen that looking at all of them is cheaper than gathering the chosen ones."""
        return self.row_count >= FEW * int(self.whole.num_rows)

    @cached_property
    def gathered(self) -> ArrowBatch:
        return ArrowBatch(self.columns, choose(self.whole, self._condition))

    def row(self, index: int) -> Row:
        return self.gathered.row(index)

    def tuples(self) -> Sequence[Tuple]:
        return self.gathered.tuples()

    def arrow(self) -> pa.RecordBatch:
        return self.gathered.arrow()


def gathered(batch: RowBatch) -> RowBatch:
    """The batch as it is handed to another thread: what is left to do to it is done on this one."""
    return batch.gathered if isinstance(batch, ChosenBatch) else batch
