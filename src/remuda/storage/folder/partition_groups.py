"""The partition groups of the maps of one store: which files they have, what is in them, which a commit writes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from remuda.errors import StorageError, damage_error
from remuda.storage.folder.definition_entries import map_definition
from remuda.storage.folder.group_file import GroupRef, encode_group, group_name, read_group, write_group
from remuda.storage.folder.store_files import make_folder, remove_file
from remuda.storage.segment.group_ranges import range_of
from remuda.storage.segment.segment_file import LEVELS, files_of
from remuda.storage.segment.summary.saved_statistics import add_statistics, make_statistics
from remuda.storage.segment.summary.saved_summaries import SavedSummaries, types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.folder.group_file import SegmentEntry
    from remuda.storage.folder.manifest import Manifest
    from remuda.storage.segment.summary.saved_statistics import SavedStatistics

    ReadGroup = Callable[[str, GroupRef], tuple[SegmentEntry, ...]]

MOST_OPENED = 16
"""Segments of a map that are opened with it. A map of more opens each when it is first read."""


def has_many_segments(entry: MapEntry) -> bool:
    """Tell whether a map has so many segments that they are not opened with it."""
    return sum(group.segments for group in entry.groups) > MOST_OPENED


def read_by_group(entry: MapEntry) -> SavedStatistics | None:
    """Return the statistics of a map whose groups are read when they are needed; None where all are read with it.

    A root of an earlier version does not tell how many rows of a group are deleted, and has no statistics.
    """
    tells_all = entry.statistics is not None and all(group.deleted is not None for group in entry.groups)
    return entry.statistics if tells_all and _is_grouped(entry.groups) else None


def _is_grouped(groups: Sequence[GroupRef]) -> bool:
    return len(groups) > 1 and sum(group.segments for group in groups) > MOST_OPENED


class PartitionGroups:
    """Reads and writes the group files of a store, and keeps what the files of one state say.

    `read` gives what the file of a map's group says; without it the file is in the folder of the map. `transfers` is
    how many files are read at the same time, where that makes them come sooner.
    """

    __slots__ = ("_held", "_read", "_store", "_transfers")

    def __init__(self, store: Path, read: ReadGroup | None = None, transfers: int = 1) -> None:
        self._store = store
        self._transfers = transfers
        self._read = read or (lambda map_id, group: read_group(self.folder(map_id), group))
        self._held: dict[str, tuple[SegmentEntry, ...]] = {}

    def folder(self, map_id: str) -> Path:
        return self._store / "maps" / map_id

    # Reading

    def segments_in(self, map_id: str, group: GroupRef) -> tuple[SegmentEntry, ...]:
        found = self._held.get(group.id)
        if found is None:
            found = self._held[group.id] = self._read(map_id, group)
        return found

    def read_unheld(self, map_id: str, group: GroupRef) -> tuple[SegmentEntry, ...]:
        """Return the segments of a group without keeping them, for work that goes through all groups once."""
        return self._held.get(group.id) or self._read(map_id, group)

    def fetch(self, map_id: str, groups: Sequence[GroupRef]) -> None:
        """Read several groups before they are asked for one by one."""
        if self._transfers > 1 and len(groups) > 1:
            with ThreadPoolExecutor(self._transfers) as pool:
                list(pool.map(lambda group: self.segments_in(map_id, group), groups))

    def segments_of(self, entry: MapEntry) -> Iterator[tuple[GroupRef | None, tuple[SegmentEntry, ...]]]:
        """Yield the segments of a map, group by group; those that are in no group file come first, with None."""
        if entry.segments:
            yield None, entry.segments
        for group in entry.groups:
            yield group, self.segments_in(entry.id, group)

    def damages(self, entry: MapEntry) -> Iterator[StorageError]:
        """Read the group files of a map again and yield what is damaged."""
        for group in entry.groups:
            try:
                self._read(entry.id, group)
            except FileNotFoundError as error:
                yield damage_error("the file of a partition group is missing", error.filename)
            except StorageError as error:
                yield error

    # Committing

    def unchanged(self, entry: MapEntry, before: MapEntry | None) -> MapEntry:
        """Return the entry of a map with the groups that the state before has for the same segments."""
        if before is None or entry.groups:
            return entry
        present = entry
        if before.segments or any(each.deleted is None for each in before.groups):  # of format 3 or earlier
            present = replace(entry, segments=tuple([replace(each, deleted=None) for each in entry.segments]))
        if before.segments:  # of format 1, which has them in no group file
            return replace(entry, segments=before.segments) if present.segments == before.segments else entry
        held = [(each.first, each.end, self._held.get(each.id)) for each in before.groups]
        if list(_grouped(present)) != held:
            return entry
        return replace(entry, groups=before.groups, statistics=before.statistics, segments=(), cuts=())

    def write(self, entry: MapEntry, before: MapEntry | None) -> MapEntry:
        """Write the groups of a map whose segments are in no group file yet, all or none, but for those that are as in
        the state before."""
        if not entry.segments:
            return entry
        known = {} if before is None else {(each.first, each.end): each for each in before.groups}
        groups: list[GroupRef] = []
        try:
            for first, end, segments in _grouped(entry):
                found = known.get((first, end))
                if found is None or self._held.get(found.id) != segments:
                    found = self.write_group(entry.id, first, end, segments)
                groups.append(found)
        except BaseException:
            self.remove(replace(entry, groups=tuple(groups)), before)
            raise
        statistics = self._statistics(entry, groups, before) if _is_grouped(groups) else None
        return replace(entry, groups=tuple(groups), statistics=statistics, segments=(), cuts=())

    def _statistics(self, entry: MapEntry, groups: Sequence[GroupRef], before: MapEntry | None) -> SavedStatistics:
        """Return the statistics of a map: those of the state before with the new segments, or of all segments."""
        definition = map_definition(entry)
        if before is not None and before.statistics is not None and before.columns == entry.columns:
            present = {each.id for each in groups}
            gone = [self._held.get(each.id) for each in before.groups if each.id not in present]
            known = {each.id for segments in gone for each in segments or ()}
            changed = {each.id for each in groups} - {each.id for each in before.groups}
            fresh = [each for group in groups if group.id in changed for each in self._held[group.id]]
            added = [each for each in fresh if each.id not in known]
            rows = sum(each.rows for each in added)
            found = add_statistics(definition, before.statistics, _summaries(added, definition), rows)
            if found is not None:
                return found
        rows = sum(group.rows for group in groups)
        return make_statistics(definition, _summaries(entry.segments, definition), rows)

    def write_group(self, map_id: str, first: int, end: int, segments: tuple[SegmentEntry, ...]) -> GroupRef:
        """Write the file of one group and return what names it in a root."""
        folder = self.folder(map_id)
        group, raw = encode_group(first, end, segments)
        make_folder(folder)
        write_group(folder, group, raw)
        self._held[group.id] = segments
        return group

    def remove(self, entry: MapEntry, before: MapEntry | None) -> None:
        """Remove the group files of a map that the state before does not name: they were written for nothing."""
        kept = set() if before is None else {each.id for each in before.groups}
        for group in entry.groups:
            if group.id not in kept:
                self._held.pop(group.id, None)
                with suppress(OSError):
                    remove_file(self.folder(entry.id) / group_name(group), levels=LEVELS)

    def keep_only(self, maps: Iterable[MapEntry]) -> None:
        """Forget what the files of other groups than those of these maps say."""
        named = {group.id for entry in maps for group in entry.groups}
        for group_id in list(self._held):  # Queries read groups meanwhile.
            if group_id not in named:
                self._held.pop(group_id, None)

    # Names

    def known_files(self, manifest: Manifest) -> dict[str, list[str]]:
        """Return by the ids of groups the files of their segments: of groups that were read, or written.

        A commit changes no other groups, so these have all the files that are new in it.
        """
        return {
            group.id: [name for name, _ in segment_files(entry.id, self._held[group.id])]
            for entry in manifest.maps
            for group in entry.groups
            if group.id in self._held
        }

    def named_files(self, manifest: Manifest) -> Iterator[tuple[str, SegmentEntry | GroupRef | None]]:
        """Yield the files of a state by their names within the store: those of groups with what names them, rows of
        segments with their entries."""
        for entry in manifest.maps:
            yield from group_files(entry)
            self.fetch(entry.id, [group for group in entry.groups if group.id not in self._held])
            for _, segments in self.segments_of(entry):
                yield from segment_files(entry.id, segments)


def _summaries(segments: Iterable[SegmentEntry], definition: MapDefinition) -> list[SavedSummaries]:
    types = types_of(definition)
    return [SavedSummaries(each.summaries, types) for each in segments]


def _grouped(entry: MapEntry) -> Iterator[tuple[int, int, tuple[SegmentEntry, ...]]]:
    """Yield the groups of a map about to be committed: its partitions, from and to before, and its segments.

    The segments that have rows of several groups come first, as a group of all partitions.
    """
    found: dict[tuple[int, int], list[SegmentEntry]] = {}
    for each in entry.segments:
        span = None if each.partitions is None else range_of(entry.cuts, entry.partitions, each.partitions)
        found.setdefault(span or (0, entry.partitions), []).append(each)
    for first, end in sorted(found, key=lambda span: (span[0], -span[1])):
        yield first, end, tuple(found[first, end])


def group_files(entry: MapEntry) -> Iterator[tuple[str, GroupRef]]:
    """Yield the group files of a map by their names within the store."""
    folder = PurePosixPath("maps", entry.id)
    for group in entry.groups:
        yield str(folder / group_name(group)), group


def segment_files(map_id: str, segments: Sequence[SegmentEntry]) -> Iterator[tuple[str, SegmentEntry | None]]:
    """Yield the files of segments by their names within the store; the rows of a segment with its entry."""
    folder = PurePosixPath("maps", map_id)
    for segment in segments:
        rows, *others = files_of(folder, segment.id, segment.indexes)
        if segment.deletion_file is not None:
            others.append(folder / segment.deletion_file)
        yield str(rows), segment
        yield from ((str(other), None) for other in others)
