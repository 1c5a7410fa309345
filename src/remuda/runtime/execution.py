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
        self._done = False
        self.activity = activity

    def next_batch(self) -> RowBatch | None:
        """The next batch that has rows; None at the end."""
        while not self._done:
            self._state.check()
            if self._state.error is not None:
                self.close()
                raise self._state.error
            self._state.wake_reader.clear()
            result = self._root.advance()
            if result is IterationResult.WAIT:
                # What the root waits for may have happened between its look and now: the event is set then.
                if self._state.error is None:
                    self._state.wake_reader.wait(PATIENCE)
                continue
            batch = self._root.current_batch
            if result is IterationResult.FETCHED_DONE:
                self.close()
            if batch.row_count:
                return batch
        return None

    def close(self) -> None:
        """Ends the query; its other fragments stop at their next step."""
        self._done = True
        self._state.cancelled = True
        if self._on_close is not None:
            self._on_close()
            self._on_close = None
