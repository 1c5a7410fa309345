"""The batches of a running query, as a result takes them: one after the other, all at once, or some ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from remuda.errors import RemudaError, SqlError
from remuda.exec.batch import slice_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.exec import RowBatch
    from remuda.runtime import Execution

Restart = Callable[[SqlError, bool], "Execution"]
"""What is done about an error: the query is run again, if it may be (the second argument) and that helps; else it is
raised."""


class BatchReader:
    """Takes batches from an execution. As long as none was handed out, a query that meets a stale plan is run again.

    `ahead` holds batches, or what is left of one, that were computed and come next. Batches that were only looked at
    count as not handed out: a query that is run again computes them anew.
    """

    __slots__ = ("_handed_out", "_refuse_damaged", "_restart", "ahead", "execution")

    def __init__(self, execution: Execution, restart: Restart, refuse_damaged: Callable[[], None]) -> None:
        """`refuse_damaged` raises where a damaged file explains an error of a library."""
        self.execution: Execution | None = execution
        self.ahead: deque[RowBatch] = deque()
        self._restart = restart
        self._refuse_damaged = refuse_damaged
        self._handed_out = False

    def batches(self, size: int | None = None) -> Iterator[RowBatch]:
        """Yield what is left, as it is computed; with a size, in batches of no more rows."""
        while True:
            batch = self.ahead.popleft() if self.ahead else self._next_batch()
            if batch is None:
                return
            self._handed_out = True
            count = batch.row_count
            if size is None or count <= size:
                yield batch
            else:
                self.ahead.appendleft(slice_batch(batch, size, count - size))
                yield slice_batch(batch, 0, size)

    def look_ahead(self, rows: int) -> Iterable[RowBatch]:
        """Return the batches that hold the next rows, and leave them to be read."""
        while sum(batch.row_count for batch in self.ahead) < rows:
            batch = self._next_batch()
            if batch is None:
                break
            self.ahead.append(batch)
        return tuple(self.ahead)

    def all_batches(self) -> list[RowBatch]:
        """Compute everything that is left before any of it is handed out: a stale plan on the way is unnoticed."""
        batches = list(self.ahead)
        self.ahead.clear()
        while True:
            execution = self.execution
            batch = self._next_batch()
            if self.execution is not execution:
                batches.clear()  # it was run again, from the beginning
            if batch is None:
                self._handed_out = True
                return batches
            batches.append(batch)

    def gather(self) -> None:
        """Compute everything that is left, and let go of the execution."""
        self.ahead.extend(self.all_batches())
        self.execution = None

    def check_time(self) -> None:
        """Raise where the statement's time is over, even if its rows are only being turned into something else."""
        if self.execution is not None:
            self.execution.check_time()

    def end(self, error: SqlError | None = None) -> None:
        """Stop the query; with an error, which its reader gets from then on."""
        if self.execution is not None:
            if error is not None:
                self.execution.fail(error)
            self.execution.close()

    def _next_batch(self) -> RowBatch | None:
        while self.execution is not None:
            try:
                return self.execution.next_batch()
            except SqlError as error:
                self.execution = self._restart(error, not self._handed_out)
                self.ahead.clear()
            except RemudaError:
                raise
            except Exception:
                self._refuse_damaged()
                raise
        return None
