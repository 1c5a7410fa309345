"""The part of a bulk load that runs in Spark's Python workers: rows in, segments with all their indexes out.

Rows arrive in order of their partition ids, so that a task holds one segment's rows at a time however many it gets, and
the segments of one load own disjoint ranges of partitions. The ids that Spark computed decide only where a row travels;
the segment's own are computed from the stored values.
"""

from __future__ import annotations

import pickle
import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import RemudaError, SqlError, data_error
from remuda.storage import SegmentInfo, build_segment
from remuda.storage.bulk_load import SEGMENT_ROWS
from remuda.storage.conforming import conform
from remuda.storage.segment_file import save_segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import MapDefinition

PARTITION_COLUMN = "__partition_id"
ANSWER_SCHEMA = "answer binary"


def write_segments(
    folder: str, load_id: str, definition: MapDefinition, most: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Writes the rows of one task into at most so many segments and yields, one row each, what `answer_of` reads back.

    The name of every file begins with the load's id: whatever becomes of the task, its files can be found and removed.
    """
    try:
        for table in in_segments(batches, segment_sizes(most)):
            yield _answer(_write(Path(folder), load_id, definition, table))
    except RemudaError as error:
        yield _answer(error)


def travelling_name(definition: MapDefinition, name: str) -> str:
    """What a column is called on its way through Spark, which has no way to quote every name that SQL allows."""
    return f"column{definition.position(name)}"


def answer_of(raw: bytes) -> SegmentInfo:
    """A written segment; the error that a task met is raised."""
    answer = pickle.loads(raw)
    if isinstance(answer, RemudaError):
        raise answer
    assert isinstance(answer, SegmentInfo)
    return answer


def segment_sizes(most: int) -> list[int]:
    """How many rows the segments of a task are meant to have, but for the last one, which takes what is left.

    A task cannot know how many rows will come. Each size is twice the one before, so that few rows make segments of the
    usual size and many rows do not make many segments.

    >>> segment_sizes(4)
    [1000000, 2000000, 4000000]
    """
    return [SEGMENT_ROWS << number for number in range(most - 1)]


def in_segments(batches: Iterator[pa.RecordBatch], sizes: Sequence[int]) -> Iterator[pa.Table]:
    """Cuts a stream in order of partition ids into tables of about so many rows each, never inside a partition.

    The partition of the last row may go on in the next batch, so a table ends before it; the rest begins the next one.
    """
    held: list[pa.RecordBatch] = []
    count = 0
    remaining = deque(sizes)
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if not remaining or count < remaining[0]:
            continue
        table = pa.Table.from_batches(held)
        partitions = table.column(PARTITION_COLUMN).to_numpy()
        end = int(np.searchsorted(partitions, partitions[-1]))
        if end:
            remaining.popleft()
            yield table.slice(0, end)
            held = table.slice(end).to_batches()
            count -= end
    if count:
        yield pa.Table.from_batches(held)


def _write(folder: Path, load_id: str, definition: MapDefinition, table: pa.Table) -> SegmentInfo:
    names = {travelling_name(definition, column.name): column.name for column in definition.columns}
    given = table.drop_columns([PARTITION_COLUMN])
    try:
        columns = conform(definition, given.rename_columns([names[name] for name in given.column_names]))
    except SqlError as error:
        # The row number counts within this task's share of the rows, which means nothing to the user.
        raise data_error(re.sub(r", row \d+$", "", error.message), suggestion=error.suggestion) from error
    segment = build_segment(definition, pa.Table.from_arrays(columns, names=list(names.values())))
    segment.id = f"{load_id}-{segment.id}"
    return save_segment(folder, segment)


def _answer(answer: SegmentInfo | RemudaError) -> pa.RecordBatch:
    return pa.record_batch({"answer": pa.array([pickle.dumps(answer)], pa.binary())})
