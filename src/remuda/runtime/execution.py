"""A running query as its reader sees it: batches one after the other, until the end, an error, or a close."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError
from remuda.exec import Exec, IterationResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec import RowBatch
    from remuda.exec.context import ScanActivity

PATIENCE = 0.05
"""Seconds after which a waiting reader looks whether the query was cancelled or is out of time."""


class QueryState:
    """What all fragments of a query share: whether it goes on, and the first error."""

    def __init__(self, timeout: float | None = None) -> None:
        self.wake_reader = Event()
        self.error: BaseException | None = None
        self.cancelled = False
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        self.wake_reader.set()

    def cancel(self) -> None:
        self.cancelled = True
        self.wake_reader.set()

    def check(self) -> None:
        """Raises where the query must not go on."""
        if self.cancelled:
            raise SqlError(ErrorCode.CANCELLED_BY_USER, "the query was cancelled")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise SqlError(ErrorCode.TIMEOUT, f"the statement took longer than its timeout of {self._timeout:g} s")


class Execution:
    """Advances the root fragment in the reader's own thread."""

    def __init__(
        self, root: Exec, state: QueryState, activity: list[ScanActivity], on_close: Callable[[], None] | None = None
    ) -> None:
        self._root = root
        self._state = state
        self._on_close = on_close
        self._finished = False
        self.activity = activity

    def next_batch(self) -> RowBatch | None:
        """The next batch that has rows; None at the end. After an error there is nothing but that error."""
        try:
            return self._advance()
        except BaseException as error:
            if isinstance(error, Exception):
                self._state.fail(error)
            self.close()
            raise

    def _advance(self) -> RowBatch | None:
        state = self._state
        while not self._finished:
            # Cleared before looking: what happens between the look and the wait sets it again.
            state.wake_reader.clear()
            if state.error is not None:
                raise state.error
            # A result closed by another thread has no end: its reader must not take what it has for the whole.
            state.check()
            result = self._root.advance()
            if result is IterationResult.WAIT:
                state.wake_reader.wait(PATIENCE)
                continue
            batch = self._root.current_batch
            if result is IterationResult.FETCHED_DONE:
                self._finished = True
                self.close()
            if batch.row_count:
                return batch
        return None

    def close(self) -> None:
        """Ends the query; its other fragments stop at their next step."""
        self._state.cancel()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
