"""The fragments of an answer from Spark as *stages*: the tasks of one begin when those of the stage before are done.

A fragment feeds exactly one other, so the number of edges between it and the coordinator says in which stage it runs:

    SELECT c.name, SUM(o.amount) ... JOIN ... GROUP BY c.name

    stage 1   send by hash of customer: scan orders      send by hash of id: scan customers
    stage 2   send by hash of name: partial aggregate of the join of what was received
    stage 3   send to the coordinator: final aggregate of what was received

A task works on a block of partitions, the same one in every stage: it scans those of a map, and receives the rows whose
keys' hash falls into them. So rows that are already where they are needed are not sent. A query that needs no exchange
between tasks has one stage.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from remuda.dataclass import dataclass
from remuda.expr import is_volatile
from remuda.plan.physical import Project, Route
from remuda.plan.walk import walk
from remuda.runtime.placement import needed_partitions

if TYPE_CHECKING:
    from typing import Any

    from remuda.plan.fragments import Fragment, Plan

TASK_BYTES = 32 << 20
"""What a task is expected to receive or to deliver at most: some tenths of a second, in which its start is lost."""


@dataclass(frozen=True, slots=True)
class Stage:
    """`tasks` has the fragments that each task runs, by the number of the task; one without any is left out."""

    fragments: tuple[Fragment, ...]
    tasks: dict[int, tuple[Fragment, ...]]

    @property
    def maps(self) -> set[str]:
        return {node.map.id for each in self.fragments for node in (*each.scans, *each.lookups)}


@dataclass(frozen=True, slots=True)
class Stages:
    """The last stage sends to the coordinator."""

    before: tuple[Stage, ...]
    last: Stage
    blocks: tuple[np.ndarray, ...]
    """The partitions of each task."""

    @property
    def is_ordered(self) -> bool:
        """Whether the streams of the tasks are merged by their order, for which all of them must be there."""
        (fragment,) = self.last.fragments
        return bool(fragment.node.traits.collation)

    @property
    def is_volatile(self) -> bool:
        """Whether a task that is run again may send other rows than before: random() gives other values."""
        nodes = (node for stage in self.before for fragment in stage.fragments for node in walk(fragment.node))
        assignments = (item for node in nodes if isinstance(node, Project) for item in node.assignments)
        return any(is_volatile(item.expression) for item in assignments)


def stages_of(plan: Plan, top: Fragment, parameters: tuple[Any, ...], slots: int) -> Stages:
    """Return the stages below `top`, a fragment that sends to the coordinator; all that feeds it runs in Spark too."""
    levels: list[tuple[Fragment, ...]] = [(top,)]
    while edges := [edge for fragment in levels[-1] for edge in fragment.received]:
        levels.append(tuple(plan.fragments[edge] for edge in edges))
    fragments = [fragment for level in levels for fragment in level]
    count = _task_count(fragments, slots)
    partitions = np.arange(plan.partition_map.partitions, dtype=np.int64)
    if len(levels) == 1:
        # No operator relies on which task has which partition: the needed ones are divided evenly.
        needed = needed_partitions(top, parameters, plan.partition_map.partitions)
        partitions = partitions if needed is None else needed
    blocks = tuple(block for block in np.array_split(partitions, min(count, max(1, len(partitions)))) if len(block))
    *before, last = (_stage(level, plan, parameters, blocks) for level in reversed(levels))
    return Stages(tuple(before), last, blocks)


def _task_count(fragments: list[Fragment], slots: int) -> int:
    """Return the number of tasks: one for each slot, more where they would hold much, or where the answer is long.

    The tasks of a long answer that is in no order run in task batches, and a reader that stops early stops the work. Of
    an ordered one all are needed before the first row: then smaller tasks are worth it only for what they hold.
    """
    top, *below = fragments
    divided = (fragment for fragment in below if fragment.route is Route.HASH)
    expected = max(map(_expected_bytes, divided), default=0.0)
    if not top.node.traits.collation:
        expected = max(expected, _expected_bytes(top))
    return slots * max(1, math.ceil(expected / TASK_BYTES / slots))


def _expected_bytes(fragment: Fragment) -> float:
    width = sum(column.type.byte_width for column in fragment.node.columns)
    return fragment.node.estimate.rows * width


def _stage(
    level: tuple[Fragment, ...], plan: Plan, parameters: tuple[Any, ...], blocks: tuple[np.ndarray, ...]
) -> Stage:
    """Return the stage of a fragment.

    A fragment that rows are sent to by hash runs everywhere: one may come that finds no match and yet counts.
    """
    placed: dict[int, list[Fragment]] = {}
    for fragment in level:
        routed = any(plan.fragments[edge].route is Route.HASH for edge in fragment.received)
        needed = None if routed else needed_partitions(fragment, parameters, plan.partition_map.partitions)
        for number, block in enumerate(blocks):
            if needed is None or np.isin(block, needed).any():
                placed.setdefault(number, []).append(fragment)
    return Stage(level, {number: tuple(each) for number, each in sorted(placed.items())})
