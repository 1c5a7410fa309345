"""Writing from Spark SQL into maps: tasks write segments, one commit hands all of them to the writer of the folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from remuda.catalog import new_id
from remuda.spark.exchange_task import fitting
from remuda.spark.matching import match_columns
from remuda.spark.source_read import find_map, open_reader
from remuda.storage.bulk_load import SEGMENT_ROWS, build_segments, last_of_each_key
from remuda.storage.delivery import deliver, delivery_folder, forget
from remuda.storage.segment_file import save_segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.types import StructType

    from remuda.catalog import MapDefinition
    from remuda.storage import LoadMode, SegmentInfo

MODES = ("append", "upsert")


@dataclass
class WrittenSegments(WriterCommitMessage):
    """What one task has written, and for which delivery: Spark may commit by another copy of the writer."""

    delivery_id: str
    infos: tuple[SegmentInfo, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """The map that is written to, how, and which of its columns the data has."""

    folder: str
    definition: MapDefinition
    mode: LoadMode
    names: tuple[str, ...]

    def write(self, delivery_id: str, batches: Iterator[pa.RecordBatch]) -> WrittenSegments:
        """Runs in a task, which holds the rows of about one segment at a time."""
        folder = delivery_folder(Path(self.folder), delivery_id)
        infos: list[SegmentInfo] = []
        for table in _tables(batches):
            columns = fitting(self.definition, table.rename_columns(list(self.names))).columns
            if self.mode == "upsert":
                columns = last_of_each_key(self.definition, columns)
            infos.extend(save_segment(folder, segment) for segment in build_segments(self.definition, columns))
        return WrittenSegments(delivery_id, tuple(infos))

    def commit(self, delivery_id: str, messages: list[WriterCommitMessage | None]) -> None:
        written = [cast("WrittenSegments", message) for message in messages]
        infos = [info for each in written for info in each.infos]
        delivery_id = written[0].delivery_id if written else delivery_id
        if infos or self.mode == "replace":
            deliver(Path(self.folder), delivery_id, self.definition, infos, self.mode)
        else:
            forget(Path(self.folder), delivery_id)

    def abort(self, delivery_id: str, messages: list[WriterCommitMessage | None]) -> None:
        """What a task left that ended without a message is removed with the rest, or else when it is a day old."""
        for each in {delivery_id, *(cast("WrittenSegments", message).delivery_id for message in messages if message)}:
            forget(Path(self.folder), each)


def find_target(options: Mapping[str, str], schema: StructType, mode: LoadMode) -> Target:
    """The map and the columns, checked before any row is read: Spark itself would not notice a wrong schema."""
    store = open_reader(options["path"])
    try:
        definition = find_map(store, options["map"])
    finally:
        store.close()
    fields = match_columns(definition, schema)
    by_field = {field.name: name for name, field in fields.items()}
    names = tuple(by_field[field.name] for field in schema.fields)
    return Target(str(Path(options["path"]).expanduser().absolute()), definition, mode, names)


class MapWriter(DataSourceArrowWriter):
    def __init__(self, target: Target) -> None:
        self._target = target
        self._delivery = f"load{new_id()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._target.write(self._delivery, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._target.commit(self._delivery, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._target.abort(self._delivery, messages)


class MapStreamWriter(DataSourceStreamArrowWriter):
    """Every micro-batch is one atomic commit. Rows replace those with their keys, so a batch that Spark gives again
    after a failure changes nothing."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._delivery = f"load{new_id()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._target.write(self._delivery, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._target.commit(self._delivery, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._target.abort(self._delivery, messages)


def _tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= SEGMENT_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)
