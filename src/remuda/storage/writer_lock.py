"""The lock of a map's writers. Leaving it for the last time also waits until what was written is durable: after the
lock is free, so that an fsync keeps nobody out, and several writers share one.

Where that fails, what was written is taken back before the error reaches the writer. Another writer that gets the lock
before that takes it back first: a statement must not build on what was refused. One that has the lock already may have
read it, so its record is refused too."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from remuda.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.storage.wal.write_ahead_log import WriteAheadLog


class WriterLock:
    """`pending` is the last record appended under the lock; 0 if there is none. `epoch` is that of the journal when all
    that it had refused was taken back."""

    __slots__ = ("_depth", "_journal", "_lock", "_take_back", "epoch", "pending")

    def __init__(self, journal: WriteAheadLog, take_back: Callable[[], None]) -> None:
        self._lock = RLock()
        self._journal = journal
        self._take_back = take_back
        self._depth = 0
        self.pending = 0
        self.epoch = journal.epoch

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self.epoch != self._journal.epoch and self._depth == 1:
            try:
                self._take_back()
            except BaseException:
                self._depth -= 1
                self._lock.release()
                raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        pending = 0
        if self._depth == 0:
            pending, self.pending = self.pending, 0
        self._lock.release()
        if pending:
            try:
                self._journal.wait(pending)
            except StorageError:
                self._take_back()
                raise
