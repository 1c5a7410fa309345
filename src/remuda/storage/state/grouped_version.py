"""A version of a map whose partition groups are read when they are needed: by lookups, writes and pruned scans alone
those of their partitions."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from remuda.storage.lookup.point_lookup import make_search_in_few
from remuda.storage.segment.deletion_vector import DeletionVector
from remuda.storage.segment.stored_groups import StoredGroups
from remuda.storage.state.map_version import MapVersion, Restriction, location_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo
    from remuda.storage.segment.summary.column_summary import ColumnSummary

_ALL = frozenset({"segments", "deletions", "infos"})
"""What is not there before all groups are read."""


class GroupParts:
    """The segments of a version with their deletion vectors, group by group. It does not hold the version."""

    __slots__ = ("_deletions", "_lock", "stored")

    def __init__(self, stored: StoredGroups) -> None:
        self.stored = stored
        self._deletions: list[tuple[DeletionVector, ...] | None] = [None] * len(stored.groups)
        self._lock = Lock()

    def deletions_in(self, group: int) -> tuple[DeletionVector, ...]:
        """Return the deletion vectors of a group's segments; there is one for each segment, whoever asks."""
        found = self._deletions[group]
        if found is None:
            stored = self.stored.groups[group].stored
            with self._lock:
                found = self._deletions[group]
                if found is None:
                    found = tuple(DeletionVector(each.segment.rows, each.deleted) for each in stored)
                    self._deletions[group] = found
        return found

    def part(self, number: int) -> tuple[Segment, DeletionVector]:
        """Return a segment by its number in the map."""
        group = self.stored.group_of(number)
        ordinal = number - self.stored.offsets[group]
        return self.stored.groups[group].stored[ordinal].segment, self.deletions_in(group)[ordinal]

    def parts(self, groups: Iterable[int]) -> Iterator[tuple[Segment, DeletionVector]]:
        """Yield the segments of groups."""
        for group in groups:
            stored = self.stored.groups[group].stored
            yield from zip((each.segment for each in stored), self.deletions_in(group), strict=True)

    def numbers_of(self, partition: int) -> tuple[int, ...]:
        """Return the numbers of the segments that can have rows of a partition, the newest first."""
        found: list[int] = []
        for group in self.stored.of_partition(partition):
            segments = [each.segment for each in self.stored.groups[group].stored]
            first = self.stored.offsets[group]
            found += [
                first + ordinal
                for ordinal, each in enumerate(segments)
                if each.first_partition <= partition <= each.last_partition
            ]
        return tuple(reversed(found))

    def written(self) -> Iterator[DeletionVector]:
        """Yield the deletion vectors that can have changed: those that were asked for."""
        for found in self._deletions:
            if found is not None:
                yield from found

    def rows(self, length: int) -> int:
        """Return the number of rows that are live at a length of the memtable."""
        gone = [None if found is None else sum(each.count(length) for each in found) for found in self._deletions]
        return sum(
            each.live if deleted is None else each.ref.rows - deleted
            for each, deleted in zip(self.stored.groups, gone, strict=True)
        )


class GroupedVersion(MapVersion):
    """Reads a group when a key, a write or a scan needs a partition of it. `segments` are those of all groups."""

    __slots__ = ("parts",)
    by_group = True

    def __init__(self, definition: MapDefinition, stored: StoredGroups) -> None:
        self.begin(definition, None)
        self.parts = GroupParts(stored)
        self.live = stored.live

    def __getattr__(self, name: str) -> Any:
        """Read all groups at the first look at all segments: a slot that is not set."""
        if name not in _ALL:
            raise AttributeError(name)
        stored = tuple(self.parts.stored)
        parts = list(self.parts.parts(range(len(self.parts.stored.groups))))
        self.infos = tuple([each.info for each in stored if each.info is not None])
        self.deletions = tuple([deletions for _, deletions in parts])
        self.segments = tuple([segment for segment, _ in parts])
        return object.__getattribute__(self, name)

    @property
    def segment_count(self) -> int:
        return len(self.parts.stored)

    @property
    def is_open(self) -> bool:
        groups = self.parts.stored.groups
        return all(each.is_read for each in groups) and super().is_open

    @property
    def summaries(self) -> Sequence[Mapping[str, ColumnSummary]]:
        return [self.parts.stored.summaries]

    def parts_of(self, partitions: np.ndarray) -> Iterator[tuple[Segment, DeletionVector]]:
        return self.parts.parts(self._groups_of(partitions))

    def described_parts(self, partitions: np.ndarray) -> Iterator[tuple[SegmentInfo, Segment, DeletionVector]]:
        groups = self._groups_of(partitions)
        infos = [each.info for group in groups for each in self.parts.stored.groups[group].stored]
        for info, (segment, deletions) in zip(infos, self.parts.parts(groups), strict=True):
            assert info is not None, "groups are in a folder"
            yield info, segment, deletions

    def _groups_of(self, partitions: np.ndarray) -> list[int]:
        """Return the numbers of the groups of partitions, all of which are read."""
        stored = self.parts.stored
        groups = sorted({group for partition in partitions.tolist() for group in stored.of_partition(partition)})
        stored.read(groups)
        return groups

    def sampled_parts(self) -> Iterable[tuple[Segment, DeletionVector]]:
        """Return the segments of one of the largest groups; of what is elsewhere nothing is read for that."""
        groups = self.parts.stored.groups
        read = [number for number, each in enumerate(groups) if each.is_read]
        chosen = read or range(len(groups))
        return self.parts.parts([max(chosen, key=lambda number: groups[number].ref.rows)])

    def segment_rows(self, length: int) -> int:
        return self.parts.rows(length)

    def restriction(self) -> Restriction:
        return Restriction(self.definition, self.columns, self.parts.numbers_of, self.parts.part)

    def segment_at(self, number: int) -> Segment:
        return self.parts.part(number)[0]

    def locate(self, key: Any) -> tuple[int, int] | None:
        before = self.before
        if before.locate is None:
            before.locate = make_search_in_few(self, lambda number, _: location_in(number))
        return before.locate(key)

    def delete_in_segments(self, key: Any) -> tuple[int, int] | None:
        location = self.locate(key)
        if location is not None:
            number, position = location
            self.parts.part(number)[1].delete(position, len(self.memtable.keys))
        return location

    def roll_back(self) -> None:
        for deletions in self.parts.written():
            deletions.roll_back(self.memtable.committed)
        self.memtable.roll_back()
        self.added = 0


def version_of(definition: MapDefinition, stored: Sequence[StoredSegment]) -> MapVersion:
    """Make a version with an empty memtable."""
    if isinstance(stored, StoredGroups):
        return GroupedVersion(definition, stored)
    deletions = [DeletionVector(each.segment.rows, each.deleted) for each in stored]
    infos = [each.info for each in stored if each.info is not None]
    return MapVersion(definition, [each.segment for each in stored], deletions, infos=infos)
