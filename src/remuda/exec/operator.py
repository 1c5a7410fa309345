"""The interface of every operator.

    setup(context)  once, before anything else
    advance()       makes the next batch if it can; never blocks
    current_batch   what the last `advance()` made; it belongs to the operator until the next `advance()`

After FETCHED or FETCHED_DONE there is a batch, perhaps an empty one. After WAIT there is none: the fragment gives up
its thread and is advanced again when what it waits for has happened. After FETCHED_DONE an operator is not advanced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.expr import Column


class IterationResult(Enum):
    FETCHED = "FETCHED"
    FETCHED_DONE = "FETCHED_DONE"
    WAIT = "WAIT"


class Exec(ABC):
    current_batch: RowBatch

    @abstractmethod
    def setup(self, context: ExecContext) -> None: ...

    @abstractmethod
    def advance(self) -> IterationResult: ...

    def expect_rows(self, count: int) -> None:  # noqa: B027  (most operators have no use for it)
        """Said before `setup` by an operator that will probably take only so many rows. A hint: it may take more."""


class UnaryExec(Exec):
    """An operator over one input."""

    def __init__(self, source: Exec) -> None:
        self.source = source

    def setup(self, context: ExecContext) -> None:
        self.source.setup(context)


class PassingExec(UnaryExec):
    """An operator that makes batches from batches, each on its own: several threads may do so at once, by forks."""

    def __init__(self, source: Exec, columns: tuple[Column, ...]) -> None:
        super().__init__(source)
        self.columns = columns

    @property
    def can_fork(self) -> bool:
        return True

    def prepare(self) -> bool:
        """Does what must be done before the first batch; False where that has to wait."""
        return True

    def fork(self, source: Exec) -> Exec:
        """The same operator, set up and prepared, over another source."""
        forked = copy(self)
        forked.source = source
        return forked


class BlockingExec(UnaryExec):
    """An operator that must see all of its input before its first row: it consumes as input comes, then delivers.

    Finishing may take long: a query that has been cancelled meanwhile, or whose time is over, ends then, unless it has
    written.
    """

    writes = False

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._verify = context.verify

    @abstractmethod
    def consume(self, batch: RowBatch) -> None: ...

    @abstractmethod
    def finish(self) -> RowBatch: ...

    def advance(self) -> IterationResult:
        while True:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            batch = self.source.current_batch
            if batch.row_count:
                self.consume(batch)
            if result is IterationResult.FETCHED_DONE:
                self.current_batch = self.finish()
                if not self.writes:
                    self._verify()
                return IterationResult.FETCHED_DONE
