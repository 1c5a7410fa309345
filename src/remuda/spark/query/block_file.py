"""The file of one sender of a shuffle: its blocks, and a footer that tells where those of each receiver are.

    block 0 | block 1 | ... | footer: four integers a block | number of blocks

A block is an Arrow stream and starts at a multiple of a cache line, so that its buffers can be used where they are. The
footer is an array that a receiver maps and searches: it opens the files of all senders and needs a few blocks of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.spark.query.batch_file import ALIGNMENT, from_stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOR_ALL = -1
_ENTRY = np.dtype([("edge", "<i8"), ("target", "<i8"), ("start", "<i8"), ("length", "<i8")])
_COUNT = np.dtype("<i8")


class BlockFileWriter:
    """Receivers learn of the file when it is closed."""

    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(str(path), "wb")
        self._entries: list[tuple[int, int, int, int]] = []

    def append(self, edge: int, target: int | None, packed: pa.Buffer | bytes) -> None:
        """Write one block. `target` is the task that it is for; None where it is for all."""
        start = self._file.tell()
        self._file.write(packed)
        length = self._file.tell() - start
        self._file.write(bytes(-length % ALIGNMENT))
        self._entries.append((edge, _FOR_ALL if target is None else target, start, length))

    def close(self) -> None:
        footer = np.array(self._entries, _ENTRY)
        self._file.write(footer.tobytes())
        self._file.write(np.array(len(footer), _COUNT).tobytes())
        self._file.close()


@dataclass(frozen=True, slots=True, eq=False)
class BlockFile:
    """A mapped file. It may be removed meanwhile; what is mapped stays."""

    mapped: pa.Buffer
    entries: np.ndarray

    @classmethod
    def open(cls, path: Path) -> Self:
        with pa.memory_map(str(path)) as file:
            mapped = file.read_buffer()
        end = mapped.size - _COUNT.itemsize
        (count,) = np.frombuffer(mapped, _COUNT, 1, end)
        return cls(mapped, np.frombuffer(mapped, _ENTRY, count, end - int(count) * _ENTRY.itemsize))

    def blocks(self, edge: int, task: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a task receives on an edge, without a copy, in the order in which they were sent."""
        targets = self.entries["target"]
        for entry in self.entries[(self.entries["edge"] == edge) & ((targets == task) | (targets == _FOR_ALL))]:
            yield from_stream(self.mapped.slice(int(entry["start"]), int(entry["length"])))
