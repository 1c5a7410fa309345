"""Keeps the segments of each partition group few, and folds runs into the groups whose rows they have.

A group has about sixteen small segments at most, and a map about sixteen small runs. A run is what was written without
regard to groups: a checkpoint over all of them, a load that had its own ranges of partitions. Runs are merged with one
another. They are written into the groups when all of them together have a sixteenth of the bytes that the groups may
have, so a row is written a few times, however many groups there are. One commit merges a bounded amount, and the next
ones go on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.expr.cancellation import check_cancelled
from remuda.storage.load import segment_cut
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.group_split import even_cuts, fits, group_of, live_bytes, new_cuts
from remuda.storage.segment.group_ranges import cuts_of, ranges_of
from remuda.storage.segment.segment_directory import StoredSegment
from remuda.types.arrow_texts import decoded, ranges_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.group_ranges import Range
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_directory import SegmentDirectory

MOST_SEGMENTS = 16

DELETED_SHARE = 0.3
"""A segment with more deleted rows than this is written anew."""

FULL_SHARE = 0.5
"""A segment with this share of what one can have, of rows or bytes, is not merged to have fewer segments, and does not
count as one of them: it would be written again and again."""

MERGED_GROUPS = 2
"""One commit merges so many times the target size of a group, at most."""


def merge_small(
    directory: SegmentDirectory,
    definition: MapDefinition,
    stored: Sequence[StoredSegment],
    held: Sequence[StoredSegment],
) -> tuple[StoredSegment, ...]:
    """Split groups that are too large, merge the smallest segments of a group if there are too many, and those that
    are mostly deleted, and fold runs.

    `held` are the segments in force.
    """
    cuts = new_cuts(definition, stored)
    placed = [_in_group(definition, each, cuts) for each in stored]
    members: dict[Range | None, list[StoredSegment]] = {}
    for each in placed:
        members.setdefault(each.group, []).append(each)
    lots = []
    if cuts:
        runs = members.pop(None, [])
        folded = _to_fold(runs, cuts)
        lots.append((folded, cuts))
        lots.append((_to_merge([each for each in runs if all(each is not other for other in folded)]), []))
    lots += [(_to_merge(each), []) for each in members.values()]
    chosen = {each.segment.id for lot, _ in lots for each in lot}
    if not chosen:
        return tuple(placed)
    merged: list[StoredSegment] = []
    try:
        for lot, own_cuts in lots:
            for together in _within_a_group(lot):
                columns = _live_columns(directory, definition, together)
                merged += directory.add_all(build_segments(definition, columns, own_cuts))
    except BaseException:
        directory.discard(merged, (), named=False)
        raise
    directory.discard_deletions([each for each in placed if each.segment.id in chosen], held)
    rest = [each for each in placed if each.segment.id not in chosen]
    return (*rest, *(_in_group(definition, each, cuts) for each in merged))


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The rows of some partitions, from and to before, that are to become one segment; and the segments that have
    them, among others."""

    group: Range
    stored: tuple[StoredSegment, ...]


WriteGroups = Callable[[Sequence[GroupRows]], Sequence[StoredSegment]]
"""Writes segments of groups, all or none."""


def optimize_groups(
    directory: SegmentDirectory,
    definition: MapDefinition,
    held: Sequence[StoredSegment],
    write: WriteGroups | None = None,
) -> tuple[StoredSegment, ...]:
    """Fold all runs and merge the segments of each group into one; groups that do not fit are cut anew.

    `write` does that for all groups that need it, elsewhere. Without it one group is written after the other, so that
    no more than one is in memory.
    """
    cuts = cuts_of(held, definition.partitions)
    if not fits(definition, held, cuts):
        cuts = even_cuts(definition, held)
    if write is None:
        return _by_group(directory, definition, held, cuts, keeps=True)
    kept, needed = _chosen(definition, held, cuts, keeps=True)
    return tuple(_in_group(definition, each, cuts) for each in (*kept, *write(needed)))


def build_group(directory: SegmentDirectory, definition: MapDefinition, rows: GroupRows) -> Iterator[Segment]:
    """Yield the segments of a group."""
    columns = _live_columns(directory, definition, rows.stored, rows.group)
    if columns and len(columns[0]):
        yield from build_segments(definition, columns)


def _chosen(
    definition: MapDefinition, held: Sequence[StoredSegment], cuts: Sequence[int], *, keeps: bool
) -> tuple[list[StoredSegment], list[GroupRows]]:
    """Return the segments that stay, as they have all rows of a group and no other, and the groups to be written."""
    kept: list[StoredSegment] = []
    needed: list[GroupRows] = []
    for group in ranges_of(cuts, definition.partitions):
        overlapping = tuple(each for each in held if _has_rows(each, group))
        if keeps and _is_optimal(overlapping, group):
            kept += overlapping
        elif overlapping:
            needed.append(GroupRows(group, overlapping))
    return kept, needed


def rewritten(
    directory: SegmentDirectory, definition: MapDefinition, past: Sequence[StoredSegment]
) -> tuple[StoredSegment, ...]:
    """Return new segments with the live rows of these, whose files may have another folder: one for each group."""
    return _by_group(directory, definition, past, even_cuts(definition, past), keeps=False)


