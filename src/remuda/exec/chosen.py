"""The rows of a batch that pass a filter, not yet gathered: a sum over them need not gather them at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.exec.batch import ArrowBatch
from remuda.exec.computed_once import computed_once
from remuda.exec.row_choice import gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from remuda.exec.batch import Row, RowBatch, Tuple
    from remuda.expr import Column


DENSE = 0.25
"""The share of chosen rows above which adding up all values, zeros for those not chosen, beats gathering the chosen."""


class ChosenBatch:
    """A batch like any other to whoever asks for its rows; they are gathered when they are first asked for.

    `whole` has all rows, chosen or not: it is the scan's own memory and costs nothing to hold. `chosen` has a truth
    value for each of them.
    """

    def __init__(self, columns: tuple[Column, ...], whole: pa.RecordBatch, chosen: np.ndarray) -> None:
        self.columns = columns
        self.whole = whole
        self.chosen = chosen
        self.row_count = int(np.count_nonzero(chosen))

    @property
    def is_dense(self) -> bool:
        """Whether so many rows are chosen that looking at all of them is cheaper than gathering the chosen ones."""
        return self.row_count >= DENSE * int(self.whole.num_rows)

    @computed_once
    def gathered(self) -> ArrowBatch:
        return ArrowBatch(self.columns, gather(self.whole, self.chosen, self.row_count))

    def row(self, index: int) -> Row:
        return self.gathered.row(index)

    def tuples(self) -> Sequence[Tuple]:
        return self.gathered.tuples()

    def arrow(self) -> pa.RecordBatch:
        return self.gathered.arrow()


def gathered(batch: RowBatch) -> RowBatch:
    """The batch as it is handed to another thread: what is left to do to it is done on this one."""
    return batch.gathered if isinstance(batch, ChosenBatch) else batch
