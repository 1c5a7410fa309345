"""Loaded segments beside those that are there: duplicates, missing indexes, and the number of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from remuda.storage.load.bulk_load import common_keys
from remuda.storage.load.compaction import merge_small
from remuda.storage.segment.deletion_vector import DeletionVector
from remuda.storage.segment.segment_builder import duplicate_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment

LoadMode = Literal["append", "replace", "upsert"]


def merge_load(
    directory: SegmentDirectory,
    definition: MapDefinition,
    held: Sequence[StoredSegment],
    fresh: Sequence[StoredSegment],
    mode: LoadMode,
) -> tuple[StoredSegment, ...]:
    """The segments of a map after a load: `held` has what was there, `fresh` what is loaded, each key once in each."""
    kept = [] if mode == "replace" else list(held)
    try:
        for each in fresh:
            kept = [_make_way(directory, definition, other, each, mode) for other in kept]
            kept.append(_with_all_indexes(directory, definition, each))
        return merge_small(directory, definition, [each for each in kept if each.live])
    except BaseException:
        directory.discard(kept, [*held, *fresh])
        raise


def _with_all_indexes(directory: SegmentDirectory, definition: MapDefinition, stored: StoredSegment) -> StoredSegment:
    """An index created while the segments were being built elsewhere is made up for."""
    for index in definition.indexes:
        if index.id not in stored.segment.index_arrays:
            stored = directory.with_index(stored, index)
    return stored


def _make_way(
    directory: SegmentDirectory, definition: MapDefinition, held: StoredSegment, fresh: StoredSegment, mode: LoadMode
) -> StoredSegment:
    """Duplicates between what is there and what is loaded: refused, or deleted from what is there."""
    positions, _ = common_keys(held.segment, fresh.segment)
    hidden = DeletionVector(held.segment.rows, held.deleted)
    alive = [position for position in positions.tolist() if not hidden.is_deleted(position)]
    if not alive:
        return held
    if mode != "upsert":
        raise duplicate_key(definition, held.segment.key_at(alive[0]))
    for position in alive:
        hidden.hide(position, 0)
    return directory.with_deleted(held, hidden.positions(1))
