"""Fragments in a Spark task: our operators over the memory-mapped segments of the folder, and over rows received."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.exec import ExecContext, IterationResult, build_operator
from remuda.exec.context import Outgoing
from remuda.exec.memory import MemoryLimit
from remuda.plan.physical import Receive, Route, Send
from remuda.plan.walk import walk
from remuda.spark.answers import send
from remuda.spark.shuffle_parcels import OpenedParcels, Parcel, ParcelWriter
from remuda.storage import SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from remuda.exec import Exec, RowBatch
    from remuda.expr import Parameters


@dataclass(frozen=True, slots=True)
class TaskWork:
    """All that a task needs: fragments, parameters, snapshots, its share of partitions, what was sent to it."""

    task: int
    sends: tuple[Send, ...]
    parameters: Parameters
    snapshots: dict[str, SnapshotDescription]
    partitions: np.ndarray
    received: bytes
    """The parcels for it, pickled: a task gets the works of all, and need not open what is for others."""
    task_of_partition: np.ndarray
    folder: str | None
    """Where a large answer is written; see `answers`."""
    memory_limit: int | None
    """What operators may hold in this task, as in this process they may."""


def run_last(work: TaskWork) -> Iterator[bytes]:
    """The last stage, whose rows go to the initiator. Called in the task by name."""
    return answer(work, pickle.loads(work.received))


def answer(work: TaskWork, received: Sequence[Parcel]) -> Iterator[bytes]:
    (node,) = work.sends
    operator = build_operator(node.input)
    operator.setup(_context(work, node, received))
    return send(work.task, _batches(operator), work.folder)


def run_between(work: TaskWork) -> Iterator[bytes]:
    """A stage before the last: one answer, the parcels for the next stage. Called in the task by name."""
    yield pickle.dumps(send_parcels(work, pickle.loads(work.received)))


def send_parcels(work: TaskWork, received: Sequence[Parcel]) -> list[Parcel]:
    writer = ParcelWriter(work.folder)
    for node in work.sends:
        operator = build_operator(node)
        context = _context(work, node, received)
        context.outgoing = {node.edge: _outgoing(work, node, writer)}
        operator.setup(context)
        for _ in _batches(operator):
            pass
    return writer.finish()


def _context(work: TaskWork, node: Send, received: Sequence[Parcel]) -> ExecContext:
    """Each fragment has its own memory limit: they run one after the other."""
    snapshots = {map_id: open_snapshot(description) for map_id, description in work.snapshots.items()}
    memory = None if work.memory_limit is None else MemoryLimit(work.memory_limit)
    incoming = {
        each.edge: (OpenedParcels(each.columns, [parcel for parcel in received if parcel.edge == each.edge]),)
        for each in walk(node)
        if isinstance(each, Receive)
    }
    return ExecContext(work.parameters, snapshots, work.partitions, incoming=incoming, memory=memory)


def _outgoing(work: TaskWork, node: Send, writer: ParcelWriter) -> Outgoing:
    if node.route is not Route.HASH:
        return Outgoing((writer.channel(node.edge, None),))
    tasks = int(work.task_of_partition[-1]) + 1
    return Outgoing(tuple(writer.channel(node.edge, task) for task in range(tasks)), work.task_of_partition)


def _batches(operator: Exec) -> Iterator[RowBatch]:
    while True:
        result = operator.advance()
        assert result is not IterationResult.WAIT, "a task has nobody to wait for"
        if operator.current_batch.row_count:
            yield operator.current_batch
        if result is IterationResult.FETCHED_DONE:
            return
