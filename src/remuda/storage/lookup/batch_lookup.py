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
from remuda.storage.lookup.point_lookup import make_search
from remuda.types import INTEGER_RANGES, Kind
from remuda.types.column_hash import hash_whole_numbers
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from remuda.storage.lookup.row_projection import RowProjection
    from remuda.storage.map_version import MapVersion
    from remuda.storage.segment.segment import Segment

BatchFinder = Callable[[Sequence[Any]], list[Any]]
"""From keys in stored form to their rows in order; None for each key that is not there."""

WHOLE_NUMBERS = frozenset({*INTEGER_RANGES, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})
"""Kinds of keys that are stored as integers of at most 64 bits, and hashed as they are."""

FEWEST_KEYS = 12
"""Fewer keys are found sooner one by one (measured): some thirty calls of numpy take 30 µs whatever they work on."""


def make_batch_finder(version: MapVersion, form: RowProjection) -> BatchFinder:
    """Make the function for one version and one form of rows; it reads one snapshot, the newest at its call."""
    definition = version.definition
    key_types = [definition.column(name).type for name in definition.key]
    in_log = _log_reader(version, form)
    in_segments = make_search(version, [row_reader(segment, form) for segment in version.segments])
    is_floating = any(sql_type.is_floating for sql_type in key_types)

    def find_each(keys: Sequence[Any]) -> list[Any]:
        length = version.log.committed
        if is_floating:
            keys = list(map(canonical_key, keys))
        rows = list(map(in_segments, keys))
        in_log(keys, rows, length)
        return rows

    key_type = key_types[0]
    probes = [probe for segment in version.segments if (probe := _prober(segment)) is not None]
    if len(key_types) > 1 or key_type.kind not in WHOLE_NUMBERS or len(probes) < len(version.segments):
        return find_each
    readers = [rows_reader(segment, form) for segment in version.segments]
    newest_first = list(zip(probes, version.hidden, readers, strict=True))[::-1]

    def find(keys: Sequence[Any]) -> list[Any]:
        length = version.log.committed
        if len(keys) < FEWEST_KEYS:
            return find_each(keys)
        numbers = np.frombuffer(keys if isinstance(keys, array) else array("q", keys), np.int64)
        hashes = hash_whole_numbers(numbers, key_type)
        rows = find_in_segments(numbers, hashes)
        in_log(keys, rows, length)
        return rows

    def find_in_segments(numbers: np.ndarray, hashes: np.ndarray) -> list[Any]:
        rows: list[Any] = [None] * len(numbers)
        missing = np.arange(len(numbers))
        for probe, hidden, read in newest_first:
            is_first = len(missing) == len(rows)
            positions = probe(numbers, hashes) if is_first else probe(numbers[missing], hashes[missing])
            if hidden.deleted and hidden.marks is not None:
                positions[hidden.marks[positions] == 0] = -1
            if is_first and positions.min() >= 0:
                return list(read(positions))
            found = positions >= 0
            for place, row in zip(missing[found].tolist(), read(positions[found]), strict=True):
                rows[place] = row
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


def _log_reader(version: MapVersion, form: RowProjection) -> Callable[[Sequence[Any], list[Any], int], None]:
    """Make the function that puts the rows of keys which the log has at a length in the place of older ones."""
    log, finish = version.log, row_finisher(version.definition, form)

    def read(keys: Sequence[Any], rows: list[Any], length: int) -> None:
        newest = log.newest
        if not length or newest.keys().isdisjoint(keys):
            return
        for place, key in enumerate(keys):
            entry = log.entry_at(key, length) if key in newest else -1
            if entry >= 0:
                row = log.rows[entry]
                rows[place] = None if row is None else finish(row)

    return read
