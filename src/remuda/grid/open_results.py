"""The results that somebody may still read when their grid is closed."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

from remuda.errors import ErrorCode, SqlError
from remuda.runtime.scheduler import closed_error

if TYPE_CHECKING:
    from remuda.grid.result import Result


class OpenResults:
    """Those whose rows are computed as they are read. One that had all of its rows at once keeps them, like a list."""

    def __init__(self) -> None:
        self._results: WeakSet[Result] = WeakSet()
        self._ended = False
        self._lock = Lock()

    def add(self, result: Result) -> None:
        with self._lock:
            if not self._ended:
                self._results.add(result)
                return
        result.end(closed_error())

    def leave(self, reason: str) -> None:
        """In a process that was forked off: refuse every read. No lock is taken, as its holder is not in this one."""
        self._ended = True
        for result in list(self._results):
            result.leave(SqlError(ErrorCode.GENERIC, reason))

    def end(self) -> None:
        """Whoever reads on gets an error, wherever they are."""
        with self._lock:
            self._ended = True
            results = list(self._results)
        for result in results:
            result.end(closed_error())
