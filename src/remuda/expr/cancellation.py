"""The cancellation token of a statement, and how work that takes long asks it.

A statement has one token, made when it is given and handed down to everything that works for it: planning, operators,
the tasks of other threads, storage. Each run of its query has a child, which ends with the run.

A kernel knows nothing of the statement that it works for, so it has no token to ask. Code that advances operators on a
thread says which check holds there (`cancelled_by`); a kernel calls `check_cancelled` between the pieces of what takes
long. Without it thousands of calls of a function, one for each row, would be made for a reader who has left.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import TIMEOUT_MAX, Lock, local
from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class CancellationToken:
    """Stops the work of a statement that was cancelled or is past its deadline, until it begins to commit.

    A statement that writes is done, or not done at all: either `begin_commit` comes first, and nothing stops the
    statement any more, or `cancel` does, and it takes back what it has done. A lock decides which of them it is.
    """

    __slots__ = ("_committing", "_deadline", "_lock", "_parent", "_timeout", "cancelled")

    def __init__(
        self, timeout: float | None = None, started: float | None = None, parent: CancellationToken | None = None
    ) -> None:
        """Make the token of a statement; `started` is when it was given, by `time.monotonic`, if earlier."""
        self.cancelled = False
        self._parent = parent
        self._committing = False
        self._lock = Lock()
        self._timeout = timeout
        self._deadline = None if timeout is None else (started or time.monotonic()) + timeout
        if parent is not None:
            self._timeout, self._deadline = parent._timeout, parent._deadline

    def check(self) -> None:
        """Raise where the work must not go on."""
        if self._committing:
            return
        if self.cancelled:
            raise SqlError(ErrorCode.CANCELLED_BY_USER, "the query was cancelled")
        if self._parent is not None:
            self._parent.check()
        elif self._deadline is not None and time.monotonic() > self._deadline:
            raise self.timeout_error()

    def cancel(self) -> bool:
        """End the work at its next check; False where it commits, which nothing ends."""
        with self._lock:
            self.cancelled = not self._committing
            return self.cancelled

    def begin_commit(self) -> None:
        """Commit guard: called once, after all work and before the commit record is written.

        It looks at the clock itself: on a busy machine a statement may come to its commit before the thread that waits
        for it has noticed that the time is over.
        """
        with self._lock:
            self.check()
            self._committing = True

    @property
    def remaining(self) -> float | None:
        """Seconds to the deadline, as a thread may wait for them; None without a deadline."""
        return None if self._deadline is None else min(max(self._deadline - time.monotonic(), 0.0), TIMEOUT_MAX)

    def timeout_error(self) -> SqlError:
        return SqlError(ErrorCode.TIMEOUT, f"the statement took longer than its timeout of {self._timeout:g} s")


class CancelledError(Exception):
    """Raised in the middle of a kernel, which must not take it for an error of its own: TRY_CAST would make it NULL."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Current(local):
    check: Callable[[], None] | None = None


_current = _Current()


@contextmanager
def cancelled_by(check: Callable[[], None] | None) -> Iterator[None]:
    """Within it `check_cancelled` on this thread calls `check`, which raises to end the work; None ends nothing.

    What `check` raised is what comes out.
    """
    before, _current.check = _current.check, check
    try:
        yield
    except CancelledError as left:
        raise left.reason from None
    finally:
        _current.check = before


def check_cancelled() -> None:
    """Leave the work of this thread where it must not go on."""
    if _current.check is not None:
        try:
            _current.check()
        except Exception as error:
            raise CancelledError(error) from error
