"""How a map of cluster size grows: 10,000 partition groups and 1,000 tasks, simulated without rows.

python -m benchmarks cluster_growth

The entries of segments are copies of one that was built of rows, so that statistics have their size. *Plan* reads the
root and the group files that the query needs, gives each task its groups, and pickles what each of them is told. *Every
group* is a full scan, *one in a hundred* a query that pruning leaves a hundredth of the groups. *Open* is what a
process does when it opens the store, *estimate* what planning then reads of all columns of the map, and *one key* what
the first lookup of a key reads.
"""

from __future__ import annotations

import itertools
import pickle
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from benchmarks.manifest_growth import ROUNDS, least, simulated_segments
from remuda.catalog import new_id
from remuda.storage.commit.stored_segments import open_groups
from remuda.storage.folder.definition_entries import map_definition, map_entry
from remuda.storage.folder.group_file import SegmentEntry, segment_infos
from remuda.storage.folder.manifest import NAME, Manifest, read_manifest, write_manifest
from remuda.storage.folder.partition_groups import PartitionGroups, has_many_segments, read_by_group
from remuda.storage.map_statistics import StatisticsKeeper
from remuda.storage.segment.segment_directory import SegmentDirectory
from remuda.storage.segment.summary.saved_statistics import make_statistics
from remuda.storage.segment.summary.saved_summaries import SavedSummaries, types_of
from remuda.storage.snapshot import SnapshotDescription
from remuda.storage.state.grouped_version import version_of
from remuda.storage.state.map_version import MapVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.folder.group_file import GroupRef
    from remuda.storage.segment.segment_file import SegmentInfo

PARTITIONS = 65_536
IN_A_GROUP = 4
SHAPES = ((1, 1), (100, 100), (1_000, 1_000), (10_000, 1_000))
"""Groups and tasks."""
_HEAD = (
    "root | group files | commit: bytes | commit | open | estimate | one key | plan: every group | bytes a task | "
    "one in a hundred"
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A store of one map, whose groups have segments without files."""

    folder: Path
    definition: MapDefinition
    entry: MapEntry
    manifest: Manifest
    groups: PartitionGroups

    def commit(self) -> None:
        """Commit another segment in the first group."""
        first, *others = self.entry.groups
        segments = self.groups.segments_in(self.entry.id, first)
        changed = (replace(segments[0], id=new_id()), *segments[1:])
        group = self.groups.write_group(self.entry.id, first.first, first.end, changed)
        write_manifest(self.folder, replace(self.manifest, maps=[replace(self.entry, groups=(group, *others))]))

    def open(self) -> MapVersion | list[SegmentInfo]:
        """Return the version of the map, as a process opens it; of few segments what is known of them."""
        (entry,) = read_manifest(self.folder).maps
        definition, groups = map_definition(entry), PartitionGroups(self.folder)
        statistics = read_by_group(entry)
        if statistics is None:
            return [each for _, found in groups.segments_of(entry) for each in segment_infos(found, definition)]
        directory = SegmentDirectory(groups.folder(entry.id))
        return version_of(definition, open_groups(groups, entry, definition, directory, (), statistics))

    def after_opening(self, use: Callable[[MapVersion], object]) -> float | None:
        """Return the seconds of processor time of a use of the map that follows its opening; None of a small map."""
        taken = []
        for _ in range(ROUNDS):
            version = self.open()
            if not isinstance(version, MapVersion):
                return None
            start = time.process_time()
            use(version)
            taken.append(time.process_time() - start)
        return min(taken)

    def plan(self, tasks: int, every: int) -> list[bytes]:
        """Return what each task is told, of every n-th group."""
        (entry,) = read_manifest(self.folder).maps
        needed = entry.groups[::every]
        groups = PartitionGroups(self.folder)
        share = -(-len(needed) // tasks)
        return [
            pickle.dumps(self._described(groups, needed[start : start + share]))
            for start in range(0, len(needed), share)
        ]

    def _described(self, groups: PartitionGroups, chosen: Sequence[GroupRef]) -> SnapshotDescription:
        entries = [each for group in chosen for each in groups.segments_in(self.entry.id, group)]
        deletions: tuple[np.ndarray, ...] = ()
        infos = tuple(segment_infos(entries, self.definition))
        return SnapshotDescription(str(self.folder), self.definition, infos, deletions, b"")


def show() -> None:
    """Print a table."""
    print(f"| groups | tasks | {_HEAD} |")
    print("| --- " * 12 + "|")
    for groups, tasks in SHAPES:
        with tempfile.TemporaryDirectory() as scratch:
            print(row(simulated(Path(scratch), groups), tasks))


def row(cluster: Cluster, tasks: int) -> str:
    root = (cluster.folder / NAME).stat().st_size
    files = [path.stat().st_size for path in cluster.folder.glob("maps/*/*.group")]
    commit = root + files[0]
    payloads = cluster.plan(tasks, 1)
    numbers = [f"{len(cluster.entry.groups):,}", f"{len(payloads):,}", f"{root:,}", f"{sum(files):,}", f"{commit:,}"]
    plan, pruned = least(lambda: cluster.plan(tasks, 1)), least(lambda: cluster.plan(tasks, 100))
    estimate = cluster.after_opening(lambda version: dict(StatisticsKeeper().of(version).columns))
    key = cluster.after_opening(lambda version: version.restriction().numbers_of(PARTITIONS // 2))
    taken = [_shown(least(cluster.commit)), _shown(least(cluster.open)), _shown(estimate), _shown(key), _shown(plan)]
    return f"| {' | '.join([*numbers, *taken, f'{max(map(len, payloads)):,}', _shown(pruned)])} |"


def simulated(folder: Path, count: int) -> Cluster:
    """Make a store of so many groups."""
    definition, segments = simulated_segments(folder, IN_A_GROUP, PARTITIONS)
    groups = PartitionGroups(folder)
    entry = map_entry(definition, 0, ())
    bounds = [number * PARTITIONS // count for number in range(count + 1)]
    refs = []
    for first, end in itertools.pairwise(bounds):
        members: tuple[SegmentEntry, ...] = tuple(
            replace(each, id=new_id(), partitions=(first, end - 1)) for each in segments
        )
        refs.append(groups.write_group(entry.id, first, end, members))
    entry = replace(entry, groups=tuple(refs))
    if has_many_segments(entry):
        summaries = [SavedSummaries(each.summaries, types_of(definition)) for each in segments]
        entry = replace(entry, statistics=make_statistics(definition, summaries, sum(group.rows for group in refs)))
    manifest = Manifest(1, PARTITIONS, 1, 1, (0, 0), 0, [entry])
    write_manifest(folder, manifest)
    return Cluster(folder, definition, entry, manifest, groups)


def _shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.1f} ms"
