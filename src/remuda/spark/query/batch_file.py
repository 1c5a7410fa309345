"""Files of record batches that tasks write and others map: answers too large for Spark, rows on their way to a segment.

Every batch is an Arrow stream of its own, as a column may be a dictionary in one batch and plain in the next. They
start at multiples of a cache line, so that their buffers can be used where they are.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    import numpy as np

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Where a batch is in its file."""

    start: int
    length: int


class BatchFileWriter:
    """The file has no name that others know before the writer is closed: they learn of it and of the places then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = pa.OSFile(str(path), "wb")

    def append(self, batch: pa.RecordBatch) -> ByteRange:
        start = self._file.tell()
        with pa.ipc.new_stream(self._file, batch.schema) as writer:
            writer.write_batch(batch)
        end = self._file.tell()
        self._file.write(bytes(-end % ALIGNMENT))
        return ByteRange(start, end - start)

    def append_raw(self, array: np.ndarray) -> ByteRange:
        """Append the bytes of an array, which `BatchFile.raw` gives back."""
        start = self._file.tell()
        self._file.write(array.tobytes())
        return ByteRange(start, array.nbytes)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class BatchFile:
    """A file that is mapped with the first batch that is read from it."""

    path: str

    def read(self, byte_range: ByteRange) -> pa.RecordBatch:
        """Without a copy. The file may be removed meanwhile; what is mapped stays."""
        return from_stream(self._mapped.slice(byte_range.start, byte_range.length))

    def raw(self, byte_range: ByteRange) -> pa.Buffer:
        """Return bytes, without a copy."""
        return self._mapped.slice(byte_range.start, byte_range.length)

    @cached_property
    def _mapped(self) -> pa.Buffer:
        with pa.memory_map(self.path) as mapped:
            return mapped.read_buffer()


def to_stream(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def from_stream(body: pa.Buffer) -> pa.RecordBatch:
    return pa.ipc.open_stream(body).read_next_batch()
