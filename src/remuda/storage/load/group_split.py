"""Where the partition groups of a map are cut: a group that outgrows its target size is split between two partitions.

A cut lies where no segment has rows on both sides, if one can: then nothing is written again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.storage.load import segment_cut
from remuda.storage.segment.group_ranges import cuts_of, range_of, ranges_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.group_ranges import Range
    from remuda.storage.segment.segment_directory import StoredSegment


def live_bytes(stored: StoredSegment) -> int:
    """Return the bytes of the rows that are not deleted; nothing is fetched or opened for that."""
    segment, info = stored.segment, stored.info
    is_elsewhere = segment.is_remote or not segment.is_open
    size = info.row_bytes if is_elsewhere and info is not None else segment.batch.nbytes
    return int(size * stored.live // max(1, segment.rows))


def group_of(definition: MapDefinition, stored: StoredSegment, cuts: Sequence[int]) -> Range | None:
    """Return the group of a segment; None for a run, and where there is only one group."""
    if not cuts:
        return None
    segment = stored.segment
    return range_of(cuts, definition.partitions, (segment.first_partition, segment.last_partition))


def new_cuts(definition: MapDefinition, stored: Sequence[StoredSegment]) -> list[int]:
    """Return where the groups of a map are to be cut: those that are too large are split."""
    cuts = cuts_of(stored, definition.partitions)
    limit = segment_cut.GROUP_BYTES
    sizes = [live_bytes(each) for each in stored]
    if sum(sizes) <= limit:
        return cuts
    members: dict[Range, list[StoredSegment]] = {}
    totals: dict[Range, int] = {}
    whole = (0, definition.partitions)
    for each, size in zip(stored, sizes, strict=True):
        group = group_of(definition, each, cuts) if cuts else whole
        if group is not None:
            members.setdefault(group, []).append(each)
            totals[group] = totals.get(group, 0) + size
    fresh = [cut for group, size in totals.items() if size > limit for cut in _split(group, members[group])]
    return sorted({*cuts, *fresh})


def even_cuts(definition: MapDefinition, stored: Sequence[StoredSegment]) -> list[int]:
    """Return where a map is cut into groups of about equally many bytes, whatever segments it has now."""
    whole = (0, definition.partitions)
    before = _bytes_before(whole, stored)
    return _inside(before, 0, definition.partitions) if before[-1] > segment_cut.GROUP_BYTES else []


def fits(definition: MapDefinition, stored: Sequence[StoredSegment], cuts: Sequence[int]) -> bool:
    """Tell whether groups that are cut so have all rows, none of them too many, nor twice as many groups as it takes.

    A partition that is too large by itself cannot be split.
    """
    before = _bytes_before((0, definition.partitions), stored)
    limit = segment_cut.GROUP_BYTES
    if len(cuts) > 2 * before[-1] / (limit * segment_cut.LOADED_SHARE):
        return False
    ranges = ranges_of(cuts, definition.partitions)
    return all(before[end] - before[first] <= limit or end - first == 1 for first, end in ranges)


def _bytes_before(group: Range, stored: Sequence[StoredSegment]) -> np.ndarray:
    """Return for each partition of a group, and for its end, the bytes of the rows of the group before it."""
    first, end = group
    sizes = np.zeros(end - first, np.float64)
    for each in stored:
        rows = np.diff(np.asarray(each.segment.partition_offsets[first : end + 1], np.float64))
        sizes += rows * (live_bytes(each) / max(1, each.segment.rows))
    return np.concatenate([[0.0], np.cumsum(sizes)])


def _split(group: Range, members: Sequence[StoredSegment]) -> list[int]:
    """Return the cuts of a group that is too large: between segments as far as that makes groups that fit."""
    first, end = group
    limit = segment_cut.GROUP_BYTES
    before = _bytes_before(group, members)
    straddled = np.zeros(end - first + 1, np.bool_)
    for each in members:
        straddled[each.segment.first_partition - first + 1 : each.segment.last_partition - first + 1] = True
    cuts: list[int] = []
    start = previous = 0
    for stop in np.flatnonzero(~straddled)[1:].tolist():
        if before[stop] - before[start] > limit and previous > start:
            cuts.append(previous)
            start = previous
        if before[stop] - before[start] > limit:
            cuts += _inside(before, start, stop)
            start = stop
            cuts += [stop] if stop < end - first else []
        previous = stop
    return [first + cut for cut in cuts]


def _inside(before: np.ndarray, start: int, stop: int) -> list[int]:
    """Return cuts between two partitions that make parts of about equally many bytes, each below the target."""
    total = before[stop] - before[start]
    parts = int(np.ceil(total / (segment_cut.LOADED_SHARE * segment_cut.GROUP_BYTES)))
    targets = before[start] + total * np.arange(1, parts) / parts
    found = np.searchsorted(before, targets)
    return sorted({int(each) for each in found if start < each < stop})
