"""The write-ahead log: one record for each statement, durable before the statement is acknowledged.

Writers append to a buffer and go on; `group_commit` decides who of those that need their record on disk writes and
syncs for all of them.

A statement whose record does not get to the disk is refused, and there are two kinds of that:

- The write failed, for want of space for instance, and could be taken back: nothing of the statement is there, nor of
  those that were appended behind it and may build on it. The log goes on with the next statement (`epoch` tells the
  maps that they have something to take back first).
- A sync failed: what is on disk is unknown, and another sync would prove nothing, since the system may take the pages
  for written. The log refuses everything from then on, until the folder is opened again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EDQUOT, EFBIG, ENOSPC
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from remuda.errors import OutcomeUnknownError, StorageError
from remuda.storage.folder.store_files import open_file, remove_file
from remuda.storage.wal.durability import Durability
from remuda.storage.wal.group_commit import GroupCommit
from remuda.storage.wal.log_file import (
    HEADER_BYTES,
    LEVELS,
    file_header,
    log_path,
    record_header,
    settle_tail,
    sync_data,
    sync_folder,
    write_at,
)

if TYPE_CHECKING:
    from pathlib import Path

    from remuda.storage.wal.log_file import LogFile

LEAST_ROOM, MOST_ROOM = 16 * 1024, 256 * 1024
"""Bytes of zeros that are written ahead of the records: as many as there are records, within these bounds."""

RESERVE = 8 * 1024
"""Bytes of that room that no record takes: on a full disk they make way for the manifest of a statement that frees
space (`release_room`)."""

NO_SPACE = frozenset({ENOSPC, EDQUOT, EFBIG})
"""Errors that end when space is freed."""

_OPEN_AGAIN = "the maps can be read, and written again once the folder is opened anew"


class WriteAheadLog:
    """Open for appending to one file; `sequence` is the number of the last record appended.

    `epoch` counts how often records that were appended have been refused; the maps compare it with theirs.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        sequence: int,
        durability: Durability,
        resumed: LogFile | None = None,
        *,
        safe: bool = False,
        previous_length: int = 0,
    ) -> None:
        """Go on in the file `resumed`, of which `safe` says that all is durable, or begin a new one."""
        self._folder = folder
        self._syncs = durability is Durability.FSYNC
        self._append_lock = Lock()
        self._flush_lock = Lock()
        self._failure: StorageError | None = None
        """Why nothing is written any more."""
        self._descriptor = -1
        self._unknown = (0, 0)
        """The records above the first number, up to the second, may be on disk or not."""
        self._refused: list[tuple[int, int]] = []
        """The same of records that were appended and are not on disk."""
        self._refusal = ""
        self.epoch = 0
        self.sequence = sequence
        self._group = GroupCommit(self._append_lock, sequence, self._flush)
        self._buffer: list[bytes] = []
        self._unwritten = b""
        """Taken from the buffer, but not in the file yet: it stays here if the thread that writes it is interrupted."""
        self._descriptor, self.number, self._salt = -1, 0, 0
        self._written = self._synced_length = 0
        self._zeroed = 0
        """Where the room for records ends."""
        if resumed is None:
            self._begin_file(number, previous_length)
        else:
            self._resume_file(resumed, safe=safe)

    def append(self, payload: bytes, epoch: int = 0) -> int:
        """Adds a record to the buffer and returns its sequence number; nothing is on disk yet.

        `epoch` is the one whose refusals the caller knows: the statement may build on a later one.
        """
        with self._append_lock:
            if self._failure is not None or epoch != self.epoch:
                self._refuse_append()
            sequence = self.sequence + 1
            self._buffer += (record_header(payload, self._synced_length, sequence, self._salt), payload)
            self.sequence = sequence
            return sequence

    def wait(self, sequence: int) -> None:
        """Returns when the record is as durable as promised."""
        group = self._group
        while sequence > group.durable:
            if self._failure is not None or self._refused:
                self._refuse_if_not_kept(sequence)
            group.wait(sequence)
        if self._refused:
            self._refuse_if_not_kept(sequence)

    def make_safe(self) -> None:
        """Syncs all that was appended, whatever the durability.

        A manifest that describes a later moment must not outlive the records before it.
        """
        with self._flush_lock:
            self._flush_open_file(sync=True)

    def rotate(self) -> None:
        """Goes on in a new file, after everything in the old one is safe."""
        with self._flush_lock:
            self._flush_open_file(sync=True)
            with self._append_lock:
                # A record appended meanwhile would carry a length of the old file into the new one.
                self._store(*self._take(), sync=True, locked=True)
                before, end = self._descriptor, self._written
                # If this fails the old file stays in use: it must not be closed, its number could become another's.
                self._begin_file(self.number + 1, end)
                with suppress(OSError):  # Zeros that are not needed; readers know where the records end.
                    os.ftruncate(before, end)
                os.close(before)

    def release_room(self) -> bool:
        """Gives back the space that is kept for records; False if there is none."""
        with self._flush_lock:
            if self._failure is not None or self._zeroed <= self._written:
                return False
            try:
                os.ftruncate(self._descriptor, self._written)
            except OSError:
                return False
            self._zeroed = self._written
            return True

    @property
    def failed(self) -> bool:
        """Tell whether a sync has failed: nothing is appended from then on."""
        return self._failure is not None

    @property
    def durable_sequence(self) -> int:
        """Return the last record that is as durable as promised."""
        return self._group.durable

    @property
    def synced(self) -> tuple[int, int]:
        """Return the number of the file and how much of it survives a power failure: for the manifest."""
        return self.number, self._synced_length

    def is_refused(self, sequence: int) -> bool:
        """Tell whether the record is not on disk and never will be, or may not be there."""
        return (self._failure is not None and sequence > self._group.durable) or _within(self._refused, sequence)

    def refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise StorageError(f"a write could not be made durable: {_OPEN_AGAIN}", self._path) from self._failure

    def fail(self, failure: StorageError) -> None:
        """Refuses all writes from now on, because something else that they rely on could not be synced."""
        with self._flush_lock, self._append_lock:
            if self._failure is None:
                self._refusal, self._failure = str(failure), failure

    def close(self) -> None:
        with self._flush_lock:
            try:
                if self._failure is None:
                    self._flush_open_file(sync=True)
                    with suppress(OSError):
                        os.ftruncate(self._descriptor, self._written)
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Closes the file and writes nothing more."""
        descriptor, self._descriptor = self._descriptor, -1
        self._failure = self._failure or StorageError("the write-ahead log is closed", self._path, sqlstate="08003")
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        """Close the descriptor of a grid that is dropped without being closed."""
        if self._descriptor >= 0:
            os.close(self._descriptor)

    # Files

    @property
    def _path(self) -> Path:
        return log_path(self._folder, self.number)

    def _begin_file(self, number: int, previous_length: int) -> None:
        path = log_path(self._folder, number)
        salt = int.from_bytes(os.urandom(4), "little")
        try:
            descriptor = _make(path, file_header(self.sequence + 1, previous_length, salt, syncs=self._syncs))
        except OSError as error:
            raise StorageError(f"the write-ahead log cannot be written: {error.strerror}", path) from error
        self._use(descriptor, number, HEADER_BYTES, salt)

    def _resume_file(self, file: LogFile, *, safe: bool) -> None:
        assert file.salt is not None, "files of format 1 are not appended to"
        assert file.syncs is self._syncs, "what a file says of its tail is true of all of it"
        path = log_path(self._folder, file.number)
        descriptor = -1
        try:
            descriptor = open_file(path, os.O_WRONLY, levels=LEVELS)
            if not safe or os.fstat(descriptor).st_size != file.length:
                settle_tail(descriptor, file)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise StorageError(f"the write-ahead log cannot be written: {error.strerror}", path) from error
        self._use(descriptor, file.number, file.length, file.salt)

    def _use(self, descriptor: int, number: int, length: int, salt: int) -> None:
        self._descriptor, self.number, self._salt = descriptor, number, salt
        self._written = self._synced_length = self._zeroed = length

    # Flushing

    def _flush(self) -> None:
        """Makes all that was appended as durable as promised."""
        with self._flush_lock:
            self._flush_open_file(sync=self._syncs)

    def _flush_open_file(self, *, sync: bool) -> None:
        """Flush the open file; the flush lock is held."""
        with self._append_lock:
            chunk, upto = self._take()
        self._store(chunk, upto, sync=sync)

    def _take(self) -> tuple[bytes, int]:
        """Take all that was appended and not written yet; the append lock is held."""
        self.refuse_after_failure()
        chunk = b"".join((self._unwritten, *self._buffer))
        self._unwritten, self._buffer = chunk, []
        self._group.begin(self.sequence)
        return chunk, self.sequence

    def _store(self, chunk: bytes, upto: int, *, sync: bool, locked: bool = False) -> None:
        """Write a chunk of records.

        A thread that is interrupted here leaves the chunk to the next, which writes it to the same place.

        `locked` says that the append lock is held.
        """
        end = self._written + len(chunk)
        # What was written before without a sync is not made durable by the sync of what is written now.
        all_before = self._synced_length == self._written
        if sync and end + LEAST_ROOM > self._zeroed and chunk and self._syncs:
            self._make_room(end, locked)
        synced = sync and all_before
        try:
            synced = write_at(self._descriptor, chunk, self._written, sync=synced)
        except OSError as error:
            self._write_failed(error, upto, locked, synced=synced)
        if sync and not synced:
            try:
                sync_data(self._descriptor)
            except OSError as error:
                self._cut_off(sync=False)
                self._sync_failed(error, upto)
        if sync:
            self._synced_length = end
        self._written = end
        self._unwritten = b""
        self._group.durable = upto

    def _make_room(self, end: int, locked: bool) -> None:
        """Write zeros behind `end`: as long as the file does not grow, a sync writes its data and nothing else."""
        for room in sorted({LEAST_ROOM, min(max(end, LEAST_ROOM), MOST_ROOM)}, reverse=True):
            try:
                _write_all(self._descriptor, bytes(end - self._written + room), self._written)
                break
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._zeroed)
                if room == LEAST_ROOM:
                    if end + RESERVE > self._zeroed:
                        self._retract(error, locked)
                    return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._sync_failed(error, self._group.durable)
        self._zeroed = end + room

    # Failures

    def _write_failed(self, error: OSError, upto: int, locked: bool, *, synced: bool) -> NoReturn:
        """Handle a failed write.

        A write that was to be synced at once may have failed in either half, unless it was for want of space.

        Everything before it was synced then, so a later sync has nothing to vouch for but that it was cut off.
        """
        certain = error.errno in NO_SPACE or not synced
        if self._cut_off(sync=certain and self._syncs) and certain:
            self._retract(error, locked)
        self._sync_failed(error, upto)

    def _cut_off(self, *, sync: bool) -> bool:
        """Removes what a refused write has left; False if that fails."""
        try:
            os.ftruncate(self._descriptor, self._written)
            self._zeroed = self._written
            if sync:
                os.fsync(self._descriptor)
        except OSError:
            return False
        return True

    def _retract(self, error: OSError, locked: bool) -> NoReturn:
        """Refuses every record that is not durable yet and goes on: none of them is on disk."""
        if not locked:
            self._append_lock.acquire()
        try:
            first = self._group.durable
            if self._refused and self._refused[-1][0] == first:
                self._refused.pop()
            self._refused.append((first, self.sequence))
            self._refusal = error.strerror or str(error)
            self._buffer, self._unwritten = [], b""
            self.epoch += 1
        finally:
            if not locked:
                self._append_lock.release()
        raise self._refused_error() from error

    def _sync_failed(self, error: OSError, upto: int) -> NoReturn:
        """Refuses all writes from now on; the records up to `upto` may be on disk."""
        self._unknown = (self._group.durable, upto)
        self._refusal = error.strerror or str(error)
        self._failure = StorageError(f"a sync failed: {self._refusal}", self._path, self._written)
        self._failure.__cause__ = error
        self._refuse_if_not_kept(upto)
        raise self._unkept_error() from error

    def _refuse_append(self) -> NoReturn:
        self.refuse_after_failure()
        raise self._refused_error()

    def _refuse_if_not_kept(self, sequence: int) -> None:
        if _within([self._unknown], sequence):
            message = f"it is unknown whether the write is durable, its sync failed: {self._refusal}; {_OPEN_AGAIN}"
            raise OutcomeUnknownError(message, self._path, self._written) from self._failure
        if _within(self._refused, sequence):
            raise self._refused_error()
        if self._failure is not None and sequence > self._group.durable:
            raise self._unkept_error() from self._failure

    def _refused_error(self) -> StorageError:
        message = f"a write could not be made durable: {self._refusal}; nothing of it was kept"
        return StorageError(message, self._path, self._written)

    def _unkept_error(self) -> StorageError:
        message = f"a write could not be made durable: {self._refusal}; nothing of it was kept; {_OPEN_AGAIN}"
        return StorageError(message, self._path, self._written)


def _within(ranges: list[tuple[int, int]], sequence: int) -> bool:
    return any(first < sequence <= last for first, last in ranges)


def _make(path: Path, header: bytes) -> int:
    """Makes a file, whole and with a durable name, or none.

    Only a file that no record was written to can be there already: one that could not be removed when this failed.
    """
    descriptor = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, levels=LEVELS)
    try:
        _write_all(descriptor, header, 0)
        os.fsync(descriptor)
        sync_folder(path.parent)
    except BaseException:
        os.close(descriptor)
        with suppress(OSError):
            remove_file(path, levels=LEVELS)
        raise
    return descriptor


def _write_all(descriptor: int, chunk: bytes, offset: int) -> None:
    left = memoryview(chunk)
    while left:
        written = os.pwrite(descriptor, left, offset)
        offset += written
        left = left[written:]