def _by_group(
    directory: SegmentDirectory,
    definition: MapDefinition,
    held: Sequence[StoredSegment],
    cuts: Sequence[int],
    *,
    keeps: bool,
) -> tuple[StoredSegment, ...]:
    """Return segments of one group each; with `keeps` one that has all rows of its group, and no other, stays."""
    made, needed = _chosen(definition, held, cuts, keeps=keeps)
    try:
        for rows in needed:
            check_cancelled()
            made += directory.add_all(build_group(directory, definition, rows))
    except BaseException:
        directory.discard(made, held, named=False)
        raise
    return tuple(_in_group(definition, each, cuts) for each in made)


def _has_rows(stored: StoredSegment, group: Range) -> bool:
    return stored.segment.first_partition < group[1] and group[0] <= stored.segment.last_partition


def _is_optimal(overlapping: Sequence[StoredSegment], group: Range) -> bool:
    """Tell whether one segment, without deletions, has the rows of a group and of no other."""
    if len(overlapping) != 1 or len(overlapping[0].deleted):
        return False
    segment = overlapping[0].segment
    return group[0] <= segment.first_partition and segment.last_partition < group[1]


def _in_group(definition: MapDefinition, stored: StoredSegment, cuts: Sequence[int]) -> StoredSegment:
    """Return the segment as a member of the group that has all its rows, or as a run."""
    info = stored.info
    if cuts and info is not None and info.partitions is None:
        info = replace(info, partitions=(stored.segment.first_partition, stored.segment.last_partition))
    group = group_of(definition, stored, cuts)
    return stored if (group, info) == (stored.group, stored.info) else replace(stored, group=group, info=info)


def _to_merge(members: Sequence[StoredSegment]) -> list[StoredSegment]:
    """Choose the segments of one group, or runs, to be merged."""
    chosen = [each for each in members if len(each.deleted) > DELETED_SHARE * each.segment.rows]
    small = [each for each in members if not _is_full(each)]
    excess = len(small) - MOST_SEGMENTS
    if excess > 0:
        # Half of them at once: merging the two smallest each time would rewrite the same rows over and over.
        smallest = sorted(small, key=lambda each: each.live)[: MOST_SEGMENTS // 2 + excess]
        known = {each.segment.id for each in chosen}
        chosen += [each for each in _bounded(smallest, least=2) if each.segment.id not in known]
    return chosen


def _to_fold(runs: Sequence[StoredSegment], cuts: Sequence[int]) -> list[StoredSegment]:
    """Choose the runs to be written into the groups: the largest, once they are worth it."""
    if not segment_cut.is_worth_cutting(sum(map(live_bytes, runs)), cuts):
        return []
    return _bounded(sorted(runs, key=live_bytes, reverse=True), least=1)


def _bounded(ordered: Sequence[StoredSegment], least: int) -> list[StoredSegment]:
    """Return the first segments: as many as one commit merges."""
    sizes = np.cumsum([live_bytes(each) for each in ordered])
    count = int(np.searchsorted(sizes, MERGED_GROUPS * segment_cut.GROUP_BYTES, side="right"))
    return list(ordered[: max(least, count)])


def _is_full(stored: StoredSegment) -> bool:
    return stored.live >= FULL_SHARE * segment_cut.PART_ROWS or (
        live_bytes(stored) >= FULL_SHARE * segment_cut.most_bytes()
    )


def _within_a_group(chosen: Sequence[StoredSegment]) -> Iterator[list[StoredSegment]]:
    """Put segments together that have at most the bytes of a group: no more than that is held at once."""
    sizes = np.array([live_bytes(each) for each in chosen], np.int64)
    order = np.argsort(sizes, kind="stable")
    for start, stop in ranges_within(sizes[order], segment_cut.most_bytes()):
        yield [chosen[number] for number in np.sort(order[start:stop])]


def _live_columns(
    directory: SegmentDirectory,
    definition: MapDefinition,
    stored: Iterable[StoredSegment],
    group: Range | None = None,
) -> list[pa.ChunkedArray]:
    """Read the live rows, those of one group or all, strings decoded, so that parts with and without dictionaries can
    be concatenated."""
    tables: list[pa.Table] = []
    names = [column.name for column in definition.columns]
    for each in stored:
        start, stop = 0, each.segment.rows
        if group is not None:
            start, stop = each.segment.partition_offsets[list(group)].tolist()
        if (start, stop) == (0, each.segment.rows) or not each.segment.is_guarded:
            directory.verify_once(each)
        batch = each.segment.read(names, start, stop)  # of a part of a run no more than that is verified
        gone = each.deleted[slice(*np.searchsorted(each.deleted, [start, stop]))]
        if len(gone):
            live = np.ones(batch.num_rows, np.bool_)
            live[gone - start] = False
            batch = batch.filter(pa.array(live))
        tables.append(pa.table(list(map(decoded, batch.columns)), names=batch.schema.names))
    together = pa.concat_tables(tables) if tables else pa.table({})
    return [together.column(column.name) for column in definition.columns] if tables else []
