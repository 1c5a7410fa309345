"""The write-ahead log: one record for each statement, durable before the statement is acknowledged.

Group commit: writers append to a buffer and go on; the first that needs its record on disk writes and syncs for all,
the others wait for it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.write_ahead_file import file_header, log_path, record_header, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

_MOMENT = 0.00001
_PATIENCE = 8
"""So many moments (seconds) a batch waits at most for more records."""


class Durability(Enum):
    """What an acknowledged write survives."""

    FSYNC = "fsync"
    """Power loss."""
    OS = "os"
    """The end of the process, however sudden."""
    NONE = "none"
    """Nothing before the next checkpoint or close: for loading."""

    __hash__ = object.__hash__


class _Batch:
    """So many records that become durable together, and a closed gate for each writer that waits for it.

    Gates of their own wake the writers one by one; a common event would have them all wait for its lock again.
    """

    __slots__ = ("count", "gates", "led", "upto")

    def __init__(self) -> None:
        self.count = 0
        self.led = False
        self.upto = 0
        self.gates: list[Lock] = []

    def open(self) -> None:
        for gate in self.gates:
            gate.release()
        self.gates.clear()


class WriteAheadLog:
    """Open for appending to one file; `sequence` is the number of the last record appended."""

    def __init__(self, folder: Path, number: int, sequence: int, durability: Durability, length: int | None) -> None:
        """`length` is where an existing file goes on; None makes the file."""
        self._folder = folder
        self._durability = durability
        self._append_lock = Lock()
        self._flush_lock = Lock()
        self._failure: StorageError | None = None
        self.number = number
        self.sequence = sequence
        self._durable_sequence = sequence
        self._buffer: list[bytes] = []
        self._open_batch = _Batch()
        self._flushing = _Batch()
        self._descriptor, self._written = self._open(length)
        self._safe_length = self._synced_length = self._written

    def append(self, payload: bytes) -> int:
        """Adds a record to the buffer and returns its sequence number; nothing is on disk yet."""
        with self._append_lock:
            self.refuse_after_failure()
            self._buffer += (record_header(payload, self._safe_length), payload)
            self._open_batch.count += 1
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
        """Returns when the record is as durable as promised.

        The first that waits for a batch leads it: while an earlier batch is being synced, more records join.
        """
        if sequence <= self._durable_sequence:
            return
        with self._append_lock:
            self.refuse_after_failure()
            batch = self._flushing if sequence <= self._flushing.upto else self._open_batch
            leads = not batch.led
            batch.led = True
            gate = None
            if not leads and sequence > self._durable_sequence:
                gate = Lock()
                gate.acquire()
                batch.gates.append(gate)
        if leads:
            with self._flush_lock:
                if batch is self._open_batch:
                    self._gather(batch)
                    self._flush()
        elif gate is not None:
            gate.acquire()
        if sequence > self._durable_sequence:
            self.refuse_after_failure()

    def _gather(self, batch: _Batch) -> None:
        """Waits a moment for those whom the batch before has just woken.

        Without it a batch of one and a batch of all the others would take turns, and there would be twice as many syncs
        as needed. A writer that is alone does not wait.
        """
        expected = self._flushing.count if self._durability is Durability.FSYNC else 0
        patience = _PATIENCE
        while batch.count < expected and patience:
            patience -= 1
            time.sleep(_MOMENT)

    def rotate(self) -> None:
        """Goes on in a new file, after everything in the old one is safe."""
        with self._flush_lock:
            self._flush(sync=True)
            try:
                with self._append_lock:
                    # A record appended meanwhile would carry a length of the old file into the new one.
                    self._store(*self._take(), sync=True)
                    os.close(self._descriptor)
                    self.number += 1
                    self._descriptor, self._written = self._open(None)
                    self._safe_length = self._synced_length = self._written
            finally:
                self._release()

    @property
    def failed(self) -> bool:
        """Whether a record could not be made durable: nothing is appended from then on."""
        return self._failure is not None

    @property
    def durable_sequence(self) -> int:
        """The last record that is as durable as promised."""
        return self._durable_sequence

    @property
    def synced(self) -> tuple[int, int]:
        """The number of the file and how much of it survives a power failure: for the manifest."""
        return self.number, self._synced_length

    def close(self) -> None:
        with self._flush_lock:
            try:
                if self._failure is None:
                    self._flush(sync=True)
            finally:
                os.close(self._descriptor)

    def _open(self, length: int | None) -> tuple[int, int]:
        path = log_path(self._folder, self.number)
        try:
            if length is not None:
                descriptor = os.open(path, os.O_WRONLY)
                os.ftruncate(descriptor, length)
                os.lseek(descriptor, length, os.SEEK_SET)
                os.fsync(descriptor)
                return descriptor, length
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            header = file_header(self._durable_sequence + 1)
            os.write(descriptor, header)
            os.fsync(descriptor)
            sync_folder(self._folder)
            return descriptor, len(header)
        except OSError as error:
            raise StorageError(f"the write-ahead log cannot be written: {error.strerror}", path) from error

    def _flush(self, *, sync: bool = False) -> None:
        """Writes the open batch out; the flush lock is held."""
        with self._append_lock:
            chunk, upto = self._take()
        try:
            self._store(chunk, upto, sync=sync)
        finally:
            self._release()

    def _take(self) -> tuple[bytes, int]:
        """Closes the open batch; the append lock is held."""
        if self._failure is not None:
            self._open_batch.open()
        self.refuse_after_failure()
        chunk, self._buffer = b"".join(self._buffer), []
        self._flushing, self._open_batch = self._open_batch, _Batch()
        self._flushing.led = True
        self._flushing.upto = self.sequence
        return chunk, self.sequence

    def refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _release(self) -> None:
        """Wakes those who wait for the batch that was written, or was not."""
        with self._append_lock:
            self._flushing.open()

    def _store(self, chunk: bytes, upto: int, *, sync: bool) -> None:
        try:
            view = memoryview(chunk)
            while view:
                view = view[os.write(self._descriptor, view) :]
            synced = sync or self._durability is Durability.FSYNC
            if synced:
                os.fdatasync(self._descriptor)
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
        self._written += len(chunk)
        self._safe_length = self._written
        if synced:
            self._synced_length = self._written
        self._durable_sequence = upto
