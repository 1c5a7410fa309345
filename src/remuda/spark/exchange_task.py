"""The first half of a load: rows are brought in order of ranges of partitions and written where the second half runs.

Spark's own shuffle sorts rows one by one, writes them, reads them and turns them into Arrow: three times the work of
cutting Arrow batches with numpy into a file that the next tasks map. It needs a folder that all executors see, and the
store is in one.
"""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa

from remuda.errors import RemudaError, SqlError
from remuda.spark.batch_file import BatchFileWriter, Place
from remuda.storage.conforming import conform
from remuda.storage.segment_builder import partition_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.catalog import MapDefinition

ANSWER_SCHEMA = "answer binary"
MOST_RANGES = 64
"""Contiguous ranges of partitions that rows are cut into; a segment is made of one or more of them."""
HELD_ROWS = 1_000_000
"""Rows that a task holds before it writes them."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What a task has written into one file: for each range that has rows, where they are and how many."""

    path: str
    ranges: dict[int, tuple[Place, int]]

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.ranges.values())


def range_count(definition: MapDefinition) -> int:
    return min(MOST_RANGES, definition.partitions)


def write_ranges(
    folder: str, definition: MapDefinition, batches: Iterator[pa.RecordBatch], *, keyless: bool
) -> Iterator[pa.RecordBatch]:
    """Runs in a task; yields, one row for each file, what `written_rows` reads back.

    Where keys are yet to be generated rows have no partitions either: all of them are range 0 then. A file's name ends
    with the number of its rows, for whoever watches.
    """
    try:
        for table in _tables(definition, batches):
            written = _write_unsorted(folder, table) if keyless else _write_sorted(folder, definition, table)
            yield _answer(written)
    except RemudaError as error:
        yield _answer(error)


def written_rows(raw: bytes) -> WrittenRows:
    """The error that a task met is raised."""
    answer = pickle.loads(raw)
    if isinstance(answer, RemudaError):
        raise answer
    assert isinstance(answer, WrittenRows)
    return answer


def fitting(definition: MapDefinition, table: pa.Table) -> pa.Table:
    """The columns of the map. The row number of an error counts within a task, which means nothing to the user."""
    try:
        columns = conform(definition, table)
    except SqlError as error:
        raise type(error)(error.code, re.sub(r", row \d+$", "", error.message), suggestion=error.suggestion) from error
    return pa.Table.from_arrays(columns, names=[column.name for column in definition.columns])


def _tables(definition: MapDefinition, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    names = {travelling_name(definition, column.name): column.name for column in definition.columns}
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= HELD_ROWS:
            yield _named(held, names)
            held, rows = [], 0
    if rows:
        yield _named(held, names)


def _named(batches: list[pa.RecordBatch], names: dict[str, str]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table.rename_columns([names[name] for name in table.column_names])


def _write_unsorted(folder: str, table: pa.Table) -> WrittenRows:
    with BatchFileWriter(_new_path(folder, table.num_rows)) as file:
        (batch,) = table.combine_chunks().to_batches()
        place = file.append(batch)
    return WrittenRows(str(file.path), {0: (place, table.num_rows)})


def _write_sorted(folder: str, definition: MapDefinition, table: pa.Table) -> WrittenRows:
    conforming = fitting(definition, table)
    count = range_count(definition)
    partitions = partition_ids(definition, conforming.columns).astype(np.int64)
    ranges = (partitions * count // definition.partitions).astype(np.uint8)
    order = np.argsort(ranges, kind="stable")
    ends = np.cumsum(np.bincount(ranges, minlength=count)).tolist()
    # Put together first: to take rows out of chunks is ten times the work.
    (ordered,) = conforming.combine_chunks().take(pa.array(order)).combine_chunks().to_batches()
    written: dict[int, tuple[Place, int]] = {}
    with BatchFileWriter(_new_path(folder, table.num_rows)) as file:
        for number, (start, end) in enumerate(pairwise([0, *ends])):
            if end > start:
                written[number] = (file.append(ordered.slice(start, end - start)), end - start)
    return WrittenRows(str(file.path), written)


def _new_path(folder: str, rows: int) -> Path:
    """The name is new each time: a task may run twice, at the same time too."""
    return Path(folder) / f"{uuid4().hex}-{rows}.arrow"


def travelling_name(definition: MapDefinition, name: str) -> str:
    """What a column is called on its way through Spark, which has no way to quote every name that SQL allows."""
    return f"column{definition.position(name)}"


def _answer(answer: WrittenRows | RemudaError) -> pa.RecordBatch:
    return pa.record_batch({"answer": pa.array([pickle.dumps(answer)], pa.binary())})
