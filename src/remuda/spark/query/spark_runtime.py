"""The Spark runtime: fragments run as the tasks of jobs, the root fragment finishes the work on the driver.

One task for each executor slot, not for each partition; slots without a needed partition are left out. The tasks read
the same immutable segments at the same snapshot, so a task that is run again gives the same answer.

Where rows have to meet, of two maps or of one group, the fragments are *stages* (`shuffle_stages`): what the tasks of
one have made goes by hash, or to all, to those of the next. Our operators are on both sides of that, so an answer does
not depend on where it was made.

A result that is expected to be large, and in no order, is made in *task batches*: more and smaller tasks, so many at a
time as there are slots, the next task batch when the reader has come to the last one. A reader that stops early stops
the work. The first task batch holds the rows of a whole job, as any job does: nothing of it is handed out before all of
it is good.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from remuda.dataclass import dataclass
from remuda.exec.metrics import Instrumentation
from remuda.exec.scan.partition_shares import of_map
from remuda.spark.driver.job_marks import JobMarks
from remuda.spark.driver.tasks import slot_count
from remuda.spark.query.shuffle_blocks import inline_limit
from remuda.spark.query.shuffle_stages import stages_of
from remuda.spark.query.stage_job import ReadersEnd, SparkJob
from remuda.spark.query.stage_task import StageWork, TaskWork, add_measured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.exec.context import ReceivingEnd
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.expr import Parameters
    from remuda.plan.fragments import Fragment, Plan
    from remuda.runtime import QueryState
    from remuda.spark.query.shuffle_blocks import Mailbox
    from remuda.spark.query.shuffle_stages import Stage, Stages
    from remuda.storage import DescribedSegments, MapSnapshot, SnapshotDescription
    from remuda.storage.load.task_target import TaskTarget


@dataclass(slots=True)
class SparkFragments:
    """Starts the Spark fragments of one execution; see `remuda.runtime.local.RemoteFragments`."""

    session: SparkSession
    plan: Plan
    parameters: Parameters
    snapshots: Mapping[str, MapSnapshot]
    store: Path | None = None
    """The folder of the store, if tasks may write there: large answers, and what they send to each other."""
    code: ExpressionCache | None = None
    """Where it is `Instrumentation`, tasks measure too, and what they did is added there."""
    target: TaskTarget | None = None
    """Where tasks write the rows of a statement."""
    statement: str = ""
    """The text of the statement, for Spark's UI."""

    def __call__(self, fragment: Fragment, state: QueryState) -> tuple[tuple[ReceivingEnd, ...], Callable[[], None]]:
        slots = slot_count(self.session)
        stages = stages_of(self.plan, fragment, self.parameters.values, slots)
        measures = self.code if isinstance(self.code, Instrumentation) else None
        measured = None if measures is None else partial(add_measured, self.plan, measures=measures)
        marks = JobMarks.of_thread(self.session.sparkContext, self.statement)
        job = SparkJob(self.session, self.snapshots, self.store, state, f"remuda-{uuid.uuid4().hex}", marks, measured)
        described: dict[tuple[str, bool], tuple[SnapshotDescription, list[DescribedSegments]]] = {}

        def works(stage: Stage, mailbox: Mailbox, *, alike: bool = False) -> tuple[StageWork, dict[int, TaskWork]]:
            for map_id in stage.maps:
                if (map_id, alike) not in described:
                    described[map_id, alike] = self._described(map_id, None if alike else stages.blocks)
            found = {map_id: described[map_id, alike] for map_id in sorted(stage.maps)}
            shared = {map_id: description for map_id, (description, _) in found.items()}
            own = {map_id: segments for map_id, (_, segments) in found.items() if any(each.infos for each in segments)}
            return self._shared(stages, stage, mailbox, shared, job), own_works(stages, stage, mailbox, own)

        return job.start(stages, works, slots), ReadersEnd(job.close)

    def _described(
        self, map_id: str, blocks: Sequence[np.ndarray] | None
    ) -> tuple[SnapshotDescription, list[DescribedSegments]]:
        """Describe a map for tasks that have these blocks of the plan's partitions; None: all alike."""
        snapshot, count = self.snapshots[map_id], self.plan.partition_map.partitions
        definition = snapshot.definition
        if blocks is None or definition.replicated:
            return snapshot.describe(), []
        return snapshot.describe_for([of_map(definition, block, count) for block in blocks])

    def _shared(
        self,
        stages: Stages,
        stage: Stage,
        mailbox: Mailbox,
        descriptions: dict[str, SnapshotDescription],
        job: SparkJob,
    ) -> StageWork:
        return StageWork(
            {fragment.number: fragment.node for fragment in stage.fragments},  # type: ignore[misc]
            self.parameters,
            descriptions,
            self.plan.partition_map.partitions,
            tuple(map(len, stages.blocks)),
            mailbox.files,
            inline_limit(len(stage.tasks)),
            job.folder,
            job.state.memory_limit,
            self.target,
            isinstance(self.code, Instrumentation),
        )


def own_works(
    stages: Stages, stage: Stage, mailbox: Mailbox, described: Mapping[str, Sequence[DescribedSegments]]
) -> dict[int, TaskWork]:
    """Return what each task of a stage has to do, by its number.

    `described` has the segments of maps that each task is told of for itself.
    """
    works = {}
    for task, fragments in stage.tasks.items():
        received = {edge for fragment in fragments for edge in fragment.received}
        edges = tuple(fragment.number for fragment in fragments)
        partitions = stages.blocks[task].astype(np.uint16)
        segments = {map_id: each[task] for map_id, each in described.items() if each[task].infos}
        works[task] = TaskWork(task, edges, partitions, mailbox.for_task(task, received), segments)
    return works
