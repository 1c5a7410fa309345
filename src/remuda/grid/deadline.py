"""Statements that change something, within the time they have: done, or not done at all.

Where there is a timeout the statement runs on another thread, and whoever gave it waits for the end or for the time to
be over. In the latter case they leave at once; the statement finds that out between its pieces, at the latest before it
commits, and takes back what it has done. It looks at the clock itself: on a busy machine it may come to its commit
before whoever waits for it has noticed that the time is over. Who has the last word is decided once: after the commit
has been granted there is no leaving any more.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from remuda.errors import ErrorCode, SqlError
from remuda.expr.cancellation import asking
from remuda.storage import always_granted

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.runtime.offload_pool import OffloadPool
    from remuda.storage import CommitGuard

Answer = TypeVar("Answer")


def within_time(
    threads: OffloadPool, timeout: float | None, started: float, work: Callable[[CommitGuard], Answer]
) -> Answer:
    """What `work` gives; `started` is when the statement was given, by `time.monotonic`."""
    if timeout is None:
        return work(always_granted)
    decision = _Decision(timeout, started + timeout)

    def work_aside() -> Answer:
        with asking(decision.verify):
            return work(decision.confirm)

    step = threads.start(work_aside)
    try:
        return step.result(max(decision.end - time.monotonic(), 0.0))
    except BaseException as error:
        if step.done() or not decision.leave():
            return step.result()
        if isinstance(error, TimeoutError):
            raise decision.too_late() from None
        raise


class _Decision:
    def __init__(self, timeout: float, end: float) -> None:
        self._timeout = timeout
        self.end = end
        self._lock = Lock()
        self._granted = self._left = False

    def confirm(self) -> None:
        with self._lock:
            self.verify()
            self._granted = True

    def verify(self) -> None:
        if not self._granted and (self._left or time.monotonic() > self.end):
            raise self.too_late()

    def leave(self) -> bool:
        """False where the commit has been granted."""
        with self._lock:
            self._left = not self._granted
            return self._left

    def too_late(self) -> SqlError:
        return SqlError(ErrorCode.TIMEOUT, f"the statement took longer than its timeout of {self._timeout:g} s")
