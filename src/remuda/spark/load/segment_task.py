"""The second half of a load: the rows of a range of partitions in, a segment with all its indexes out.

The segments of one load own disjoint ranges of partitions, each made by one task.
"""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.spark.load.partition_task import bucket_ends, fitting
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.load_runs import together
from remuda.storage.load.segment_cut import is_worth_cutting
from remuda.storage.load.upsert_keys import one_of_each_key
from remuda.storage.segment.group_ranges import ranges_of
from remuda.storage.segment.segment_builder import compacted, partition_ids
from remuda.storage.segment.segment_file import save_segment
from remuda.types.arrow_arrays import is_dictionary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import MapDefinition
    from remuda.spark.load.partition_task import RunFile, WrittenRows
    from remuda.storage import SegmentInfo

TASK_ROWS = 4_000_000
"""Rows of a task where there are many: tasks share the memory of a machine, so their segments are not the largest."""

TASK_BYTES = 256 << 20
"""Or bytes of them, the batch budget of a task: it takes about twice as much while it makes a segment of them."""

MOST_OF_KEYLESS = 16
"""Tasks of a load that gives out keys: each reads all rows."""

LEAST_ROWS = 100_000
"""Fewer rows are not worth a task and a segment of their own."""


@dataclass(frozen=True, slots=True)
class SegmentLoad:
    """What all tasks of a load share: the sorted runs, and what is to be made of them."""

    folder: str
    load_id: str
    definition: MapDefinition
    runs: tuple[RunFile, ...]
    first_keys: tuple[int, ...] | None = None
    """Where keys are generated: that of the first row of each run; the others count on."""
    order_by: str | None = None
    """In an upsert: the column that says which of several rows with one key is the newest."""
    is_upsert: bool = False


def build_part(load: SegmentLoad, part: tuple[int, int]) -> Iterator[bytes]:
    """Makes a segment of the rows of some partitions, from the first to before the end. Called in the task by name.

    Yields what `segment_infos` reads back. The name of every file begins with the load's id: whatever becomes of the
    task, its files can be found and removed.
    """
    columns = together([columns_of(load, number, part) for number in range(len(load.runs))])
    if load.is_upsert:
        columns = one_of_each_key(load.definition, columns, load.order_by)
    for segment in build_segments(load.definition, columns):
        segment.id = f"{load.load_id}-{segment.id}"
        yield pickle.dumps(save_segment(Path(load.folder), segment))


def columns_of(load: SegmentLoad, number: int, part: tuple[int, int]) -> list[pa.Array | pa.ChunkedArray]:
    """Return the rows that one run has for a part, in the map's columns."""
    batch = load.runs[number].read(*part)
    if load.first_keys is None:
        return [_with_own_values(array) for array in batch.columns]
    (hidden,) = (column for column in load.definition.columns if column.hidden)
    first = load.first_keys[number]
    keys = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
    table = fitting(load.definition, pa.Table.from_batches([batch]).append_column(hidden.name, keys))
    partitions = partition_ids(load.definition, table.columns)
    inside = pa.array((partitions >= part[0]) & (partitions < part[1]))
    return table.filter(inside).columns  # type: ignore[no-any-return]


def _with_own_values(array: pa.Array) -> pa.Array:
    """Give a slice a dictionary of its own values.

    A slice has the dictionary of its whole run. Where that is larger, merging many of them would be the most work of
    all.
    """
    return compacted(array) if is_dictionary(array) and len(array.dictionary) > len(array) else array


def segment_infos(answers: Iterator[bytes]) -> list[SegmentInfo]:
    return [pickle.loads(answer) for answer in answers]


def cut_parts(
    definition: MapDefinition, written: Sequence[WrittenRows], slots: int, cuts: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Ranges [first, end) of partitions, each the work of one task: about equally many rows or bytes in each.

    As few as are worth having, as an index is asked in every segment, but all slots have something to do. Where it is
    worth it they also end at `cuts`, where the groups of the map are cut: then no segment has rows of two groups.
    """
    if not written:
        return []
    counts = np.vstack([each.counts for each in written]).sum(axis=0, dtype=np.int64)
    sizes = np.vstack([each.sizes for each in written]).sum(axis=0, dtype=np.float64)
    rows, size = int(counts.sum()), int(sizes.sum())
    parts = part_count(rows, size, slots)
    weights = sizes if size * TASK_ROWS > rows * TASK_BYTES else counts
    groups = ranges_of(cuts if is_worth_cutting(size, cuts) else (), definition.partitions)
    return _cut(weights, bucket_ends(definition.partitions), groups, parts)


def part_count(rows: int, size: int, slots: int) -> int:
    """Return how many parts a load is cut into.

    >>> [part_count(rows, 50 * rows, slots=2) for rows in (0, 150_000, 2_000_000, 40_000_000, 10**9)]
    [1, 1, 2, 10, 250]
    >>> part_count(2_000_000, 4 << 30, slots=2)
    16
    """
    return max(1, round(rows / TASK_ROWS), -(-size // TASK_BYTES), min(slots, rows // LEAST_ROWS))


def _cut(weights: np.ndarray, ends: np.ndarray, groups: Sequence[tuple[int, int]], parts: int) -> list[tuple[int, int]]:
    """Return ranges within the groups, about so many in all, with about equal weights.

    Within a bucket of partitions, which ends at one of `ends`, all are taken to have the same weight.

    >>> ends = np.arange(1, 11)
    >>> _cut(np.ones(10), ends, [(0, 10)], 3)
    [(0, 4), (4, 7), (7, 10)]
    >>> _cut(np.ones(10), ends, [(0, 3), (3, 10)], 3)
    [(0, 3), (3, 7), (7, 10)]
    """
    bounds, before = np.concatenate([[0], ends]), np.concatenate([[0.0], np.cumsum(weights)])
    found: list[tuple[int, int]] = []
    for group in groups:
        start, stop = np.interp(group, bounds, before)
        pieces = max(1, round(parts * (stop - start) / before[-1]))
        inner = np.interp(np.linspace(start, stop, pieces + 1)[1:-1], before, bounds)
        cuts = sorted({*group, *np.ceil(inner).astype(int).tolist()})
        found += [each for each in itertools.pairwise(cuts) if np.ptp(np.interp(each, bounds, before)) > 0]
    return found
