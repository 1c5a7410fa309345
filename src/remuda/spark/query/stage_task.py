"""Fragments in a Spark task: our operators over the memory-mapped segments of the folder, and over rows received."""

from __future__ import annotations

import pickle
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from remuda.dataclass import dataclass
from remuda.exec import ExecContext, ExpressionCache, IterationResult, build_operator
from remuda.exec.context import Outgoing
from remuda.exec.memory import MemoryLimit
from remuda.exec.metrics import Instrumentation
from remuda.exec.spill.spill_folder import SpillFolder
from remuda.plan.physical import Receive, Route, Send
from remuda.plan.walk import inputs, walk
from remuda.spark.query.answers import measured_answer, send
from remuda.spark.query.shuffle_blocks import OpenedBlocks, ReceivedBlocks, ShuffleBlockWriter
from remuda.spark.query.task_writer import TaskWriter
from remuda.storage import DescribedSegments, SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.exec import Exec, RowBatch
    from remuda.expr import Parameters
    from remuda.plan.fragments import Plan
    from remuda.spark.query.shuffle_blocks import SentBlocks, ShuffleBlock
    from remuda.storage.load.task_target import TaskTarget


@dataclass(frozen=True, slots=True)
class StageWork:
    """What all tasks of a stage share: fragments, parameters, snapshots, the names of the files that were sent.

    The snapshots have the segments that many tasks read; of the others each task is told for itself.
    """

    sends: dict[int, Send]
    """The fragments by their edges."""
    parameters: Parameters
    snapshots: dict[str, SnapshotDescription]
    partition_count: int
    """How many partitions the plan has."""
    block_sizes: tuple[int, ...]
    """How many partitions each task has: one after the other where the stages are several."""
    files: dict[int, int]
    """The run of each task of the stage before that has written a file; see `shuffle_blocks`."""
    inline_limit: int
    """What a task may send through the driver to the tasks of the next stage."""
    folder: str | None
    """Where a large answer is written; see `answers`."""
    memory_limit: int | None
    """What operators may hold in this task, as in this process they may."""
    target: TaskTarget | None = None
    """Where a statement that writes has its rows written."""
    is_measured: bool = False
    """For EXPLAIN ANALYZE: what the operators did is told with the answer."""

    def task(self, number: int, edges: tuple[int, ...]) -> TaskWork:
        """Return what a task has to do where the stages are several, by Spark's own shuffle."""
        start = sum(self.block_sizes[:number])
        partitions = np.arange(start, start + self.block_sizes[number]).astype(np.uint16)
        return TaskWork(number, edges, partitions)


@dataclass(frozen=True, slots=True)
class TaskWork:
    """What one task has for itself: the edges of its fragments, its share of partitions, what has come to it."""

    task: int
    edges: tuple[int, ...]
    partitions: np.ndarray
    """16 bits each: a map has at most 65,536."""
    inline: tuple[tuple[int, ShuffleBlock], ...] = ()
    segments: dict[str, DescribedSegments] = field(default_factory=dict)
    """The segments of each map that few tasks read, this one among them."""

    def received(self, stage: StageWork) -> ReceivedBlocks:
        return ReceivedBlocks(self.task, self.inline, stage.files, stage.folder)


def run_last(stage: StageWork, work: TaskWork) -> Iterator[bytes]:
    """Run the last stage, whose rows go to the coordinator. Called in the task by name."""
    return answer(stage, work, work.received(stage))


def answer(stage: StageWork, work: TaskWork, received: ReceivedBlocks) -> Iterator[bytes]:
    (edge,) = work.edges
    node = stage.sends[edge]
    code = Instrumentation() if stage.is_measured else ExpressionCache()
    operator = build_operator(node.input, code)
    operator.setup(_context(stage, work, node, received))
    yield from send(work.task, _batches(operator), stage.folder)
    if isinstance(code, Instrumentation):
        yield measured_answer(work.task, _pack(node, code))


def run_between(stage: StageWork, work: TaskWork) -> Iterator[bytes]:
    """Run a stage before the last: one answer, what was sent to the next stage. Called in the task by name."""
    yield pickle.dumps(send_blocks(stage, work, work.received(stage)))


def send_blocks(stage: StageWork, work: TaskWork, received: ReceivedBlocks) -> SentBlocks:
    writer = ShuffleBlockWriter(work.task, stage.folder, stage.inline_limit)
    measured: list[bytes] = []
    for edge in work.edges:
        node = stage.sends[edge]
        code = Instrumentation() if stage.is_measured else ExpressionCache()
        operator = build_operator(node, code)
        context = _context(stage, work, node, received)
        context.outgoing = {edge: _outgoing(stage, node, writer)}
        operator.setup(context)
        for _ in _batches(operator):
            pass
        if isinstance(code, Instrumentation):
            measured.append(_pack(node, code))
    return replace(writer.finish(), measured=tuple(measured))


def _pack(node: Send, measures: Instrumentation) -> bytes:
    return pickle.dumps((node.edge, measures.taken(node.input)))


def add_measured(plan: Plan, packed: bytes, measures: Instrumentation) -> None:
    """Add the metrics of a task to those of others."""
    edge, taken = pickle.loads(packed)
    measures.add(inputs(plan.fragments[edge].node)[0], taken)


def _context(stage: StageWork, work: TaskWork, node: Send, received: ReceivedBlocks) -> ExecContext:
    """Make the context of a fragment; each has its own memory limit, as they run one after the other.

    Rows are spilled to the temporary folder of the executor's machine.
    """
    own = work.segments
    snapshots = {
        map_id: open_snapshot(description.with_segments(own[map_id]) if map_id in own else description)
        for map_id, description in stage.snapshots.items()
    }
    memory = None if stage.memory_limit is None else MemoryLimit(stage.memory_limit)
    incoming = {
        each.edge: (OpenedBlocks(each.columns, received.open(each.edge)),)
        for each in walk(node)
        if isinstance(each, Receive)
    }
    return ExecContext(
        stage.parameters,
        snapshots,
        work.partitions.astype(np.int64),
        stage.partition_count,
        incoming=incoming,
        writer=None if stage.target is None else TaskWriter(stage.target),
        memory=memory,
        spill=None if memory is None else SpillFolder(),
    )


def _outgoing(stage: StageWork, node: Send, writer: ShuffleBlockWriter) -> Outgoing:
    if node.route is not Route.HASH:
        return Outgoing((writer.channel(node.edge, None),))
    tasks = range(len(stage.block_sizes))
    task_of_partition = np.repeat(np.array(tasks, np.int64), stage.block_sizes)
    return Outgoing(tuple(writer.channel(node.edge, task) for task in tasks), task_of_partition)


def _batches(operator: Exec) -> Iterator[RowBatch]:
    while True:
        result = operator.advance()
        assert result is not IterationResult.WAIT, "a task waits for nothing"
        if operator.current_batch.row_count:
            yield operator.current_batch
        if result is IterationResult.FETCHED_DONE:
            return
