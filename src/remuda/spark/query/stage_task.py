"""Fragments in a Spark task: our operators over the memory-mapped segments of the folder, and over rows received."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.exec import ExecContext, ExpressionCache, IterationResult, build_operator
from remuda.exec.context import Outgoing
from remuda.exec.memory import MemoryLimit
from remuda.exec.metrics import Instrumentation
from remuda.exec.spill.spill_folder import SpillFolder
from remuda.plan.physical import Receive, Route, Send
from remuda.plan.walk import inputs, walk
from remuda.spark.query.answers import measured_answer, send
from remuda.spark.query.shuffle_blocks import MEASURED_EDGE, OpenedBlocks, ShuffleBlock, ShuffleBlockWriter
from remuda.spark.query.task_writer import TaskWriter
from remuda.storage import SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from remuda.exec import Exec, RowBatch
    from remuda.expr import Parameters
    from remuda.plan.fragments import Plan
    from remuda.storage.load.task_target import TaskTarget


@dataclass(frozen=True, slots=True)
class TaskWork:
    """All that a task needs: fragments, parameters, snapshots, its share of partitions, what was sent to it."""

    task: int
    sends: tuple[Send, ...]
    parameters: Parameters
    snapshots: dict[str, SnapshotDescription]
    partitions: np.ndarray
    partition_count: int
    """How many partitions the plan has."""
    received: bytes
    """The shuffle blocks for it, pickled: a task gets the works of all, and need not open what is for others."""
    task_of_partition: np.ndarray
    folder: str | None
    """Where a large answer is written; see `answers`."""
    memory_limit: int | None
    """What operators may hold in this task, as in this process they may."""
    target: TaskTarget | None = None
    """Where a statement that writes has its rows written."""
    is_measured: bool = False
    """For EXPLAIN ANALYZE: what the operators did is told with the answer."""


def run_last(work: TaskWork) -> Iterator[bytes]:
    """The last stage, whose rows go to the coordinator. Called in the task by name."""
    return answer(work, pickle.loads(work.received))


def answer(work: TaskWork, received: Sequence[ShuffleBlock]) -> Iterator[bytes]:
    (node,) = work.sends
    code = Instrumentation() if work.is_measured else ExpressionCache()
    operator = build_operator(node.input, code)
    operator.setup(_context(work, node, received))
    yield from send(work.task, _batches(operator), work.folder)
    if isinstance(code, Instrumentation):
        yield measured_answer(work.task, _pack(node, code))


def run_between(work: TaskWork) -> Iterator[bytes]:
    """A stage before the last: one answer, the shuffle blocks for the next stage. Called in the task by name."""
    yield pickle.dumps(send_blocks(work, pickle.loads(work.received)))


def send_blocks(work: TaskWork, received: Sequence[ShuffleBlock]) -> list[ShuffleBlock]:
    writer = ShuffleBlockWriter(work.folder)
    measured: list[ShuffleBlock] = []
    for node in work.sends:
        code = Instrumentation() if work.is_measured else ExpressionCache()
        operator = build_operator(node, code)
        context = _context(work, node, received)
        context.outgoing = {node.edge: _outgoing(work, node, writer)}
        operator.setup(context)
        for _ in _batches(operator):
            pass
        if isinstance(code, Instrumentation):
            measured.append(ShuffleBlock(MEASURED_EDGE, work.task, _pack(node, code)))
    return [*writer.finish(), *measured]


def _pack(node: Send, measures: Instrumentation) -> bytes:
    return pickle.dumps((node.edge, measures.taken(node.input)))


def add_measured(plan: Plan, packed: bytes, measures: Instrumentation) -> None:
    """What a task has measured, added to what others have."""
    edge, taken = pickle.loads(packed)
    measures.add(inputs(plan.fragments[edge].node)[0], taken)


def _context(work: TaskWork, node: Send, received: Sequence[ShuffleBlock]) -> ExecContext:
    """Each fragment has its own memory limit: they run one after the other.

    Rows are spilled to the temporary folder of the executor's machine.
    """
    snapshots = {map_id: open_snapshot(description) for map_id, description in work.snapshots.items()}
    memory = None if work.memory_limit is None else MemoryLimit(work.memory_limit)
    incoming = {
        each.edge: (
            OpenedBlocks(
                each.columns, [shuffle_block for shuffle_block in received if shuffle_block.edge == each.edge]
            ),
        )
        for each in walk(node)
        if isinstance(each, Receive)
    }
    return ExecContext(
        work.parameters,
        snapshots,
        work.partitions,
        work.partition_count,
        incoming=incoming,
        writer=None if work.target is None else TaskWriter(work.target),
        memory=memory,
        spill=None if memory is None else SpillFolder(),
    )


def _outgoing(work: TaskWork, node: Send, writer: ShuffleBlockWriter) -> Outgoing:
    if node.route is not Route.HASH:
        return Outgoing((writer.channel(node.edge, None),))
    tasks = int(work.task_of_partition[-1]) + 1
    return Outgoing(tuple(writer.channel(node.edge, task) for task in range(tasks)), work.task_of_partition)


def _batches(operator: Exec) -> Iterator[RowBatch]:
    while True:
        result = operator.advance()
        assert result is not IterationResult.WAIT, "a task waits for nothing"
        if operator.current_batch.row_count:
            yield operator.current_batch
        if result is IterationResult.FETCHED_DONE:
            return
