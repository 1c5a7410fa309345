"""The Spark runtime: leaf fragments run as the tasks of jobs, the root fragment finishes the work on the driver.

One task for each executor slot, not for each partition; slots without a needed partition are left out. The tasks read
the same immutable segments at the same snapshot, so a task that is run again gives the same answer.

A result that is expected to be large, and in no order, is made in *waves*: more and smaller tasks, so many at a time as
there are slots, the next wave when the reader has come to the last one. A reader that stops early stops the work. The
first wave holds the rows of a whole job, as any job does: nothing of it is handed out before all of it is good.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.plan.physical import Send
from remuda.runtime.binding import needed_partitions
from remuda.spark.leaf_job import LeafJob
from remuda.spark.leaf_task import LeafWork
from remuda.spark.tasks import slot_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.exec.context import ReceivingEnd
    from remuda.expr import Parameters
    from remuda.plan.fragments import Fragment, Plan
    from remuda.runtime import QueryState
    from remuda.storage import MapSnapshot

TASK_BYTES = 32 << 20
"""What a task of a wave is expected to deliver: some tenths of a second, so that the start of a job is lost in it."""


@dataclass(slots=True)
class SparkLeaves:
    """Starts the Spark fragments of one execution; see `remuda.runtime.local.RemoteLeaves`."""

    session: SparkSession
    plan: Plan
    parameters: Parameters
    snapshots: Mapping[str, MapSnapshot]
    store: Path | None = None
    """The folder of the store, if large answers may be written there."""

    def __call__(self, fragment: Fragment, state: QueryState) -> tuple[tuple[ReceivingEnd, ...], Callable[[], None]]:
        slots = slot_count(self.session)
        blocks = self._blocks(fragment, slots)
        job = LeafJob(self.session, self.snapshots, self.store, state, f"remuda-{uuid.uuid4().hex}")
        descriptions = {map_id: self.snapshots[map_id].describe() for map_id in _maps_of(fragment)}
        below: Any = fragment.node.input  # type: ignore[union-attr]
        works = [
            LeafWork(number, below, self.parameters, descriptions, block, job.folder)
            for number, block in enumerate(blocks)
        ]
        channels = job.start(works, slots, below.columns)
        return channels, job.close

    def _blocks(self, fragment: Fragment, slots: int) -> list[np.ndarray]:
        """The needed partitions in contiguous blocks: one for each slot that gets any, or more of them for waves."""
        needed = needed_partitions(fragment, self.parameters.values)
        if needed is None:
            needed = np.arange(max(scan.map.partitions for scan in fragment.scans), dtype=np.int64)
        tasks = slots if is_ordered(fragment) else slots * math.ceil(_expected_bytes(fragment) / TASK_BYTES / slots)
        blocks = np.array_split(needed, min(max(tasks, slots), max(1, len(needed))))
        return [block for block in blocks if len(block)]


def is_ordered(fragment: Fragment) -> bool:
    """Whether the streams of the tasks are merged by their order, for which all of them must be there."""
    return bool(fragment.node.traits.collation)


def _expected_bytes(fragment: Fragment) -> float:
    assert isinstance(fragment.node, Send)
    width = sum(column.type.byte_width for column in fragment.node.columns)
    return fragment.node.estimate.rows * width


def _maps_of(fragment: Fragment) -> set[str]:
    return {node.map.id for node in (*fragment.scans, *fragment.lookups)}
