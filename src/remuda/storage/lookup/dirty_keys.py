"""Which keys may have been written or deleted since the large segments of a map were made, by their hashes.

After a load and some writes a map has a large segment with a few rows deleted, and small ones in front of it. A key
would be looked for in each small one, nearly always in vain, and once found, it would be asked whether its row is
deleted. The table says at once that nothing of the kind can be for nearly all keys:

    key not in the table        it is in the large segment and not deleted, or nowhere
    key in the table            touched, or its hash begins like that of a touched one: the long way
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.dataclass import dataclass
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage.map_version import MapVersion
    from remuda.storage.segment.segment import Segment

TOUCHED_SHARE = 0.125
"""If more keys than this are touched, the table would grow large and spare little."""

PLACES = 16
"""Bytes of the table for each touched key, at least: of the other keys a sixteenth or less take the long way."""


@dataclass(frozen=True, slots=True)
class DirtyKeys:
    """`marks` has a 1 at the high bits, all but the low `shift` ones, of the hash of every touched key; `settled` are
    the numbers of the large segments, no two of which have a partition in common."""

    marks: memoryview
    shift: int
    settled: tuple[int, ...]


def dirty_keys(version: MapVersion) -> DirtyKeys | None:
    """None where too many keys are touched."""
    settled = _disjoint(version.segments)
    dirty: list[np.ndarray] = []
    for number, (segment, hidden) in enumerate(zip(version.segments, version.hidden, strict=True)):
        if number not in settled:
            dirty.append(_key_hashes(segment, None))
        elif hidden.deleted:
            dirty.append(_key_hashes(segment, hidden.positions(0)))
    count, rows = sum(map(len, dirty)), sum(version.segments[number].rows for number in settled)
    if count > TOUCHED_SHARE * rows:
        return None
    bits = max(1, (PLACES * count).bit_length())
    marks = np.zeros(1 << bits, np.uint8)
    for hashes in dirty:
        marks[hashes >> np.uint64(64 - bits)] = 1
    return DirtyKeys(memoryview(marks), 64 - bits, settled)


def _disjoint(segments: Sequence[Segment]) -> tuple[int, ...]:
    """The largest segments, each without a partition of a larger one."""
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
