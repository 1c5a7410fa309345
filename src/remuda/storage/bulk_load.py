"""Whole tables at once: cut into segments of some million rows, each with its own range of partitions."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.storage.arrow_arrays import flat
from remuda.storage.column_hash import hash_columns
from remuda.storage.row_order import stable_order
from remuda.storage.segment import Segment, key_access
from remuda.storage.segment_builder import encoded, finish_segment, key_hashes, key_reader, partition_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition

SEGMENT_ROWS = 1_000_000
"""What is worth a segment of its own, for those who do not know how many rows will come."""

PART_ROWS = 4_000_000
"""Of a load of known size: an index is asked in every segment, so few large ones are better than many."""

MOST_PARTS = 16
"""Beyond so many segments they grow larger instead of more."""


def build_segments(definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[Segment]:
    """The segments of conforming columns in declared order. Duplicate keys are refused: they share a segment."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        arrays = list(pool.map(lambda column: encoded(flat(column)), columns))
    partitions = partition_ids(definition, arrays)
    order = np.argsort(partitions, kind="stable")
    counts = np.bincount(partitions, minlength=definition.partitions)
    offsets = np.concatenate([[0], np.cumsum(counts)])

    def build(first: int, end: int) -> Segment:
        taken = pa.array(order[offsets[first] : offsets[end]].astype(np.uint32))
        inside = np.zeros_like(counts)
        inside[first:end] = counts[first:end]
        return finish_segment(definition, [array.take(taken) for array in arrays], inside, alone=len(parts) == 1)

    parts = _cut(offsets)
    with ThreadPoolExecutor(max(1, min(len(parts), os.cpu_count() or 1))) as pool:
        return list(pool.map(lambda part: build(*part), parts))


def last_of_each_key(definition: MapDefinition, arrays: list[pa.Array]) -> list[pa.Array]:
    """The rows without those whose key comes again further down: what an upsert leaves."""
    hashes = key_hashes(definition, arrays)
    order = stable_order(hashes)
    hashes = hashes[order]
    repeated = np.zeros(len(order), np.bool_)
    repeated[:-1] = hashes[1:] == hashes[:-1]
    repeated[1:] |= repeated[:-1].copy()
    if not bool(repeated.any()):
        return arrays
    key_at = key_reader(definition, arrays)
    last = {key_at(row): row for row in np.sort(order[repeated]).tolist()}
    kept = np.ones(len(order), np.bool_)
    kept[order[repeated]] = False
    kept[list(last.values())] = True
    return [array.filter(pa.array(kept)) for array in arrays]


def common_keys(held: Segment, given: Segment) -> tuple[np.ndarray, np.ndarray]:
    """The positions, in one segment and in the other, of the keys that are in both."""
    if held.last_partition < given.first_partition or given.last_partition < held.first_partition:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    given_hashes, held_hashes = _hashes(given), _hashes(held)
    order = stable_order(given_hashes)
    ordered = given_hashes[order]
    first = np.searchsorted(ordered, held_hashes, side="left")
    end = np.searchsorted(ordered, held_hashes, side="right")
    candidates = np.flatnonzero(end > first)
    held_numbers, held_key = key_access(held)
    given_numbers, given_key = key_access(given)
    if held_numbers is not None and given_numbers is not None and bool(np.all((end - first)[candidates] == 1)):
        partners = order[first[candidates]]
        same = np.asarray(held_numbers)[candidates] == np.asarray(given_numbers)[partners]
        return candidates[same], partners[same]
    pairs = [
        (mine, int(theirs))
        for mine in candidates.tolist()
        for theirs in order[first[mine] : end[mine]]
        if (left := held_key(mine)) == (right := given_key(int(theirs))) or left is right
    ]
    return np.array([mine for mine, _ in pairs], np.int64), np.array([theirs for _, theirs in pairs], np.int64)


def _hashes(segment: Segment) -> np.ndarray:
    definition = segment.definition
    numbers = definition.positions(definition.key)
    columns = [segment.batch.column(number) for number in numbers]
    return hash_columns(columns, [definition.columns[number].type for number in numbers]).view(np.uint64)


def _cut(offsets: np.ndarray) -> list[tuple[int, int]]:
    """Ranges [first, end) of partitions with about equally many rows each."""
    rows, partitions = int(offsets[-1]), len(offsets) - 1
    parts = min(MOST_PARTS, partitions, max(1, round(rows / PART_ROWS)))
    wanted = [rows * part // parts for part in range(1, parts)]
    ends = sorted({int(each) for each in np.searchsorted(offsets, wanted)} | {0, partitions})
    return [(first, end) for first, end in itertools.pairwise(ends) if offsets[end] > offsets[first]]
