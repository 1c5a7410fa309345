"""Loaded segments beside those that are there: duplicates, missing indexes, and the number of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from remuda.storage.load.bulk_load import common_keys
from remuda.storage.load.compaction import merge_small
from remuda.storage.segment.deletion_vector import HiddenRows
from remuda.storage.segment.segment_builder import duplicate_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.segment_directory import SegmentShelf, ShelvedSegment

LoadMode = Literal["append", "replace", "upsert"]


def merge_load(
    shelf: SegmentShelf,
    definition: MapDefinition,
    held: Sequence[ShelvedSegment],
    fresh: Sequence[ShelvedSegment],
    mode: LoadMode,
) -> tuple[ShelvedSegment, ...]:
    """The segments of a map after a load: `held` has what was there, `fresh` what is loaded, each key once in each."""
    kept = [] if mode == "replace" else list(held)
    try:
        for each in fresh:
            kept = [_make_way(shelf, definition, other, each, mode) for other in kept]
            kept.append(_with_all_indexes(shelf, definition, each))
        return merge_small(shelf, definition, [each for each in kept if each.live])
    except BaseException:
        shelf.discard(kept, [*held, *fresh])
        raise


def _with_all_indexes(shelf: SegmentShelf, definition: MapDefinition, shelved: ShelvedSegment) -> ShelvedSegment:
    """An index created while the segments were being built elsewhere is made up for."""
    for index in definition.indexes:
        if index.id not in shelved.segment.index_arrays:
            shelved = shelf.with_index(shelved, index)
    return shelved


def _make_way(
    shelf: SegmentShelf, definition: MapDefinition, held: ShelvedSegment, fresh: ShelvedSegment, mode: LoadMode
) -> ShelvedSegment:
    """Duplicates between what is there and what is loaded: refused, or deleted from what is there."""
    positions, _ = common_keys(held.segment, fresh.segment)
    hidden = HiddenRows(held.segment.rows, held.deleted)
    alive = [position for position in positions.tolist() if not hidden.is_deleted(position)]
    if not alive:
        return held
    if mode != "upsert":
        raise duplicate_key(definition, held.segment.key_at(alive[0]))
    for position in alive:
        hidden.hide(position, 0)
    return shelf.with_deleted(held, hidden.positions(1))
