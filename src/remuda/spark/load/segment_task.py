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
from remuda.spark.load.partition_task import WrittenRows, fitting
from remuda.spark.query.batch_file import BatchFile, ByteRange
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.upsert_keys import one_of_each_key
from remuda.storage.segment.segment_builder import compacted, partition_ids
from remuda.storage.segment.segment_file import save_segment
from remuda.types.arrow_arrays import is_dictionary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage import SegmentInfo

TASK_ROWS = 4_000_000
"""Rows of a task where there are many: tasks share the memory of a machine, so their segments are not the largest."""

TASK_BYTES = 512 << 20
"""Or bytes of them: a task holds its rows about three times while it makes a segment of them."""

MOST_OF_KEYLESS = 16
"""Tasks of a load that gives out keys: each reads all rows."""

LEAST_ROWS = 100_000
"""Fewer rows are not worth a task and a segment of their own."""


@dataclass(frozen=True, slots=True)
class RowsInFile:
    """`rows` rows, from the row `start` on, of a batch in a file."""

    path: str
    byte_range: ByteRange
    start: int
    rows: int
    first_key: int | None = None
    """Where keys are generated: that of the first row; the others count on."""


@dataclass(frozen=True, slots=True)
class SegmentWork:
    """What one task puts together: the rows of the partitions [first, end)."""

    folder: str
    load_id: str
    definition: MapDefinition
    first: int
    end: int
    pieces: tuple[RowsInFile, ...]
    order_by: str | None = None
    """In an upsert: the column that says which of several rows with one key is the newest."""
    is_upsert: bool = False


def build_part(work: SegmentWork) -> Iterator[bytes]:
    """Called in the task by name. Yields what `segment_infos` reads back.

    The name of every file begins with the load's id: whatever becomes of the task, its files can be found and removed.
    """
    tables = [_table(work, piece) for piece in work.pieces]
    rows = pa.concat_tables(_alike(tables))
    del tables
    columns = one_of_each_key(work.definition, rows.columns, work.order_by) if work.is_upsert else rows.columns
    for segment in build_segments(work.definition, columns):
        segment.id = f"{work.load_id}-{segment.id}"
        yield pickle.dumps(save_segment(Path(work.folder), segment))


def _table(work: SegmentWork, piece: RowsInFile) -> pa.Table:
    batch = BatchFile(piece.path).read(piece.byte_range).slice(piece.start, piece.rows)
    table = pa.Table.from_arrays([_with_own_values(array) for array in batch.columns], names=batch.schema.names)
    if piece.first_key is None:
        return table
    (hidden,) = (column for column in work.definition.columns if column.hidden)
    keys = pa.array(np.arange(piece.first_key, piece.first_key + table.num_rows, dtype=np.int64))
    table = fitting(work.definition, table.append_column(hidden.name, keys))
    partitions = partition_ids(work.definition, table.columns)
    return table.filter(pa.array((partitions >= work.first) & (partitions < work.end)))


def _with_own_values(array: pa.Array) -> pa.Array:
    """A slice has the dictionary of its whole run. Where that is larger, bringing many of them together would be the
    most work of all."""
    return compacted(array) if is_dictionary(array) and len(array.dictionary) > len(array) else array


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """A column that is a dictionary in some tables only, as their rows were more alike, becomes plain in all."""
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return tables
    plain = pa.schema([_plain(field) for field in tables[0].schema])
    return [table.cast(plain) for table in tables]


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def segment_infos(answers: Iterator[bytes]) -> list[SegmentInfo]:
    return [pickle.loads(answer) for answer in answers]


def cut_parts(definition: MapDefinition, written: Sequence[WrittenRows], slots: int) -> list[tuple[int, int]]:
    """Ranges [first, end) of partitions, each the work of one task: about equally many rows or bytes in each.

    As few as are worth having, as an index is asked in every segment, but all slots have something to do.
    """
    counts, sizes = np.zeros(definition.partitions, np.int64), np.zeros(definition.partitions, np.int64)
    for each in written:
        counts += each.counts
        sizes += each.sizes
    parts = part_count(int(counts.sum()), int(sizes.sum()), slots)
    return _cut(counts, sizes if sizes.sum() * TASK_ROWS > counts.sum() * TASK_BYTES else counts, parts)


def part_count(rows: int, size: int, slots: int) -> int:
    """
    >>> [part_count(rows, 50 * rows, slots=2) for rows in (0, 150_000, 2_000_000, 40_000_000, 10**9)]
    [1, 1, 2, 10, 250]
    >>> part_count(2_000_000, 4 << 30, slots=2)
    8
    """
    return max(1, round(rows / TASK_ROWS), -(-size // TASK_BYTES), min(slots, rows // LEAST_ROWS))


def _cut(counts: np.ndarray, weights: np.ndarray, parts: int) -> list[tuple[int, int]]:
    ends = np.cumsum(weights)
    wanted = [int(ends[-1]) * part // parts for part in range(1, parts)]
    cuts = sorted({int(each) + 1 for each in np.searchsorted(ends, wanted)} | {0, len(counts)})
    return [(first, end) for first, end in itertools.pairwise(cuts) if counts[first:end].any()]
