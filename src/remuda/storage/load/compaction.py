"""Flushes a memtable into segments, and merges loaded segments with those that are there.

A checkpoint makes one small segment of the memtable's live rows and writes what the memtable deleted in older segments
into files of deletions. `group_compaction` keeps the segments few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.expr.cancellation import check_cancelled
from remuda.storage.load.bulk_load import common_keys
from remuda.storage.load.group_compaction import merge_small
from remuda.storage.load.upsert_keys import LAST, order_ranks, twice_in_upsert
from remuda.storage.segment.deletion_vector import marked
from remuda.storage.segment.segment_builder import build_segment, duplicate_key
from remuda.storage.snapshot import MapSnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.load.upsert_keys import OrderBy
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.state.map_version import MapVersion

# Loaded segments beside those that are there: duplicates, missing indexes, and the number of segments.


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
    ties: list[tuple[int, np.ndarray]] = []
    try:
        for each in fresh:
            kept = [_make_way(directory, definition, other, each, mode) for other in kept]
            newest = with_all_indexes(directory, definition, each)
            for number, other in enumerate(loaded):
                loaded[number], newest, tied = _settle(directory, definition, other, newest, mode, order_by)
                ties.append((number, tied))
            loaded.append(newest)
        _refuse_ties(definition, loaded, ties, order_by)
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
) -> tuple[StoredSegment, StoredSegment, np.ndarray]:
    """Delete, of the keys that two segments of one load have in common, the older rows, or refuse the load.

    Rows of the same age stay, and the positions of those in the first segment are returned: a newer row of their key in
    a third segment deletes both.
    """
    mine, theirs = common_keys(one.segment, other.segment)
    gone, other_gone = (marked(each.segment.rows, each.deleted) for each in (one, other))
    alive = ~(gone[mine] | other_gone[theirs])
    mine, theirs = mine[alive], theirs[alive]
    if not len(mine):
        return one, other, mine
    if mode != "upsert":
        raise duplicate_key(definition, one.segment.key_at(int(mine[0])))
    if order_by is None:
        raise twice_in_upsert(definition, one.segment.key_at(int(mine[0])), None)
    if order_by is LAST:
        return _without(directory, one, mine), other, mine[:0]
    ranks = order_ranks(pa.concat_arrays([_values(one, order_by, mine), _values(other, order_by, theirs)]))
    first, second = ranks[: len(mine)], ranks[len(mine) :]
    return (
        _without(directory, one, mine[first < second]),
        _without(directory, other, theirs[second < first]),
        mine[first == second],
    )


def _refuse_ties(
    definition: MapDefinition,
    loaded: Sequence[StoredSegment],
    ties: Sequence[tuple[int, np.ndarray]],
    order_by: OrderBy,
) -> None:
    """Refuse two rows of one key and the same age, where no newer row has deleted them."""
    for number, tied in ties:
        stored = loaded[number]
        left = tied[~marked(stored.segment.rows, stored.deleted)[tied]] if len(tied) else tied
        if len(left):
            raise twice_in_upsert(definition, stored.segment.key_at(int(left[0])), order_by)


def _values(stored: StoredSegment, column: str, positions: np.ndarray) -> pa.Array:
    taken = stored.segment.batch.column(column).take(pa.array(positions))
    return taken.dictionary_decode() if pa.types.is_dictionary(taken.type) else taken


def _without(directory: SegmentDirectory, stored: StoredSegment, positions: np.ndarray) -> StoredSegment:
    if not len(positions):
        return stored
    return directory.with_deleted(stored, np.flatnonzero(marked(stored.segment.rows, stored.deleted, positions)))


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
        source = MapSnapshot(version, length).memtable_source
        assert source is not None, "the memtable has an entry"
        recent = source.read(names, 0, length)
        check_cancelled()
        added = [directory.add(build_segment(version.definition, recent))] if recent.num_rows else []
        kept += added
        check_cancelled()
        flushed = merge_small(directory, version.definition, kept, stored)
        directory.discard(added, flushed, named=False)  # It may be merged already.
        return flushed
    except BaseException:
        directory.discard(kept, stored, named=False)
        raise
