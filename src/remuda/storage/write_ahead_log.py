"""The write-ahead log: one record for each statement, durable before the statement is acknowledged.

Writers append to a buffer and go on; `group_commit` decides who of those that need their record on disk writes and
syncs for all of them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.group_commit import GroupCommit
from remuda.storage.write_ahead_file import file_header, log_path, record_header, sync_data, sync_folder, write_at

if TYPE_CHECKING:
    from pathlib import Path


LEAST_ROOM, MOST_ROOM = 16 * 1024, 256 * 1024
"""Bytes of zeros that are written ahead of the records: as many as there are records, within these bounds."""


class Durability(Enum):
    """What an acknowledged write survives."""

    FSYNC = "fsync"
    """Power loss."""
    OS = "os"
    """The end of the process, however sudden."""
    NONE = "none"
    """Nothing before the next checkpoint or close: for loading."""

    __hash__ = object.__hash__


class WriteAheadLog:
    """Open for appending to one file; `sequence` is the number of the last record appended."""

    def __init__(
        self,
        folder: Path,
        number: int,
        sequence: int,
        durability: Durability,
        length: int | None,
        *,
        safe: bool = False,
    ) -> None:
        """`length` is where an existing file goes on; None makes the file. `safe` says that so much was synced."""
        self._folder = folder
        self._durability = durability
        self._append_lock = Lock()
        self._flush_lock = Lock()
        self._failure: StorageError | None = None
        self.sequence = sequence
        self._group = GroupCommit(self._append_lock, sequence, self._flush)
        self._buffer: list[bytes] = []
        self._unwritten = b""
        """Taken from the buffer, but not in the file yet: it stays here if the thread that writes it is interrupted."""
        self._begin_file(number, length, safe=safe)

    def append(self, payload: bytes) -> int:
        """Adds a record to the buffer and returns its sequence number; nothing is on disk yet."""
        with self._append_lock:
            self.refuse_after_failure()
            self._buffer += (record_header(payload, self._safe_length), payload)
            self.sequence += 1
            return self.sequence

    def skip_to(self, sequence: int) -> None:
        """Fills the numbers up to this one with empty records.

        They were given to statements that never reached the disk, but a manifest that did already speaks of them: a new
        record with such a number would be taken for one that is folded.
        """
        while self.sequence < sequence:
            self.append(b"")
        self.wait(self.sequence)

    def wait(self, sequence: int) -> None:
        """Returns when the record is as durable as promised."""
        while sequence > self._group.durable:
            self.refuse_after_failure()
            self._group.wait(sequence)

    def rotate(self) -> None:
        """Goes on in a new file, after everything in the old one is safe."""
        with self._flush_lock:
            self._flush_open_file(sync=True)
            with self._append_lock:
                # A record appended meanwhile would carry a length of the old file into the new one.
                self._store(*self._take(), sync=True)
                # Only the last file may have room behind its records.
                os.ftruncate(self._descriptor, self._written)
                os.fsync(self._descriptor)
                self._zeroed = self._written
                before = self._descriptor
                # If this fails the old file stays in use: it must not be closed, its number could become another's.
                self._begin_file(self.number + 1, None)
                os.close(before)

    @property
    def failed(self) -> bool:
        """Whether a record could not be made durable: nothing is appended from then on."""
        return self._failure is not None

    @property
    def durable_sequence(self) -> int:
        """The last record that is as durable as promised."""
        return self._group.durable

    @property
    def synced(self) -> tuple[int, int]:
        """The number of the file and how much of it survives a power failure: for the manifest."""
        return self.number, self._synced_length

    def close(self) -> None:
        with self._flush_lock:
            try:
                if self._failure is None:
                    self._flush_open_file(sync=True)
                    with suppress(OSError):
                        os.ftruncate(self._descriptor, self._written)
            finally:
                os.close(self._descriptor)

    def _begin_file(self, number: int, length: int | None, *, safe: bool = False) -> None:
        self._descriptor, self._written = self._open(number, length, safe=safe)
        self.number = number
        self._safe_length = self._synced_length = self._written
        self._zeroed = self._written
        """Where the room for records ends."""

    def _open(self, number: int, length: int | None, *, safe: bool) -> tuple[int, int]:
        path = log_path(self._folder, number)
        try:
            if length is None:
                return self._make(path)
            descriptor = os.open(path, os.O_WRONLY)
            if not safe or os.fstat(descriptor).st_size != length:
                os.ftruncate(descriptor, length)
                os.fsync(descriptor)
        except OSError as error:
            raise StorageError(f"the write-ahead log cannot be written: {error.strerror}", path) from error
        return descriptor, length

    def _make(self, path: Path) -> tuple[int, int]:
        """A new file, whole and with a durable name, or none."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            header = file_header(self._group.durable + 1)
            os.write(descriptor, header)
            os.fsync(descriptor)
            sync_folder(self._folder)
        except BaseException:
            os.close(descriptor)
            path.unlink()
            raise
        return descriptor, len(header)

    def _flush(self) -> None:
        """Makes all that was appended as durable as promised."""
        with self._flush_lock:
            self._flush_open_file(sync=self._durability is Durability.FSYNC)

    def _flush_open_file(self, *, sync: bool) -> None:
        """The flush lock is held."""
        with self._append_lock:
            chunk, upto = self._take()
        self._store(chunk, upto, sync=sync)

    def _take(self) -> tuple[bytes, int]:
        """All that was appended and not written yet; the append lock is held."""
        self.refuse_after_failure()
        chunk = b"".join((self._unwritten, *self._buffer))
        self._unwritten, self._buffer = chunk, []
        self._group.begin(self.sequence)
        return chunk, self.sequence

    def refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _store(self, chunk: bytes, upto: int, *, sync: bool) -> None:
        """Whoever is interrupted here leaves the chunk to the next, who writes it to the same place."""
        end = self._written + len(chunk)
        try:
            if sync and end > self._zeroed:
                self._make_room(end)
            # What was written before without a sync is not made durable by the sync of what is written now.
            all_before = self._synced_length == self._written
            write_at(self._descriptor, chunk, self._written, sync=sync and all_before)
            if sync and not all_before:
                sync_data(self._descriptor)
        except OSError as error:
            path = log_path(self._folder, self.number)
            self._failure = StorageError(
                f"a write could not be made durable: {error.strerror}; "
                "the maps can be read, and written again once they are opened anew",
                path,
                self._written,
            )
            # What was refused must not come back when the folder is opened again, whole as it may be by chance.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._written)
            raise self._failure from error
        if sync:
            self._synced_length = end
        self._written = self._safe_length = end
        self._unwritten = b""
        self._group.durable = upto

    def _make_room(self, end: int) -> None:
        """Zeros behind `end`: as long as the file does not grow, a sync has its data to write and nothing else."""
        room = bytes(end - self._written + min(max(end, LEAST_ROOM), MOST_ROOM))
        with suppress(OSError):
            if os.pwrite(self._descriptor, room, self._written) == len(room):
                os.fsync(self._descriptor)
                self._zeroed = self._written + len(room)
                return
        # The disk is nearly full: there may still be space for the records alone.
        os.ftruncate(self._descriptor, self._written)
