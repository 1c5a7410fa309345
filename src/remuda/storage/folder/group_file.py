"""Group files: what a map has in one group of partitions. Written once, named by roots, never changed.

    maps/<map id>/<group id>.group

    REMUDA GROUP 2 <checksum>
    the segments in MessagePack

A commit writes the files of the groups that it changed under new names, and then the root that names them.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.catalog import new_id
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.store_files import (
    DELETION_FILE,
    ID,
    SEGMENT_ID,
    check_form,
    create_file,
    read_file,
    remove_file,
)
from remuda.storage.segment.segment_file import LEVELS, SegmentInfo
from remuda.storage.segment.summary.saved_summaries import SavedSummaries, save_summaries, types_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition

MOST_BYTES = 1 << 28
"""Size of the largest group file that is read: a hundred thousand segments of ten columns."""
_HEAD = "REMUDA GROUP 2"


class SegmentEntry(msgspec.Struct, frozen=True, array_like=True):
    """A segment; `summaries` are its statistics as `SavedSummaries` reads them.

    `partitions` are the first and the last partition with a row, `deleted` is how many rows the deletion file has; None
    where an earlier version has written the entry.
    """

    id: str
    rows: int
    indexes: tuple[str, ...]
    row_bytes: int
    row_checksum: str
    deletion_file: str | None
    summaries: bytes
    partitions: tuple[int, int] | None = None
    deleted: int | None = None


class GroupRef(msgspec.Struct, frozen=True, array_like=True):
    """Names the file of a partition group.

    The group has the partitions from `first` to before `end`. `rows` and `row_bytes` are those of its segments, rows
    that were deleted since included; `deleted` is how many were. Format 3 and earlier ones do not say that.
    """

    id: str
    first: int
    end: int
    segments: int
    rows: int
    row_bytes: int
    file_bytes: int
    checksum: int
    deleted: int | None = None


def group_name(group: GroupRef) -> str:
    """Return the name of a group's file in the folder of its map."""
    return f"{group.id}.group"


def encode_group(first: int, end: int, segments: Sequence[SegmentEntry]) -> tuple[GroupRef, bytes]:
    """Return the content of a group's file, and what names it in a root."""
    body = msgspec.msgpack.encode(segments)
    checksum = zlib.crc32(body)
    raw = _head(checksum) + body
    rows = sum(each.rows for each in segments)
    row_bytes = sum(each.row_bytes for each in segments)
    gone = [each.deleted for each in segments if each.deleted is not None]
    deleted = sum(gone) if len(gone) == len(segments) else None
    return GroupRef(new_id(), first, end, len(segments), rows, row_bytes, len(raw), checksum, deleted), raw


def write_group(folder: Path, group: GroupRef, raw: bytes) -> None:
    """Write and fsync a group's file; its name is durable when the folder is synced."""
    path = folder / group_name(group)
    try:
        with create_file(path, levels=LEVELS) as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            remove_file(path, levels=LEVELS)
        raise StorageError(f"the file of a partition group cannot be written: {error.strerror}", path) from error


def read_group(folder: Path, group: GroupRef) -> tuple[SegmentEntry, ...]:
    path = folder / group_name(group)
    return decode_group(read_file(path, levels=LEVELS, most=MOST_BYTES), group, path)


def decode_group(raw: bytes, group: GroupRef, path: Path | str) -> tuple[SegmentEntry, ...]:
    """Decode a group's file; `path` is where it was read, for errors."""
    if len(raw) != group.file_bytes:
        place = min(len(raw), group.file_bytes)
        raise damage_error(f"the file has {len(raw)} bytes instead of {group.file_bytes}", path, place)
    head = _head(group.checksum)
    if not raw.startswith(head):
        raise damage_error("this is not the file of the partition group", path, 0)
    body = memoryview(raw)[len(head) :]
    if zlib.crc32(body) != group.checksum:
        raise damage_error("the file of a partition group is damaged", path, len(head))
    try:
        segments = msgspec.msgpack.decode(body, type=tuple[SegmentEntry, ...])
        check_segment_names(segments)
        _check_partitions(segments, group)
        _check_counts(segments, group)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise damage_error(f"the file of a partition group cannot be read: {error}", path, len(head)) from error
    return segments


def _head(checksum: int) -> bytes:
    return f"{_HEAD} {checksum:08x}\n".encode()


def check_segment_names(segments: Iterable[SegmentEntry]) -> None:
    """Raise `ValueError` for a name that a store does not give: names of files are made of them.

    A checksum guards against damage, not against an attacker who writes a group file by hand.
    """
    for segment in segments:
        check_form(SEGMENT_ID, segment.id)
        for each in segment.indexes:
            check_form(ID, each)
        if segment.deletion_file is not None:
            check_form(DELETION_FILE, segment.deletion_file)


def _check_partitions(segments: Iterable[SegmentEntry], group: GroupRef) -> None:
    """Raise `ValueError` for a segment with partitions that its group has not."""
    for segment in segments:
        if segment.partitions is not None:
            first, last = segment.partitions
            if not group.first <= first <= last < group.end:
                raise ValueError(f"the segment {segment.id} has the partitions from {first} to {last}")


def _check_counts(segments: Sequence[SegmentEntry], group: GroupRef) -> None:
    """Raise `ValueError` unless the segments are those that the root counts: it is read without them."""
    deleted = None if group.deleted is None else sum(each.deleted or 0 for each in segments)
    if (len(segments), sum(each.rows for each in segments), deleted) != (group.segments, group.rows, group.deleted):
        raise ValueError("the root counts other segments or rows")


def check_groups(groups: Sequence[GroupRef], partitions: int) -> None:
    """Raise `ValueError` for a group of an impossible name, or unless groups are disjoint ranges in ascending order.

    A first one of all partitions may stand before the others: it has the runs, which have rows of several groups.
    """
    for group in groups:
        check_form(ID, group.id)
        if min(group.segments, group.rows, group.row_bytes, group.file_bytes, group.deleted or 0) < 0:
            raise ValueError(f"the partition group {group.id} has less than nothing")
        if (group.deleted or 0) > group.rows:
            raise ValueError(f"the partition group {group.id} has more deleted rows than rows")
        if not 0 <= group.first < group.end <= partitions:
            raise ValueError(f"{partitions} partitions have none from {group.first} to {group.end}")
    has_runs = len(groups) > 1 and (groups[0].first, groups[0].end) == (0, partitions)
    for one, other in pairwise(groups[1:] if has_runs else groups):
        if one.end > other.first:
            raise ValueError(f"the partition {other.first} is in two groups")


def segment_entry(
    info: SegmentInfo, definition: MapDefinition, deletion_file: str | None = None, deleted: int = 0
) -> SegmentEntry:
    summaries = info.summaries
    if not isinstance(summaries, SavedSummaries):
        summaries = save_summaries(definition, summaries)
    return SegmentEntry(
        info.id,
        info.rows,
        info.indexes,
        info.row_bytes,
        info.row_checksum,
        deletion_file,
        summaries.raw,
        info.partitions,
        deleted,
    )


def segment_infos(
    entries: Iterable[SegmentEntry], definition: MapDefinition, origin: Path | str = ""
) -> list[SegmentInfo]:
    """Return what is known of segments; `origin` is the file that says so."""
    types: dict[str, Any] = types_of(definition)
    return [
        SegmentInfo(
            each.id,
            each.rows,
            each.indexes,
            each.row_bytes,
            each.row_checksum,
            SavedSummaries(each.summaries, types, origin),
            each.partitions,
        )
        for each in entries
    ]
