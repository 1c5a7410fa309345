"""Spill file: batches of Arrow, compressed by LZ4, in a file that has no name.

The file is removed from its folder as it is made (`O_TMPFILE`, or unlinked at once): the system frees its blocks when
the descriptor is closed, also where the process is killed, and no later process has anything to clean up.
"""

from __future__ import annotations

import os
import weakref
from errno import EDQUOT, EFBIG, ENOSPC
from tempfile import TemporaryFile
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import ErrorCode, SqlError, disk_error, output_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NO_SPACE = frozenset({ENOSPC, EDQUOT, EFBIG})
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SpillFile:
    """Written by one thread; any may read what is written, or close the file: its next use is an error then."""

    __slots__ = ("__weakref__", "_descriptor", "_end", "_folder", "_lock", "_spans", "bytes")

    def __init__(self, folder: Path | None) -> None:
        """Without a folder the file is in the system's temporary one."""
        self._folder = folder
        self._lock = Lock()
        self._spans: list[tuple[int, int]] = []
        """Where each batch begins, and how many bytes it has."""
        self.bytes = 0
        try:
            with TemporaryFile(buffering=0, dir=folder) as opened:
                self._descriptor = os.dup(opened.fileno())
        except OSError as error:
            raise self._told(error) from error
        self._end = weakref.finalize(self, os.close, self._descriptor)

    def write(self, batch: pa.RecordBatch) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
            writer.write_batch(batch)
        content = memoryview(sink.getvalue())
        with self._lock:
            self._check_open()
            try:
                written = 0
                while written < len(content):
                    written += os.pwrite(self._descriptor, content[written:], self.bytes + written)
            except OSError as error:
                raise self._told(error) from error
            self._spans.append((self.bytes, len(content)))
            self.bytes += len(content)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the batches in the order they were written; each is in memory of its own."""
        for position in range(len(self._spans)):
            yield self.batch(position)

    def batch(self, position: int) -> pa.RecordBatch:
        """Read one batch."""
        start, size = self._spans[position]
        with self._lock:
            self._check_open()
            try:
                content = os.pread(self._descriptor, size, start)
            except OSError as error:
                raise self._told(error) from error
        with pa.ipc.open_stream(content) as reader:
            return reader.read_next_batch()

    def close(self) -> None:
        """Give the space back."""
        with self._lock:
            self._end()

    def _check_open(self) -> None:
        """Refuse a closed file: its descriptor may be another file's by now."""
        if not self._end.alive:
            raise SqlError(ErrorCode.CANCELLED_BY_USER, "the query was cancelled")

    def _told(self, error: OSError) -> SqlError:
        place = "the system's temporary folder" if self._folder is None else str(self._folder)
        if error.errno in _NO_SPACE:
            return disk_error(
                f"no space is left in {place} for the rows that the statement spills",
                suggestion="Free some space, or SET spill_folder to a folder of another disk.",
            )
        return output_error(f"rows cannot be spilled to {place}: {error.strerror}")
