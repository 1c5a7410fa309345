"""Changes as a task sees them: Arrow batches in, segments with their marks out."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import RemudaError, SqlError
from remuda.spark.driver.tasks import unseen_folder
from remuda.spark.load.partition_task import as_rows_of
from remuda.spark.load.segment_task import TASK_BYTES
from remuda.storage.load.bulk_load import SEGMENT_ROWS
from remuda.storage.load.change_format import ChangeFormat
from remuda.storage.load.change_segments import build_change_segments
from remuda.storage.segment.segment_file import save_segment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.catalog import MapDefinition
    from remuda.storage.load.change_format import Changes
    from remuda.storage.load.change_segments import ChangeMarks
    from remuda.storage.segment.segment import Segment


@dataclass(frozen=True, slots=True)
class ChangeWork:
    """What a task of `grid.load` makes: segments in the folder of the map, their marks beside the exchange."""

    folder: str
    between: str
    load_id: str
    definition: MapDefinition
    form: ChangeFormat


def write_changes(work: ChangeWork, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a task; yields, one row for each segment, what `pickle` reads back: its description, or an error."""
    try:
        if not Path(work.between).is_dir():
            raise unseen_folder(Path(work.between).parents[1])
        for table in held_tables(batches):
            for segment, marks in change_segments(work.definition, work.form, table):
                segment.id = f"{work.load_id}-{segment.id}"
                marks.save(Path(work.between), segment.id)
                yield _answer(save_segment(Path(work.folder), segment))
    except RemudaError as error:
        yield _answer(error)


class SparkChanges(ChangeFormat):
    """Reads changes as Spark hands them to Python. Their order is that of the moments, whatever the clock shows."""

    __slots__ = ()

    @classmethod
    def of(cls, form: ChangeFormat) -> SparkChanges:
        return cls(form.operation, form.order_by, form.preset)

    def read(self, definition: MapDefinition, table: pa.Table) -> Changes:
        changes = ChangeFormat.read(self, definition, table)
        return replace(changes, table=as_rows_of(definition, changes.table))


def change_segments(
    definition: MapDefinition, form: ChangeFormat, table: pa.Table
) -> Iterator[tuple[Segment, ChangeMarks]]:
    """Yield the segments of changes. The row number of an error counts within a task, which means nothing to the
    user."""
    try:
        yield from build_change_segments(definition, SparkChanges.of(form).read(definition, table))
    except SqlError as error:
        message = re.sub(r", row \d+($|:.*$)", r"\1", error.message, flags=re.DOTALL)
        raise type(error)(error.code, message, suggestion=error.suggestion, sqlstate=error.sqlstate) from error


def held_tables(batches: Iterator[pa.RecordBatch], most_bytes: int = TASK_BYTES) -> Iterator[pa.Table]:
    """Yield the batches of a task as tables of a million rows or so many bytes."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= SEGMENT_ROWS or size >= most_bytes:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def _answer(answer: object) -> pa.RecordBatch:
    return pa.record_batch({"answer": pa.array([pickle.dumps(answer)], pa.binary())})
