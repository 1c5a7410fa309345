"""Spark's own shuffle between stages: for tasks that have no folder which all of them may write to.

A chain of data frames, one for each stage: its rows are shuffle blocks, each with the task that it is for, to whose
partition `repartitionById` brings it. Spark keeps what a stage has sent until the chain is garbage, so the
last stage can be run in task batches, and makes anew what an executor has taken with it. Other tasks may have read the
first copy by then: so a task has to send the same again. It does, as it reads what it has received in one order, unless
it draws random numbers.
"""

from __future__ import annotations

import itertools
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import RemudaError
from remuda.spark.driver.spark_session import make_importable
from remuda.spark.driver.tasks import freeze_garbage
from remuda.spark.query.answers import measured_answer
from remuda.spark.query.shuffle_blocks import ReceivedBlocks, ShuffleBlock
from remuda.spark.query.stage_task import answer, send_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from remuda.spark.query.stage_task import StageWork, TaskWork

_SENT = "target INT, sender INT, number INT, shuffle_block BINARY"
_SENT_SCHEMA = pa.schema(
    {"target": pa.int32(), "sender": pa.int32(), "number": pa.int32(), "shuffle_block": pa.binary()}
)
MEASURED_EDGE = -1
"""The edge of a shuffle block that has no rows but what its sender measured."""
_ERROR = -1
"""The number of what is not a shuffle block but an error, for all tasks of the next stage, which only pass it on."""


def chain_stages(
    session: SparkSession,
    before: Sequence[tuple[StageWork, Mapping[int, TaskWork]]],
    last: tuple[StageWork, Mapping[int, TaskWork]],
) -> RDD[Any]:
    """Return an RDD whose partitions are the answers of the last stage's tasks, or errors."""
    make_importable(session.sparkContext)
    tasks = len(last[0].block_sizes)
    numbers = session.range(0, tasks, 1, tasks).selectExpr(
        "CAST(id AS INT) AS target", "0 AS sender", "0 AS number", "CAST(NULL AS BINARY) AS shuffle_block"
    )
    frame = numbers
    for stage, works in before:
        sent = frame.mapInArrow(partial(_each_task, partial(_send, stage, _edges(works))), _SENT)
        frame = sent.repartitionById(tasks, "target")
    answers = frame.mapInArrow(partial(_each_task, partial(_answer, last[0], _edges(last[1]))), _SENT)
    return answers.rdd.map(_unpacked)


def _edges(works: Mapping[int, TaskWork]) -> dict[int, tuple[int, ...]]:
    """Return what every task is told of all: with values that are shared a pickle has a few bytes for each."""
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    return {task: shared.setdefault(work.edges, work.edges) for task, work in works.items()}


def _each_task(
    run: Callable[[int, list[tuple[int, int, bytes]]], Iterator[tuple[int, int, int, bytes]]],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Run a stage in the Python worker: all that a task has received in, what it sends out, a record at a time."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    task = context.partitionId()
    received = [
        (sender.as_py(), number.as_py(), shuffle_block.as_buffer().to_pybytes())
        for batch in batches
        for sender, number, shuffle_block in zip(*batch.columns[1:], strict=True)
        if shuffle_block.is_valid
    ]
    try:
        for record in run(task, received):
            yield pa.RecordBatch.from_pylist([dict(zip(_SENT_SCHEMA.names, record, strict=True))], _SENT_SCHEMA)
    finally:
        freeze_garbage()


def _send(
    stage: StageWork, edges: Mapping[int, tuple[int, ...]], task: int, received: list[tuple[int, int, bytes]]
) -> Iterator[tuple[int, int, int, bytes]]:
    tasks = len(stage.block_sizes)
    try:
        shuffle_blocks = _opened(received)
        sent = _measured(shuffle_blocks)
        if task in edges:
            own = send_blocks(stage, stage.task(task, edges[task]), _received(task, shuffle_blocks))
            sent += (*own.inline, *(ShuffleBlock(MEASURED_EDGE, task, each) for each in own.measured))
    except RemudaError as error:
        yield from ((target, task, _ERROR, pickle.dumps(error)) for target in range(tasks))
        return
    for number, shuffle_block in enumerate(sent):
        for target in range(tasks) if shuffle_block.target is None else (shuffle_block.target,):
            yield target, task, number, pickle.dumps(shuffle_block)


def _answer(
    stage: StageWork, edges: Mapping[int, tuple[int, ...]], task: int, received: list[tuple[int, int, bytes]]
) -> Iterator[tuple[int, int, int, bytes]]:
    try:
        shuffle_blocks = _opened(received)
        rows = _received(task, shuffle_blocks)
        answers = answer(stage, stage.task(task, edges[task]), rows) if task in edges else iter(())
        measured = (measured_answer(task, shuffle_block.rows) for shuffle_block in _measured(shuffle_blocks))
        for number, each in enumerate(itertools.chain(measured, answers)):
            yield task, task, number, each
    except RemudaError as error:
        yield task, task, _ERROR, pickle.dumps(error)


def _received(task: int, shuffle_blocks: Sequence[ShuffleBlock]) -> ReceivedBlocks:
    """Return the received blocks, which are in the order of their senders already."""
    return ReceivedBlocks(task, tuple((0, shuffle_block) for shuffle_block in shuffle_blocks))


def _measured(shuffle_blocks: Sequence[ShuffleBlock]) -> list[ShuffleBlock]:
    """Hand metrics of earlier stages on from stage to stage: only the last one answers the driver."""
    return [shuffle_block for shuffle_block in shuffle_blocks if shuffle_block.edge == MEASURED_EDGE]


def _opened(received: list[tuple[int, int, bytes]]) -> list[ShuffleBlock]:
    """Return all shuffle blocks in one order, whatever order they have come in; raise an error among them."""
    shuffle_blocks = [
        pickle.loads(shuffle_block) for _, _, shuffle_block in sorted(received, key=lambda each: each[:2])
    ]
    error = next((each for each in shuffle_blocks if isinstance(each, RemudaError)), None)
    if error is not None:
        raise error
    return shuffle_blocks


def _unpacked(row: Any) -> bytes | RemudaError:
    sent = bytes(row.shuffle_block)
    if row.number != _ERROR:
        return sent
    error: RemudaError = pickle.loads(sent)
    return error
