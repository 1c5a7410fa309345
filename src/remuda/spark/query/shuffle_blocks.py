"""Shuffle blocks: rows of an edge on their way from a task of one stage to the tasks of the next.

A task that sends few rows sends them through the driver, which hands each receiver its own. A task that sends more
writes all of them into one file, in a folder that all see, beside the maps. The file is found by convention: its name
is the number of the task and that of its run, and its footer tells where the blocks of each receiver are. So what the
driver handles grows with the number of senders, and not with the pairs of senders and receivers. A task may run twice:
the driver names the run that has answered, so that the tasks of the next stage all read the same, even if executors are
lost or the query calls volatile functions.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.exec import ArrowBatch
from remuda.exec.sort.ordering import concatenate
from remuda.spark.query.answers import compact
from remuda.spark.query.batch_file import from_stream, to_stream
from remuda.spark.query.block_file import BlockFile, BlockFileWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from remuda.exec import RowBatch
    from remuda.expr import Column

BLOCK_ROWS = 65_536
"""Rows that wait to be sent together: kernels are slow on many small batches."""
HELD_BYTES = 64 << 20
"""What a task holds of such rows: of a thousand receivers each may wait."""
TASK_INLINE_BYTES = 1 << 16
STAGE_INLINE_BYTES = 1 << 17
"""What a task, and what all tasks of a stage, send through the driver at most."""


def inline_limit(tasks: int) -> int:
    """Return the bytes that each of so many senders may send through the driver.

    >>> [inline_limit(tasks) for tasks in (1, 2, 8, 1000)]
    [65536, 65536, 16384, 131]
    """
    return min(TASK_INLINE_BYTES, STAGE_INLINE_BYTES // tasks)


@dataclass(frozen=True, slots=True)
class ShuffleBlock:
    """Packed rows that travel through the driver. `target` is the task that they are for; None where it is for all."""

    edge: int
    target: int | None
    rows: bytes

    def open(self) -> pa.RecordBatch:
        return from_stream(pa.py_buffer(self.rows))


@dataclass(frozen=True, slots=True)
class SentBlocks:
    """What one task has sent: blocks that travel with this, or the run whose file has all of them."""

    sender: int
    run: int | None
    inline: tuple[ShuffleBlock, ...] = ()
    measured: tuple[bytes, ...] = ()
    """For EXPLAIN ANALYZE: what the operators of the task did."""


class ShuffleBlockWriter:
    """Packs what a task sends; `folder` is where a file is made when there is much of it. Without one all is inline."""

    def __init__(self, sender: int, folder: str | None, limit: int = TASK_INLINE_BYTES) -> None:
        self._sender = sender
        self._folder = folder
        self._limit = limit
        self._run = secrets.randbits(63)
        self._file: BlockFileWriter | None = None
        self._size = 0
        self._waiting: dict[tuple[int, int | None], list[pa.RecordBatch]] = {}
        self._waiting_rows: dict[tuple[int, int | None], int] = {}
        self._waiting_bytes = 0
        self._inline: list[ShuffleBlock] = []

    def channel(self, edge: int, target: int | None) -> ShuffleBlockChannel:
        return ShuffleBlockChannel(self, edge, target)

    def add(self, edge: int, target: int | None, batch: pa.RecordBatch) -> None:
        receiver = (edge, target)
        self._waiting.setdefault(receiver, []).append(batch)
        rows = self._waiting_rows[receiver] = self._waiting_rows.get(receiver, 0) + batch.num_rows
        self._waiting_bytes += _held_bytes(batch)
        if self._waiting_bytes >= HELD_BYTES:
            self._pack_all()
        elif rows >= BLOCK_ROWS:
            self._pack(edge, target)

    def finish(self) -> SentBlocks:
        self._pack_all()
        if self._file is None:
            return SentBlocks(self._sender, None, tuple(self._inline))
        self._file.close()
        return SentBlocks(self._sender, self._run)

    def _pack_all(self) -> None:
        for edge, target in list(self._waiting):
            self._pack(edge, target)

    def _pack(self, edge: int, target: int | None) -> None:
        batches = self._waiting.pop((edge, target))
        self._waiting_rows.pop((edge, target))
        self._waiting_bytes -= sum(map(_held_bytes, batches))
        packed = to_stream(compact(concatenate(batches)))
        self._size += packed.size
        if self._file is None and (self._folder is None or self._size <= self._limit):
            self._inline.append(ShuffleBlock(edge, target, packed.to_pybytes()))
            return
        if self._file is None:
            self._file = BlockFileWriter(block_path(str(self._folder), self._sender, self._run))
            for block in self._inline:
                self._file.append(block.edge, block.target, block.rows)
            self._inline.clear()
        self._file.append(edge, target, packed)


def _held_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch without its dictionaries, which slices of one batch share."""
    return sum(each.indices.nbytes if isinstance(each, pa.DictionaryArray) else each.nbytes for each in batch.columns)


def block_path(folder: str, sender: int, run: int) -> Path:
    return Path(folder) / f"{sender}-{run:016x}.blocks"


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

    def __init__(self, columns: tuple[Column, ...], batches: Iterator[pa.RecordBatch]) -> None:
        self._columns = columns
        self._remaining = batches
        self._finished = False

    def poll(self) -> RowBatch | None:
        batch = next(self._remaining, None)
        if batch is None:
            self._finished = True
            return None
        return ArrowBatch(self._columns, batch)

    def abandon(self) -> None:
        """Leave the shuffle blocks where they are: their sender is done."""

    @property
    def is_finished(self) -> bool:
        return self._finished


class Mailbox:
    """What all tasks of a stage have sent, as the driver sees it."""

    def __init__(self, sent: Iterable[SentBlocks] = ()) -> None:
        self.measured: list[bytes] = []
        """What the senders measured, if they did."""
        self.files: dict[int, int] = {}
        """The run of each sender that has a file: what all receivers are told."""
        self._inline: dict[int | None, list[tuple[int, ShuffleBlock]]] = {}
        for each in sent:
            self.measured.extend(each.measured)
            if each.run is not None:
                self.files[each.sender] = each.run
            for block in each.inline:
                self._inline.setdefault(block.target, []).append((each.sender, block))

    def for_task(self, task: int, edges: Iterable[int]) -> tuple[tuple[int, ShuffleBlock], ...]:
        """Return the blocks that arrive on these edges without a file, each with its sender."""
        found = (*self._inline.get(None, ()), *self._inline.get(task, ()))
        wanted = set(edges)
        return tuple(each for each in found if each[1].edge in wanted)


@dataclass(frozen=True, slots=True)
class ReceivedBlocks:
    """What a task has received: blocks that have come with its payload, and the files of the other senders."""

    task: int
    inline: tuple[tuple[int, ShuffleBlock], ...] = ()
    files: Mapping[int, int] | None = None
    folder: str | None = None

    def open(self, edge: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an edge in the order of their senders, so that a task that runs again reads the same."""
        by_sender: dict[int, list[ShuffleBlock]] = {}
        for sender, block in self.inline:
            if block.edge == edge:
                by_sender.setdefault(sender, []).append(block)
        files = self.files or {}
        for sender in sorted({*by_sender, *files}):
            if sender in files:
                yield from BlockFile.open(block_path(str(self.folder), sender, files[sender])).blocks(edge, self.task)
            else:
                yield from (block.open() for block in by_sender[sender])
