"""Opens the segments that the group files of a map name: all at once, or those of a group when they are needed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from remuda.errors import damage_error
from remuda.storage.folder.group_file import group_name, segment_infos
from remuda.storage.folder.manifest import NAME
from remuda.storage.segment.stored_groups import StoredGroup, StoredGroups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.folder.group_file import GroupRef, SegmentEntry
    from remuda.storage.folder.partition_groups import PartitionGroups
    from remuda.storage.segment.group_ranges import Range
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.segment.summary.saved_statistics import SavedStatistics


def open_segments(
    groups: PartitionGroups,
    entry: MapEntry,
    definition: MapDefinition,
    directory: SegmentDirectory,
    opened: Sequence[StoredSegment],
    *,
    lazily: bool,
) -> tuple[StoredSegment, ...]:
    """Open all segments of a map, but for those that are open already; `lazily` their files when they are read."""
    stored: list[StoredSegment] = []
    for group, entries in groups.segments_of(entry):
        stored += _open(groups, entry, definition, directory, group, entries, opened, lazily=lazily)
    return tuple(stored)


def open_groups(
    groups: PartitionGroups,
    entry: MapEntry,
    definition: MapDefinition,
    directory: SegmentDirectory,
    opened: Sequence[StoredSegment],
    statistics: SavedStatistics,
) -> StoredGroups:
    """Return the segments of a map of which none is opened yet; what is open of an earlier state is used again."""

    # A group outlives the root that named it first, and must not keep all that this one names.
    own = structs.replace(entry, groups=(), statistics=None)

    def open_group(group: GroupRef, earlier: Sequence[StoredSegment]) -> tuple[StoredSegment, ...]:
        try:
            entries = groups.segments_in(own.id, group)
            return tuple(_open(groups, own, definition, directory, group, entries, earlier, lazily=True))
        except FileNotFoundError as error:
            missing = groups.folder(own.id) / str(error.filename)
            raise damage_error("a file named in the manifest is missing", missing) from error

    known = _known(opened, definition)
    made = []
    for group in entry.groups:
        held = known.get(_span(entry, group), ())
        if isinstance(held, StoredGroup) and held.ref == group:
            made.append(held)
        else:
            made.append(StoredGroup(group, open_group, held.known if isinstance(held, StoredGroup) else held))
    return StoredGroups(made, definition, statistics, partial(groups.fetch, entry.id))


def _known(
    opened: Sequence[StoredSegment], definition: MapDefinition
) -> dict[Range | None, StoredGroup | Sequence[StoredSegment]]:
    """Return the segments of an earlier state by the partitions of their group; None for runs."""
    if isinstance(opened, StoredGroups):
        if opened.definition != definition:
            return {}
        runs = (0, opened.partitions)
        return {None if (span := (each.ref.first, each.ref.end)) == runs else span: each for each in opened.groups}
    known: dict[Range | None, list[StoredSegment]] = {}
    for each in opened:
        known.setdefault(each.group, []).append(each)
    return dict(known)


def _span(entry: MapEntry, group: GroupRef | None) -> Range | None:
    """Return the partitions of a group, from and to before; None for the group of the runs, or of all segments."""
    return None if group is None or (group.first, group.end) == (0, entry.partitions) else (group.first, group.end)


def _open(
    groups: PartitionGroups,
    entry: MapEntry,
    definition: MapDefinition,
    directory: SegmentDirectory,
    group: GroupRef | None,
    entries: Sequence[SegmentEntry],
    opened: Sequence[StoredSegment],
    *,
    lazily: bool,
) -> list[StoredSegment]:
    span = _span(entry, group)
    by_id = {each.segment.id: each for each in opened}
    origin = NAME if group is None else groups.folder(entry.id) / group_name(group)
    stored = []
    for each, info in zip(entries, segment_infos(entries, definition, origin), strict=True):
        held = by_id.get(each.id)
        if held is None or (held.info, held.deletion_file) != (info, each.deletion_file):
            held = directory.open(definition, info, each.deletion_file, lazily=lazily)
            if each.deleted is not None and each.deleted != len(held.deleted):
                raise damage_error(f"the segment {each.id} has {len(held.deleted)} deleted rows", origin)
        stored.append(held if held.group == span else replace(held, group=span))
    return stored
