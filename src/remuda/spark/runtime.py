"""The Spark runtime: leaf fragments run as the tasks of one job, the root fragment finishes the work on the driver.

One task for each executor slot, not for each partition; slots without a needed partition are left out. The tasks read
the same immutable segments at the same snapshot, so a task that is run again gives the same answer.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.runtime import BoundedChannel
from remuda.runtime.binding import needed_partitions
from remuda.spark.leaf_task import LeafWork, read_answer, run_leaf
from remuda.spark.tasks import cancel_tasks, run_tasks, slot_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from remuda.exec import Channel
    from remuda.expr import Parameters
    from remuda.plan.fragments import Fragment, Plan
    from remuda.runtime import QueryState
    from remuda.storage import MapSnapshot

UNBOUNDED = 2**31
"""The answers of a job are in memory when they arrive: there is nobody left to slow down."""


@dataclass(slots=True)
class SparkLeaves:
    """Starts the Spark fragments of one execution; see `remuda.runtime.local.RemoteLeaves`."""

    session: SparkSession
    plan: Plan
    parameters: Parameters
    snapshots: Mapping[str, MapSnapshot]

    def __call__(self, fragment: Fragment, state: QueryState) -> tuple[tuple[Channel, ...], Callable[[], None]]:
        payloads = self._payloads(fragment)
        channels = {slot: BoundedChannel(state.wake_reader.set, UNBOUNDED) for slot in payloads}
        tag = f"remuda-{uuid.uuid4().hex}"
        job = _Job(self.session, fragment, payloads, channels, state, tag)
        Thread(target=job.run, name=tag, daemon=True).start()
        return tuple(channels.values()), job.cancel

    def _payloads(self, fragment: Fragment) -> dict[int, LeafWork]:
        """The needed partitions in contiguous blocks, one for each slot that gets any."""
        needed = needed_partitions(fragment, self.parameters.values)
        if needed is None:
            needed = np.arange(max(scan.map.partitions for scan in fragment.scans), dtype=np.int64)
        descriptions = {scan.map.id: self.snapshots[scan.map.id].describe() for scan in fragment.scans}
        blocks = np.array_split(needed, slot_count(self.session))
        below: Any = fragment.node.input  # type: ignore[union-attr]
        return {
            slot: LeafWork(slot, below, self.parameters, descriptions, block)
            for slot, block in enumerate(blocks)
            if len(block)
        }


@dataclass(slots=True)
class _Job:
    session: SparkSession
    fragment: Fragment
    payloads: dict[int, LeafWork]
    channels: dict[int, BoundedChannel]
    state: QueryState
    tag: str
    running: bool = True

    def run(self) -> None:
        """In a thread of its own, which waits for the job as no thread of the scheduler may."""
        try:
            for answer in run_tasks(self.session, run_leaf, self.payloads, tag=self.tag):
                slot, batch = read_answer(answer, self.fragment.node.columns)
                self.channels[slot].offer(batch)
        except BaseException as error:  # noqa: BLE001  (whatever it is, the reader of the result must learn of it)
            self.state.fail(error)
        finally:
            self.running = False
            for channel in self.channels.values():
                channel.finish()

    def cancel(self) -> None:
        if self.running:
            # Cancelling asks the JVM, which must not keep whoever closes a result waiting.
            Thread(target=partial(cancel_tasks, self.session, self.tag), daemon=True).start()
