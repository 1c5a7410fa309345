"""A running query as its reader sees it: batches one after the other, until the end, an error, or a close."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import SqlError, memory_error
from remuda.exec import Exec, IterationResult
from remuda.expr.cancellation import CancellationToken, cancelled_by
from remuda.expr.evaluate.text_sizes import memory_limited

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from remuda.exec import RowBatch
    from remuda.exec.context import OperatorActivity
    from remuda.exec.offload import RowBudget
    from remuda.runtime.offload_pool import OffloadPool


class Signal:
    """A flag that one thread waits for, taking it, and that any thread sets.

    An `Event` takes 2 µs to make, a twentieth of a small query: it lets many threads wait.
    """

    __slots__ = ("_unset",)

    def __init__(self) -> None:
        self._unset = Lock()
        self._unset.acquire()

    def set(self) -> None:
        try:  # noqa: SIM105  (`suppress` takes longer than all the rest)
            self._unset.release()
        except RuntimeError:
            pass  # it is set

    def clear(self) -> None:
        self._unset.acquire(blocking=False)

    def wait(self, timeout: float | None = None) -> None:
        self._unset.acquire(timeout=-1 if timeout is None else timeout)


class QueryState:
    """What all fragments of one run of a query share: its token, its memory limit, and the first error."""

    def __init__(
        self,
        statement: CancellationToken | None = None,
        memory_limit: int | None = None,
        spill_folder: Path | None = None,
    ) -> None:
        """Prepare an execution; `statement` is the statement's token, whose time includes its planning."""
        self.statement = statement or CancellationToken()
        self.token = CancellationToken(parent=self.statement)
        """Cancelled when the run ends, in whatever way; the statement may be run again then."""
        self.check = self.token.check
        self.memory_limit = memory_limit
        self.spill_folder = spill_folder
        self.wake_reader = Signal()
        """Set when the root fragment, which had to wait, may go on."""
        self.leave_step: Signal | None = None
        """Where the root fragment is advanced on another thread: set when its reader shall look what has become of
        the step, or of the query."""
        self.error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        return self.token.cancelled or self.error is not None

    def fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = as_told(error)
        self._wake()

    def cancel(self) -> None:
        self.token.cancel()
        self._wake()

    def _wake(self) -> None:
        self.wake_reader.set()
        if self.leave_step is not None:
            self.leave_step.set()

    def wait(self, signal: Signal) -> None:
        """Wait for the signal, a cancel, or the deadline."""
        signal.wait(self.token.remaining)


def as_told(error: BaseException) -> BaseException:
    """Translate the error of a library: data too large for the process or an Arrow array is no fault of the engine."""
    is_full = isinstance(error, pa.ArrowCapacityError) or (
        isinstance(error, pa.ArrowInvalid) and ("capacity" in str(error) or "offset overflow" in str(error))
    )
    if not is_full and not isinstance(error, MemoryError):
        return error
    told = memory_error(
        "a batch has more text than an array can hold" if is_full else "the memory of the process does not suffice",
        suggestion="Ask for fewer rows, or for shorter texts.",
    )
    told.__cause__ = error
    return told


class Execution:
    """Advances the root fragment: in the reader's own thread or, if it is heavy, in one that the reader can leave."""

    def __init__(
        self,
        root: Exec,
        state: QueryState,
        activity: list[OperatorActivity],
        budget: RowBudget,
        pool: OffloadPool,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._root = root
        self._state = state
        self._budget = budget
        self._pool = pool
        self._on_close = on_close
        self._finished = False
        self._ended: BaseException | None = None
        """What its reader, not its work, has ended it with."""
        self.activity = activity

    def next_batch(self) -> RowBatch | None:
        """Return the next batch that has rows; None at the end. After an error only that error is raised."""
        try:
            return self._advance()
        except BaseException as error:
            if isinstance(error, Exception):
                self._state.fail(error)
            self.close()
            ended = self._state.error
            if isinstance(error, SqlError) and ended is not None:
                # What ended the query, not what an operator was told when it asked whether to go on.
                raise ended from error.__cause__
            if isinstance(error, Exception) and isinstance(ended, SqlError):
                raise ended from error
            raise

    def check_time(self) -> None:
        """Raise where the statement's time is over, even if its rows are only being turned into something else."""
        self._state.statement.check()

    def fail(self, error: BaseException) -> None:
        """Fail the execution: its reader gets this error from now on."""
        self._ended = error
        self._state.fail(error)

    def _advance(self) -> RowBatch | None:
        state = self._state
        while not self._finished:
            # Cleared before looking: what happens between the look and the wait sets it again.
            state.wake_reader.clear()
            self._check()
            result = self._step()
            if result is IterationResult.WAIT:
                if not self._budget.should_offload:
                    state.wait(state.wake_reader)
                continue
            batch = self._root.current_batch
            if result is IterationResult.FETCHED_DONE:
                self._finished = True
                self.close()
            if batch.row_count:
                return batch
        # The answer is complete: a fragment whose rows it did not need may have been stopped in the middle since then.
        if self._ended is not None:
            raise self._ended
        return None

    def _check(self) -> None:
        if self._state.error is not None:
            raise self._state.error
        # A result closed by another thread has no end: its reader must not take what it has for the whole.
        self._state.check()

    def _step(self) -> IterationResult:
        state = self._state
        if self._budget.should_offload:
            state.leave_step = Signal()
            self._budget.movable = False
        if state.leave_step is None:
            # What may still move does little here; a statement that writes does all of its reading.
            if state.memory_limit is None and self._budget.movable:
                return self._root.advance()
            return self._advance_limited() if self._budget.movable else self._advance_cancellable()
        leave = state.leave_step
        leave.clear()
        self._check()  # what was said before the event was there
        step = self._pool.start(self._advance_cancellable)
        step.add_done_callback(lambda _: leave.set())
        while not step.done():
            state.wait(leave)
            leave.clear()
            if not step.done():
                self._check()
        return step.result()

    def _advance_cancellable(self) -> IterationResult:
        with cancelled_by(self._state.check):
            return self._advance_limited()

    def _advance_limited(self) -> IterationResult:
        with memory_limited(self._state.memory_limit):
            return self._root.advance()

    def close(self) -> None:
        """Ends the query; its other fragments stop at their next step."""
        self._state.cancel()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
