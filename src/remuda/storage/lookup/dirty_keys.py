"""Which keys may have been written or deleted since the large segments of a map were made, by their hashes.

After a load and some writes a map has a large segment with a few rows deleted, and small ones in front of it. A key
would be looked for in each small one, nearly always in vain, and once found, it would be asked whether its row is
deleted. The table says at once that nothing of the kind can be for nearly all keys:

    key not in the table        it is in the large segment and not deleted, or nowhere
    key in the table            dirty, or its hash begins like that of a dirty one: the long way
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.dataclass import dataclass
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage.segment.segment import Segment
    from remuda.storage.state.map_version import MapVersion

DIRTY_SHARE = 0.125
"""If more keys than this are dirty, the table would grow large and spare little."""

TABLE_BYTES = 16
"""Bytes of the table for each dirty key, at least: of the other keys a sixteenth or less take the long way."""


@dataclass(frozen=True, slots=True)
class DirtyKeys:
    """Tells which keys may have been written or deleted since the large segments were made.

    `table` has a 1 at the high bits, all but the low `shift` ones, of the hash of every dirty key; `settled` are
    the numbers of the large segments, no two of which have a partition in common.
    """

    table: memoryview
    shift: int
    settled: tuple[int, ...]


def dirty_keys(version: MapVersion) -> DirtyKeys | None:
    """Build the dirty-key filter of a version; None where too many keys are dirty, or would have to be fetched."""
    if any(segment.is_remote and not segment.is_whole for segment in version.segments):
        return None
    settled = _disjoint(version.segments)
    dirty: list[np.ndarray] = []
    for number, (segment, deletions) in enumerate(zip(version.segments, version.deletions, strict=True)):
        if number not in settled:
            dirty.append(_key_hashes(segment, None))
        elif deletions.deleted:
            dirty.append(_key_hashes(segment, deletions.positions(0)))
    count, rows = sum(map(len, dirty)), sum(version.segments[number].rows for number in settled)
    if count > DIRTY_SHARE * rows:
        return None
    bits = max(1, (TABLE_BYTES * count).bit_length())
    table = np.zeros(1 << bits, np.uint8)
    for hashes in dirty:
        table[hashes >> np.uint64(64 - bits)] = 1
    return DirtyKeys(memoryview(table), 64 - bits, settled)


def _disjoint(segments: Sequence[Segment]) -> tuple[int, ...]:
    """Return the largest segments, each without a partition of a larger one."""
    chosen: list[int] = []
    for number in sorted(range(len(segments)), key=lambda number: -segments[number].rows):
        first, last = segments[number].first_partition, segments[number].last_partition
        if all(last < segments[other].first_partition or segments[other].last_partition < first for other in chosen):
            chosen.append(number)
    return tuple(sorted(chosen))


def _key_hashes(segment: Segment, positions: np.ndarray | None) -> np.ndarray:
    definition = segment.definition
    numbers = definition.positions(definition.key)
    if positions is None:
        columns = [segment.column(number) for number in numbers]
    else:
        columns = segment.take(definition.key, positions).columns
    return hash_columns(columns, [definition.columns[number].type for number in numbers]).view(np.uint64)
