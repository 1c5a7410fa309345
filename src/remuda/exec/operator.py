"""The interface of every operator, and the second one of operators that workers can share (`ForkableExec`).

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
from typing import TYPE_CHECKING, Self

from remuda.exec.batch import slice_batch
from remuda.exec.context import SCAN_BATCH_ROWS
from remuda.exec.offload import RowBudget

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class UnaryExec(Exec):
    """An operator over one input."""

    def __init__(self, source: Exec) -> None:
        self.source = source

    def setup(self, context: ExecContext) -> None:
        self.source.setup(context)


class ForkableExec(Exec):
    """The second interface, of operators whose work workers can share: a scan, and what makes batches from batches.

        scan_rows   rows that the scan at the bottom reads at most, known after `setup`
        prepare()   makes what all forks share, as a join its table; False where that has to wait, and is called again
        fork(rows)  makes an operator over the next pieces of the same scan; `rows` ends it after so many rows of it

    They are called in this order, by one thread. An operator knows nothing of threads: a fork is advanced by one at a
    time, like every operator, and shares with the other forks only what `prepare` made, and the scan's pieces.
    """

    @property
    @abstractmethod
    def scan_rows(self) -> int: ...

    @abstractmethod
    def prepare(self) -> bool: ...

    @abstractmethod
    def fork(self, rows: int | None = None) -> Exec: ...


class PassingExec(UnaryExec, ForkableExec):
    """An operator that makes batches from batches, each on its own."""

    def __init__(self, source: Exec, columns: tuple[Column, ...]) -> None:
        super().__init__(source)
        self.columns = columns

    @property
    def scan_rows(self) -> int:
        return forkable(self.source).scan_rows

    def prepare(self) -> bool:
        return forkable(self.source).prepare()

    def fork(self, rows: int | None = None) -> Self:
        forked = copy(self)
        forked.source = forkable(self.source).fork(rows)
        return forked


def forkable(operator: Exec) -> ForkableExec:
    """Return the operator as what it is below a local exchange."""
    assert isinstance(operator, ForkableExec), f"{type(operator).__name__} cannot be forked"
    return operator


class BlockingExec(UnaryExec):
    """An operator that must see all of its input before its first row: it consumes as input comes, then delivers.

    It delivers no more rows at a time than a scan does, as the operator above works on a batch in one step. Finishing
    may take long: a query that has been cancelled meanwhile, or whose time is over, ends then, unless it has written.

    An operator that has spilled rows sets `_following` when it finishes: the batches that come after the first one.
    """

    writes = False
    _weight = RowBudget()
    """That of the fragment; a part of an operator, which is never set up, has no reader's thread to leave."""
    _is_read = False
    _finished: RowBatch | None = None
    _following: Iterator[RowBatch] | None = None
    _delivered = 0

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._verify = context.verify
        self._weight = context.weight

    @abstractmethod
    def consume(self, batch: RowBatch) -> None: ...

    @abstractmethod
    def finish(self) -> RowBatch: ...

    def following(self) -> Iterator[RowBatch]:
        """Deliver what comes after `finish`."""
        yield from self._following or ()

    def advance(self) -> IterationResult:
        if self._finished is None:
            if not (self._is_read or self._read()) or self._weight.should_offload:
                return IterationResult.WAIT
            self._finished = self.finish()
            if not self.writes:
                self._verify()
        elif self._delivered >= self._finished.row_count and self._following is not None:
            if self._weight.should_offload:
                return IterationResult.WAIT
            following = next(self._following, None)
            self._verify()
            if following is None:
                self.current_batch = slice_batch(self._finished, 0, 0)
                return IterationResult.FETCHED_DONE
            self._finished, self._delivered = following, 0
        finished, start = self._finished, self._delivered
        rows = finished.row_count - start
        self.current_batch = slice_batch(finished, start, min(rows, SCAN_BATCH_ROWS))
        self._delivered = start + SCAN_BATCH_ROWS
        is_last = rows <= SCAN_BATCH_ROWS and self._following is None
        return IterationResult.FETCHED_DONE if is_last else IterationResult.FETCHED

    def _read(self) -> bool:
        """Consume all of the input; False where it has to wait for more."""
        while True:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return False
            batch = self.source.current_batch
            if batch.row_count:
                self.consume(batch)
            if result is IterationResult.FETCHED_DONE:
                self._is_read = True
                return True
