"""OPTIMIZE by Spark: a task writes the segment of a partition group, the driver commits all of them or none.

The task reads the segments of its group, and of runs the rows of its group. What goes through the driver are names and
descriptions of segments.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.dataclass import dataclass
from remuda.errors import OutcomeUnknownError
from remuda.spark.driver.tasks import refuse_stopped, run_tasks
from remuda.spark.load.load_job import map_folder
from remuda.spark.load.segment_task import segment_infos
from remuda.storage.folder.delivery import remove_uncommitted
from remuda.storage.load.group_compaction import GroupRows, build_group
from remuda.storage.load.group_split import live_bytes
from remuda.storage.segment.segment_directory import SegmentDirectory
from remuda.storage.segment.segment_file import save_segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from remuda.catalog import MapDefinition
    from remuda.storage import MapStore, SegmentInfo
    from remuda.storage.segment.group_ranges import Range
    from remuda.storage.segment.segment_directory import StoredSegment

LEAST_BYTES = 256 << 20
"""Bytes of the rows of all groups that are to be written: fewer are not worth a job."""


@dataclass(frozen=True, slots=True)
class GroupTarget:
    """Where the tasks write."""

    folder: str
    job_id: str
    definition: MapDefinition


@dataclass(frozen=True, slots=True)
class GroupWork:
    """A group, and the segments that have its rows, each with the file of its deletions."""

    group: Range
    segments: tuple[tuple[SegmentInfo, str | None], ...]


def optimize_in_tasks(target: MapStore, session: SparkSession) -> None:
    """Merge the segments of each group of a map into one.

    In this process where the tasks do not see the map, or where it is little work.
    """
    refuse_stopped(session)
    folder = map_folder(target)
    if folder is None or target.state.directory.remote is not None:
        target.optimize()
        return
    job_id = f"load{new_id()}"
    place = GroupTarget(str(folder), job_id, target.definition)
    last: list[SegmentInfo] = []
    committed: list[SegmentInfo] = []

    def write(needed: Sequence[GroupRows]) -> list[StoredSegment]:
        nonlocal last
        directory, definition = target.state.directory, target.definition
        size = sum(live_bytes(each) for rows in needed for each in rows.stored)
        if len(needed) < 2 or size < LEAST_BYTES:
            return [made for rows in needed for made in directory.add_all(build_group(directory, definition, rows))]
        works = {number: _work(rows) for number, rows in enumerate(needed)}
        last = segment_infos(run_tasks(session, write_group, works, shared=(place,)))
        return [directory.take_over(definition, info) for info in last]

    try:
        target.optimize(write)
        committed = last
    except (OutcomeUnknownError, KeyboardInterrupt):
        committed = last  # A manifest may name them. Where none does, the next opening removes them.
        raise
    finally:
        # What a task that Spark started twice has left, and all of a job that failed.
        remove_uncommitted(folder, job_id, [info.id for info in committed])


def _work(rows: GroupRows) -> GroupWork:
    segments: list[tuple[SegmentInfo, str | None]] = []
    for each in rows.stored:
        assert each.info is not None, "a segment in a folder has files"
        segments.append((each.info, each.deletion_file))
    return GroupWork(rows.group, tuple(segments))


def write_group(place: GroupTarget, work: GroupWork) -> Iterator[bytes]:
    """Write the segments of a group, and yield what `segment_infos` reads back. Called in the task by name."""
    folder = Path(place.folder)
    directory = SegmentDirectory(folder)
    stored = tuple(directory.open(place.definition, info, deletions) for info, deletions in work.segments)
    for segment in build_group(directory, place.definition, GroupRows(work.group, stored)):
        segment.id = f"{place.job_id}-{segment.id}"
        yield pickle.dumps(save_segment(folder, segment))
