"""Shuffle blocks: rows of an edge on their way from a task of one stage to a task of the next.

The first few bytes that a task sends travel as they are, through the driver. The rest is written into one file of the
task's own, in a folder that all see, beside the maps; only the offsets in it travel, and the receiving task maps the
file. A task may run twice: the driver takes the shuffle blocks of the run that has answered, so that the tasks of the
next stage all read the same, even if executors are lost or the query calls volatile functions.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.exec import ArrowBatch
from remuda.exec.sort.ordering import concatenate
from remuda.spark.query.answers import compact
from remuda.spark.query.batch_file import BatchFile, BatchFileWriter, ByteRange, from_stream, to_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from remuda.exec import RowBatch
    from remuda.expr import Column

BLOCK_ROWS = 65_536
"""Rows that wait to be sent together: kernels are slow on many small batches."""
INLINE_BYTES = 1 << 16
"""What a task sends through the driver, which hands it to all tasks of the next stage."""


MEASURED_EDGE = -1
"""The edge of a shuffle block that has no rows but what its sender measured, for the driver."""


@dataclass(frozen=True, slots=True)
class ShuffleBlock:
    """`target` is the number of the task that it is for; None where it is for all. Without a place `rows` has them."""

    edge: int
    target: int | None
    rows: bytes | None
    path: str = ""
    byte_range: ByteRange | None = None

    def open(self) -> pa.RecordBatch:
        if self.rows is not None:
            return from_stream(pa.py_buffer(self.rows))
        assert self.byte_range is not None, "what is not in the shuffle block is in a file"
        return BatchFile(self.path).read(self.byte_range)


class ShuffleBlockWriter:
    """Packs what a task sends; `folder` is where a file is made when there is much of it. Without one all is inline."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: BatchFileWriter | None = None
        self._inline = 0
        self._waiting: dict[tuple[int, int | None], list[pa.RecordBatch]] = {}
        self._blocks: list[ShuffleBlock] = []

    def channel(self, edge: int, target: int | None) -> ShuffleBlockChannel:
        return ShuffleBlockChannel(self, edge, target)

    def add(self, edge: int, target: int | None, batch: pa.RecordBatch) -> None:
        waiting = self._waiting.setdefault((edge, target), [])
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= BLOCK_ROWS:
            self._pack(edge, target)

    def finish(self) -> list[ShuffleBlock]:
        for edge, target in list(self._waiting):
            self._pack(edge, target)
        if self._file is not None:
            self._file.close()
        return self._blocks

    def _pack(self, edge: int, target: int | None) -> None:
        batch = compact(concatenate(self._waiting.pop((edge, target))))
        if self._file is None:
            stream = to_stream(batch)
            if self._folder is None or self._inline + stream.size <= INLINE_BYTES:
                self._inline += stream.size
                self._blocks.append(ShuffleBlock(edge, target, stream.to_pybytes()))
                return
            self._file = BatchFileWriter(Path(self._folder) / f"{uuid4().hex}.arrow")
        self._blocks.append(ShuffleBlock(edge, target, None, str(self._file.path), self._file.append(batch)))


@dataclass(frozen=True, slots=True)
class ShuffleBlockChannel:
    """The sending end of an edge in a task: it always has room."""

    writer: ShuffleBlockWriter
    edge: int
    target: int | None

    def offer(self, batch: RowBatch) -> bool:
        self.writer.add(self.edge, self.target, batch.arrow())
        return True

    def finish(self) -> None:
        """Others of the edge may still be written to."""

    def poll(self) -> RowBatch | None:
        raise AssertionError("what is sent is received in another task")

    def abandon(self) -> None:
        raise AssertionError("what is sent is received in another task")

    @property
    def is_finished(self) -> bool:
        return False


class OpenedBlocks:
    """The receiving end: all that is there for this task, one shuffle block after the other; nothing is waited for."""

    def __init__(self, columns: tuple[Column, ...], shuffle_blocks: Sequence[ShuffleBlock]) -> None:
        self._columns = columns
        self._remaining: Iterator[ShuffleBlock] = iter(shuffle_blocks)
        self._finished = False

    def poll(self) -> RowBatch | None:
        shuffle_block = next(self._remaining, None)
        if shuffle_block is None:
            self._finished = True
            return None
        return ArrowBatch(self._columns, shuffle_block.open())

    def abandon(self) -> None:
        """Leave the shuffle blocks where they are: their sender is done."""

    @property
    def is_finished(self) -> bool:
        return self._finished


class Mailbox:
    """All shuffle blocks of a stage, by the tasks that they are for."""

    def __init__(self, answers: Iterable[bytes] = ()) -> None:
        """`answers` are those of the stage's tasks, each the shuffle blocks it has sent, pickled."""
        self._by_target: dict[int | None, list[ShuffleBlock]] = {}
        self.measured: list[bytes] = []
        """What the senders measured, if they did."""
        for answer in answers:
            for shuffle_block in pickle.loads(answer):
                if shuffle_block.edge == MEASURED_EDGE:
                    self.measured.append(shuffle_block.rows)
                else:
                    self._by_target.setdefault(shuffle_block.target, []).append(shuffle_block)

    def for_task(self, task: int, edges: set[int]) -> list[ShuffleBlock]:
        """What arrives on these edges, in the order of its senders."""
        sent = (*self._by_target.get(None, ()), *self._by_target.get(task, ()))
        return [shuffle_block for shuffle_block in sent if shuffle_block.edge in edges]
