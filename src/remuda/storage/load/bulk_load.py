"""Whole tables at once: cut into segments, each with its own range of partitions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.storage.index.key_index import table_bits
from remuda.storage.load.segment_cut import cut_rows, row_bytes
from remuda.storage.segment.row_memory import release_unused, rows_of
from remuda.storage.segment.row_order import BLOCK
from remuda.storage.segment.segment import Segment, key_access
from remuda.storage.segment.segment_builder import (
    BUILDERS,
    encoded,
    finish_segment,
    partition_ids,
)
from remuda.types.arrow_arrays import fixed_values, flat, is_dictionary
from remuda.types.arrow_texts import fits_one_array
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import MapDefinition

SEGMENT_ROWS = 1_000_000
"""What is worth a segment of its own, for those who do not know how many rows will come."""


def build_segments(
    definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray], cuts: Sequence[int] = ()
) -> Iterator[Segment]:
    """Yield the segments of conforming columns in declared order, one after the other, cut before these partitions.

    Duplicate keys are refused when the segment is built that they share. Only one segment at a time is unfinished, so
    that a load needs, beside what it is given and what it leaves, a fraction of either.
    """
    with ThreadPoolExecutor(BUILDERS) as pool:
        given: dict[int, pa.Array | pa.ChunkedArray] = dict(enumerate(pool.map(encoded, columns)))
    order, counts = _partition_order(definition, list(given.values()))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    parts = cut_rows(order, offsets, row_bytes(list(given.values())), cuts)
    # Where not all texts fit one array, the values of each segment are encoded by themselves.
    unencoded = {number for number, column in given.items() if not fits_one_array(column)}
    # Codes are taken first: those of the last part make way for the columns in chunks, which are put together for it.
    sequence = sorted(given, key=lambda number: not is_dictionary(given[number]))
    while parts:
        start, stop = parts.pop(0)
        positions = pa.array(order[start:stop])
        release_unused()
        taken = {}
        for number in sequence:
            rows = rows_of(given[number] if parts else given.pop(number), positions)
            taken[number] = flat(encoded(rows)) if number in unencoded else rows
            del rows
        del positions
        if not parts:
            del order
        arrays = [taken.pop(number) for number in range(len(columns))]
        release_unused()
        yield finish_segment(definition, arrays, np.diff(np.clip(offsets, start, stop)))


def _partition_order(
    definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in order of their partitions, and how many rows each partition has."""
    partitions = partition_ids(definition, columns)
    order = np.argsort(partitions, kind="stable").astype(np.uint32)
    return order, np.bincount(partitions, minlength=definition.partitions)


def common_keys(held: Segment, given: Segment) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions, in one segment and in the other, of the keys that are in both."""
    if held.last_partition < given.first_partition or given.last_partition < held.first_partition:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if held.rows < given.rows:
        theirs, mine = _same_hashes(given, held)
    else:
        mine, theirs = _same_hashes(held, given)
    held_numbers, held_key = key_access(held)
    given_numbers, given_key = key_access(given)
    if held_numbers is not None and given_numbers is not None:
        same = _key_numbers(held)[mine] == _key_numbers(given)[theirs]
    else:
        pairs = zip(mine.tolist(), theirs.tolist(), strict=True)
        # NaN is the one object that does not equal itself.
        equal = [(left := held_key(one)) == (right := given_key(other)) or left is right for one, other in pairs]
        same = np.array(equal, np.bool_)
    return mine[same], theirs[same]


def _same_hashes(larger: Segment, smaller: Segment) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of rows whose keys have the same hash, found in the larger segment's key table, many at a
    time."""
    table, hashes = larger.whole_key_table(), _hashes(larger)
    sought = _hashes(smaller)
    shift = np.uint64(64 - table_bits(larger.rows))
    found: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for start in range(0, len(sought), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(sought)))
        slots = (sought[rows] >> shift).astype(np.int64)
        while len(rows):
            entries = table[slots].astype(np.int64)
            going_on = entries > 0
            rows, slots, positions = rows[going_on], slots[going_on] + 1, entries[going_on] - 1
            same = hashes[positions] == sought[rows]
            found.append((positions[same], rows[same]))
    mine, theirs = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(mine, kind="stable")
    return mine[order], theirs[order]


def _hashes(segment: Segment) -> np.ndarray:
    definition = segment.definition
    numbers = definition.positions(definition.key)
    columns = [segment.column(number) for number in numbers]
    return hash_columns(columns, [definition.columns[number].type for number in numbers]).view(np.uint64)


def _key_numbers(segment: Segment) -> np.ndarray:
    """Return the keys of a segment, which are one column of numbers."""
    (number,) = segment.definition.positions(segment.definition.key)
    return fixed_values(segment.column(number), segment.definition.columns[number].type)
