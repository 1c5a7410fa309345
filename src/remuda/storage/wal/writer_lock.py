"""The lock of a map's writers, and the records under it that may still turn out not to be durable."""

from __future__ import annotations

from collections import deque
from threading import RLock
from typing import TYPE_CHECKING

from remuda.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.storage.wal.log import WriteAheadLog


class WriterLock:
    """Locks a map for one writer, and waits for durability behind the lock.

    Leaving it for the last time waits until what was written is durable, after the lock is free: an fsync keeps no
    other writer out, and several writers share one.

    Where that fails, what was written is taken back before the error reaches the writer. Another writer that gets the
    lock before that takes it back first: a statement must not build on what was refused. One that has the lock already
    may have read it, so its record is refused too.

    `pending` is the last record appended under the lock; 0 if there is none. `epoch` is that of the WAL when all that
    it had refused was taken back.
    """

    __slots__ = ("_depth", "_lock", "_take_back", "_wal", "epoch", "pending")

    def __init__(self, wal: WriteAheadLog, take_back: Callable[[], None]) -> None:
        self._lock = RLock()
        self._wal = wal
        self._take_back = take_back
        self._depth = 0
        self.pending = 0
        self.epoch = wal.epoch

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock as an `RLock` is taken; False where it could not be had in that time."""
        if not self._lock.acquire(blocking, timeout):
            return False
        self._depth += 1
        if self.epoch != self._wal.epoch and self._depth == 1:
            try:
                self._take_back()
            except BaseException:
                self._depth -= 1
                self._lock.release()
                raise
        return True

    __enter__ = acquire

    def release(self) -> None:
        self.__exit__()

    def __exit__(self, *_: object) -> None:
        """Free the lock and, left for the last time, wait until what was written under it is durable."""
        self._depth -= 1
        pending = 0
        if self._depth == 0:
            pending, self.pending = self.pending, 0
        self._lock.release()
        if pending:
            try:
                self._wal.wait(pending)
            except StorageError:
                self._take_back()
                raise


class UnsafeRecords:
    """Remembers which statements of a map may not be durable yet, so that they can be taken back.

    Each record has the length of the memtable before it. The caller holds the writer lock.
    """

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: deque[tuple[int, int]] = deque()

    def add(self, sequence: int, length: int, durable: int) -> None:
        """Remember a new record; those up to `durable` are safe by now."""
        records = self._records
        while records and records[0][0] <= durable:
            records.popleft()
        records.append((sequence, length))

    def carried(self, start: int, stop: int) -> UnsafeRecords:
        """Return the same when only the entries [start, stop) of the log go on, in a new log."""
        kept = UnsafeRecords()
        kept._records.extend((sequence, length - start) for sequence, length in self._records if start <= length < stop)
        return kept

    def first_refused(self, is_refused: Callable[[int], bool]) -> tuple[int, int] | None:
        """Return the first record that will never be durable, with the length of the log before it; None if there is
        none."""
        return next((record for record in self._records if is_refused(record[0])), None)
