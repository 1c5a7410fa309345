"""The partition groups of the maps of one store: which files they have, what is in them, which a commit writes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from remuda.errors import StorageError, damage_error
from remuda.storage.folder.group_file import GroupRef, encode_group, group_name, read_group, write_group
from remuda.storage.folder.store_files import make_folder, remove_file
from remuda.storage.segment.group_ranges import range_of
from remuda.storage.segment.segment_file import LEVELS, files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.folder.group_file import SegmentEntry
    from remuda.storage.folder.manifest import Manifest

    ReadGroup = Callable[[str, GroupRef], tuple[SegmentEntry, ...]]


class PartitionGroups:
    """Reads and writes the group files of a store, and keeps what the files of one state say.

    `read` gives what the file of a map's group says; without it the file is in the folder of the map.
    """

    __slots__ = ("_held", "_read", "_store")

    def __init__(self, store: Path, read: ReadGroup | None = None) -> None:
        self._store = store
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
        if before.segments:  # of format 1, which has them in no group file
            return replace(entry, segments=before.segments) if entry.segments == before.segments else entry
        held = [(each.first, each.end, self._held.get(each.id)) for each in before.groups]
        if list(_grouped(entry)) != held:
            return entry
        return replace(entry, groups=before.groups, segments=(), cuts=())

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
        return replace(entry, groups=tuple(groups), segments=(), cuts=())

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
        for group_id in self._held.keys() - named:
            self._held.pop(group_id, None)

    # Names

    def named_files(self, manifest: Manifest) -> Iterator[tuple[str, SegmentEntry | GroupRef | None]]:
        """Yield the files of a state by their names within the store: those of groups with what names them, rows of
        segments with their entries."""
        for entry in manifest.maps:
            yield from group_files(entry)
            for _, segments in self.segments_of(entry):
                yield from segment_files(entry.id, segments)


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
