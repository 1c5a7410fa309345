"""From many keys to their rows at once: hashing, probing and reading in numpy, a few calls for all of the keys.

Worth it for keys that are one column of whole numbers. Of other keys Python has to make a hash each, and what is left
to gain is less than a third: they are looked up one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.storage.index.key_index import table_bits
from remuda.storage.lookup.generated_readers import row_finisher, row_reader, rows_reader
from remuda.storage.lookup.point_lookup import make_search, make_search_in_few, opened_row_reader, opens_few
from remuda.types import INTEGER_RANGES, Kind
from remuda.types.column_hash import hash_whole_numbers
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from remuda.storage.lookup.row_projection import RowProjection
    from remuda.storage.segment.segment import Segment
    from remuda.storage.state.map_version import MapVersion

BatchLookup = Callable[[Sequence[Any]], list[Any]]
"""From keys in stored form to their rows in order; None for each key that is not there."""

WHOLE_NUMBERS = frozenset({*INTEGER_RANGES, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})
"""Kinds of keys that are stored as integers of at most 64 bits, and hashed as they are."""

FEWEST_KEYS = 12
"""Fewer keys are found sooner one by one (measured): some thirty calls of numpy take 30 µs whatever they work on."""


def make_batch_lookup(version: MapVersion, projection: RowProjection) -> BatchLookup:
    """Make the function for one version and one projection of rows; it reads one snapshot, the newest at its call."""
    definition = version.definition
    key_types = [definition.column(name).type for name in definition.key]
    in_memtable = _memtable_reader(version, projection)
    few = opens_few(version)
    in_segments = (
        make_search_in_few(version, lambda _, segment: opened_row_reader(segment, projection))
        if few
        else make_search(version, [row_reader(segment, projection) for segment in version.segments])
    )
    is_floating = any(sql_type.is_floating for sql_type in key_types)

    def find_each(keys: Sequence[Any]) -> list[Any]:
        length = version.memtable.committed
        if is_floating:
            keys = list(map(canonical_key, keys))
        rows = list(map(in_segments, keys))
        in_memtable(keys, rows, length)
        return rows

    if few:
        return find_each
    key_type = key_types[0]
    probes = [probe for segment in version.segments if (probe := _prober(segment)) is not None]
    if len(key_types) > 1 or key_type.kind not in WHOLE_NUMBERS or len(probes) < len(version.segments):
        return find_each
    readers = [rows_reader(segment, projection) for segment in version.segments]
    newest_first = list(zip(probes, version.deletions, readers, strict=True))[::-1]

    def find(keys: Sequence[Any]) -> list[Any]:
        length = version.memtable.committed
        if len(keys) < FEWEST_KEYS:
            return find_each(keys)
        numbers = np.frombuffer(keys if isinstance(keys, array) else array("q", keys), np.int64)
        hashes = hash_whole_numbers(numbers, key_type)
        rows = find_in_segments(numbers, hashes)
        in_memtable(keys, rows, length)
        return rows

    def find_in_segments(numbers: np.ndarray, hashes: np.ndarray) -> list[Any]:
        rows: list[Any] = [None] * len(numbers)
        missing = np.arange(len(numbers))
        for probe, deletions, read in newest_first:
            is_first = len(missing) == len(rows)
            positions = probe(numbers, hashes) if is_first else probe(numbers[missing], hashes[missing])
            if deletions.deleted and deletions.deleted_at is not None:
                positions[deletions.deleted_at[positions] == 0] = -1  # for good; newer ones are in the memtable
            if is_first and positions.min() >= 0:
                return list(read(positions))
            found = positions >= 0
            for ordinal, row in zip(missing[found].tolist(), read(positions[found]), strict=True):
                rows[ordinal] = row
            missing = missing[~found]
            if not len(missing):
                break
        return rows

    return find


def _prober(segment: Segment) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Make the function from keys and their hashes to positions, -1 where a key is not there."""
    column, *others = segment.definition.positions(segment.definition.key)
    numbers = None if others else segment.reader(column).number_array
    if numbers is None:
        return None if segment.rows else _no_positions
    table, shift = segment.key_array, np.uint64(64 - table_bits(segment.rows))

    def probe(keys: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        slots = (hashes >> shift).astype(np.intp)
        positions = table[slots].astype(np.intp) - 1
        # An empty slot gives position -1. The key at 0 is compared in its place, and the answer left out.
        open_ = np.flatnonzero((numbers[np.maximum(positions, 0)] != keys) & (positions >= 0))
        while len(open_):
            slots[open_] += 1
            following = table[slots[open_]].astype(np.intp) - 1
            positions[open_] = following
            open_ = open_[(numbers[np.maximum(following, 0)] != keys[open_]) & (following >= 0)]
        return positions

    return probe


def _no_positions(keys: np.ndarray, _hashes: np.ndarray) -> np.ndarray:
    return np.full(len(keys), -1, np.intp)


def _memtable_reader(version: MapVersion, projection: RowProjection) -> Callable[[Sequence[Any], list[Any], int], None]:
    """Make the function that replaces older rows by those that the memtable has at a length."""
    memtable, finish = version.memtable, row_finisher(version.definition, projection)

    def read(keys: Sequence[Any], rows: list[Any], length: int) -> None:
        newest = memtable.newest
        if not length or newest.keys().isdisjoint(keys):
            return
        for ordinal, key in enumerate(keys):
            entry = memtable.entry_at(key, length) if key in newest else -1
            if entry >= 0:
                row = memtable.rows[entry]
                rows[ordinal] = None if row is None else finish(row)

    return read
