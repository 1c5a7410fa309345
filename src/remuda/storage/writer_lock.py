"""The lock of a map's writers. Leaving it for the last time also waits until what was written is durable: after the
lock is free, so that an fsync keeps nobody out, and several writers share one.

Where the sync fails, what was written is taken back before the error reaches the writer."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from remuda.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.storage.write_ahead_log import WriteAheadLog


class WriterLock:
    """`pending` is the last record appended under the lock; 0 if there is none."""

    __slots__ = ("_depth", "_journal", "_lock", "_take_back", "pending")

    def __init__(self, journal: WriteAheadLog | None, take_back: Callable[[], None]) -> None:
        self._lock = RLock()
        self._journal = journal
        self._take_back = take_back
        self._depth = 0
        self.pending = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        pending = 0
        if self._depth == 0:
            pending, self.pending = self.pending, 0
        self._lock.release()
        if pending and self._journal is not None:
            try:
                self._journal.wait(pending)
            except StorageError:
                self._take_back()
                raise
