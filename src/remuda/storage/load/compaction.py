"""Flushes a memtable into segments, and keeps the segments few.

A checkpoint makes one small segment of the memtable's live rows and writes what the memtable deleted in older segments
into files of deletions. Small segments and half-empty ones are merged when there are too many, so that a key is looked
for in a handful of tables however long the map lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from remuda.expr.cancellation import check_cancelled
from remuda.storage.load import segment_cut
from remuda.storage.load.bulk_load import build_segments, common_keys
from remuda.storage.load.upsert_keys import LAST, order_ranks, twice_in_upsert
from remuda.storage.segment.deletion_vector import marked
from remuda.storage.segment.segment_builder import build_segment, duplicate_key
from remuda.storage.snapshot import MapSnapshot
from remuda.types.arrow_texts import decoded, ranges_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.load.upsert_keys import OrderBy
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.state.map_version import MapVersion

# Loaded segments beside those that are there: duplicates, missing indexes, and the number of segments.


LoadMode = Literal["append", "replace", "upsert", "apply"]


def merge_load(
    directory: SegmentDirectory,
    definition: MapDefinition,
    held: Sequence[StoredSegment],
    fresh: Sequence[StoredSegment],
    mode: LoadMode,
    order_by: OrderBy = None,
) -> tuple[StoredSegment, ...]:
    """Return the segments of a map after a load: `held` has what was there, `fresh` what is loaded, each key once in
    each segment. A key that is in two loaded segments is refused, unless `order_by` says which row wins."""
    kept = [] if mode == "replace" else list(held)
    loaded: list[StoredSegment] = []
    try:
        for each in fresh:
            kept = [_make_way(directory, definition, other, each, mode) for other in kept]
            newest = with_all_indexes(directory, definition, each)
            for number, other in enumerate(loaded):
                loaded[number], newest = _settle(directory, definition, other, newest, mode, order_by)
            loaded.append(newest)
        directory.discard_deletions([each for each in (*kept, *loaded) if not each.live], held)
        return merge_small(directory, definition, [each for each in (*kept, *loaded) if each.live], held)
    except BaseException:
        directory.discard([*kept, *loaded], [*held, *fresh], named=False)
        raise


def with_all_indexes(directory: SegmentDirectory, definition: MapDefinition, stored: StoredSegment) -> StoredSegment:
    """Add the indexes that were created while the segments were being built elsewhere."""
    for index in definition.indexes:
        if index.id not in stored.segment.index_arrays:
            stored = directory.with_index(stored, index)
    return stored


def _make_way(
    directory: SegmentDirectory, definition: MapDefinition, held: StoredSegment, fresh: StoredSegment, mode: LoadMode
) -> StoredSegment:
    """Refuse duplicates between held and loaded rows, or delete them from those that are held."""
    positions, _ = common_keys(held.segment, fresh.segment)
    if len(held.deleted):
        positions = positions[~marked(held.segment.rows, held.deleted)[positions]]
    if len(positions) and mode != "upsert":
        raise duplicate_key(definition, held.segment.key_at(int(positions[0])))
    return _without(directory, held, positions)


def _settle(
    directory: SegmentDirectory,
    definition: MapDefinition,
    one: StoredSegment,
    other: StoredSegment,
    mode: LoadMode,
    order_by: OrderBy,
) -> tuple[StoredSegment, StoredSegment]:
    """Delete, of the keys that two segments of one load have in common, the older rows, or refuse the load."""
    mine, theirs = common_keys(one.segment, other.segment)
    gone, other_gone = (marked(each.segment.rows, each.deleted) for each in (one, other))
    alive = ~(gone[mine] | other_gone[theirs])
    mine, theirs = mine[alive], theirs[alive]
    if not len(mine):
        return one, other
    if mode != "upsert":
        raise duplicate_key(definition, one.segment.key_at(int(mine[0])))
    if order_by is None:
        raise twice_in_upsert(definition, one.segment.key_at(int(mine[0])), None)
    if order_by is LAST:
        return _without(directory, one, mine), other
    ranks = order_ranks(pa.concat_arrays([_values(one, order_by, mine), _values(other, order_by, theirs)]))
    first, second = ranks[: len(mine)], ranks[len(mine) :]
    if (first == second).any():
        tie = int(mine[int(np.argmax(first == second))])
        raise twice_in_upsert(definition, one.segment.key_at(tie), order_by)
    return (
        _without(directory, one, mine[first < second]),
        _without(directory, other, theirs[second < first]),
    )


def _values(stored: StoredSegment, column: str, positions: np.ndarray) -> pa.Array:
    taken = stored.segment.batch.column(column).take(pa.array(positions))
    return taken.dictionary_decode() if pa.types.is_dictionary(taken.type) else taken


def _without(directory: SegmentDirectory, stored: StoredSegment, positions: np.ndarray) -> StoredSegment:
    if not len(positions):
        return stored
    return directory.with_deleted(stored, np.flatnonzero(marked(stored.segment.rows, stored.deleted, positions)))


MOST_SEGMENTS = 16
DELETED_SHARE = 0.3
"""A segment with more deleted rows than this is written anew."""


def flush_memtable(
    directory: SegmentDirectory, version: MapVersion, stored: Sequence[StoredSegment], length: int
) -> tuple[StoredSegment, ...]:
    """Return the segments of a version with the first `length` entries of its memtable, at least one, flushed in."""
    kept: list[StoredSegment] = []
    try:
        for each, deletions in zip(stored, version.deletions, strict=True):
            if deletions.count(length) < each.segment.rows:
                kept.append(directory.with_deleted(each, deletions.positions(length)))
        names = [column.name for column in version.definition.columns]
        recent = MapSnapshot(version, length).sources[-1].read(names, 0, length)
        check_cancelled()
        if recent.num_rows:
            kept.append(directory.add(build_segment(version.definition, recent)))
            check_cancelled()
        return merge_small(directory, version.definition, kept, stored)
    except BaseException:
        directory.discard(kept, stored, named=False)
        raise


def merge_small(
    directory: SegmentDirectory,
    definition: MapDefinition,
    stored: Sequence[StoredSegment],
    held: Sequence[StoredSegment],
) -> tuple[StoredSegment, ...]:
    """Merges the smallest segments into one another if there are too many, and those that are mostly deleted.

    `held` are the segments in force.
    """
    chosen = {number for number, each in enumerate(stored) if len(each.deleted) > DELETED_SHARE * each.segment.rows}
    small = [number for number, each in enumerate(stored) if not _is_full(each)]
    excess = len(small) - MOST_SEGMENTS
    if excess > 0:
        by_size = sorted(small, key=lambda number: stored[number].live)
        # Half of them at once: merging the two smallest each time would rewrite the same rows over and over.
        chosen |= set(by_size[: MOST_SEGMENTS // 2 + excess])
    if not chosen:
        return tuple(stored)
    rest = [each for number, each in enumerate(stored) if number not in chosen]
    merged: list[StoredSegment] = []
    try:
        for together in _within_a_segment([stored[number] for number in sorted(chosen)]):
            merged += directory.add_all(build_segments(definition, _live_columns(directory, definition, together)))
    except BaseException:
        directory.discard(merged, (), named=False)
        raise
    directory.discard_deletions([stored[number] for number in chosen], held)
    return (*rest, *merged)


FULL_SHARE = 0.5
"""A segment with this share of what one can have, of rows or bytes, is not merged to have fewer segments, and does not
count as one of them: it would be written again and again."""


def _is_full(stored: StoredSegment) -> bool:
    return stored.live >= FULL_SHARE * segment_cut.PART_ROWS or _live_bytes(stored) >= (
        FULL_SHARE * segment_cut.SEGMENT_BYTES
    )


def _live_bytes(stored: StoredSegment) -> int:
    return int(stored.segment.batch.nbytes * stored.live // max(1, stored.segment.rows))


def _within_a_segment(chosen: Sequence[StoredSegment]) -> list[list[StoredSegment]]:
    """Put segments together that make one of at most the size of a segment: no more than that is held at once."""
    sizes = np.array([_live_bytes(each) for each in chosen], np.int64)
    order = np.argsort(sizes, kind="stable")
    ranges = ranges_within(sizes[order], segment_cut.SEGMENT_BYTES)
    return [[chosen[number] for number in np.sort(order[start:stop])] for start, stop in ranges]


def _live_columns(
    directory: SegmentDirectory, definition: MapDefinition, stored: Sequence[StoredSegment]
) -> list[pa.ChunkedArray]:
    """Read the live rows, strings decoded, so that parts with and without dictionaries can be concatenated."""
    tables: list[pa.Table] = []
    for each in stored:
        directory.verify_once(each)
        batch = each.segment.batch
        if len(each.deleted):
            live = np.ones(batch.num_rows, np.bool_)
            live[each.deleted] = False
            batch = batch.filter(pa.array(live))
        tables.append(pa.table(list(map(decoded, batch.columns)), names=batch.schema.names))
    together = pa.concat_tables(tables)
    return [together.column(column.name) for column in definition.columns]
