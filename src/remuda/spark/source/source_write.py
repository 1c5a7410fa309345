"""Writing from Spark SQL into maps: tasks write segments, one commit hands all of them to the writer of the folder."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from remuda.catalog import new_id
from remuda.dataclass import dataclass
from remuda.errors import missing_column, option_error
from remuda.spark.driver.tasks import unseen_folder
from remuda.spark.load.matching import match_columns
from remuda.spark.load.partition_task import fitting
from remuda.spark.source.pinned_read import open_reader
from remuda.spark.source.source_read import find_map
from remuda.storage.folder.delivery import FolderInbox
from remuda.storage.load.bulk_load import SEGMENT_ROWS, build_segments
from remuda.storage.load.conforming import order_column
from remuda.storage.load.upsert_keys import one_of_each_key
from remuda.storage.remote.remote_delivery import RemoteInbox

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from pyspark.sql.types import StructType

    from remuda.catalog import MapDefinition
    from remuda.storage import LoadMode, SegmentInfo

MODES = ("append", "upsert")
MISSING = ("error", "null")
_BLOCK_BITS = 23
"""Of the number of keys in a block: those of a segment and of the batch that made it large enough."""


@dataclass
class WrittenSegments(WriterCommitMessage):
    """What one task has written, and for which delivery: Spark may commit by another copy of the writer."""

    delivery_id: str
    infos: tuple[SegmentInfo, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """The map that is written to, how, and which of its columns the data has."""

    inbox: FolderInbox | RemoteInbox
    definition: MapDefinition
    mode: LoadMode
    names: tuple[str, ...]
    order_by: str | None = None

    @property
    def generates_keys(self) -> bool:
        """Whether it is a map without PRIMARY KEY, and the data does not bring the hidden one."""
        return any(column.hidden and column.name not in self.names for column in self.definition.columns)

    def write(self, delivery_id: str, batches: Iterator[pa.RecordBatch]) -> WrittenSegments:
        """Runs in a task, which holds the rows of about one segment at a time."""
        if isinstance(self.inbox, FolderInbox) and not Path(self.inbox.store).is_dir():
            raise unseen_folder(self.inbox.store)
        infos: list[SegmentInfo] = []
        for given in _tables(batches):
            table = given.rename_columns(list(self.names))
            if self.generates_keys:
                table = _with_keys(self.definition, table)
            columns = fitting(self.definition, table).columns
            if self.mode == "upsert":
                columns = one_of_each_key(self.definition, columns, self.order_by)
            infos.extend(self.inbox.save(delivery_id, build_segments(self.definition, columns)))
        return WrittenSegments(delivery_id, tuple(infos))

    def commit(self, delivery_id: str, messages: list[WriterCommitMessage | None]) -> None:
        written = [cast("WrittenSegments", message) for message in messages]
        infos = [info for each in written for info in each.infos]
        delivery_id = written[0].delivery_id if written else delivery_id
        if infos or self.mode == "replace":
            self.inbox.deliver(delivery_id, self.definition, infos, self.mode, self.order_by)
        else:
            self.inbox.forget(delivery_id)

    def abort(self, delivery_id: str, messages: list[WriterCommitMessage | None]) -> None:
        """Tasks may still be running, see `expect` and `save` of the inbox. Of a stream's delivery that no message
        names, what they left is removed when it has been quiet for some hours."""
        for each in {delivery_id, *(cast("WrittenSegments", message).delivery_id for message in messages if message)}:
            self.inbox.forget(each)


def find_target(options: Mapping[str, str], schema: StructType, mode: LoadMode) -> Target:
    """The map and the columns, checked before any row is read: Spark itself would not notice a wrong schema."""
    store = open_reader(options)
    try:
        definition = find_map(store, options["map"])
        inbox = FolderInbox(str(store.path)) if store.remote is None else RemoteInbox(store.remote)
    finally:
        store.close()
    fields = match_columns(definition, schema, generates_keys=True)
    refuse_missing(definition, fields, options)
    by_field = {field.name: name for name, field in fields.items()}
    names = tuple(by_field[field.name] for field in schema.fields)
    order_by = order_column(definition, options.get("orderBy"))
    if order_by is not None and mode != "upsert":
        raise option_error(f"orderBy says which row of an upsert wins: mode is {mode}")
    return Target(inbox, definition, mode, names, order_by)


def refuse_missing(definition: MapDefinition, fields: Container[str], options: Mapping[str, str]) -> None:
    """Raise where the data lacks columns of the map, unless the option `missing` says that they are NULL."""
    given = options.get("missing", "error")
    if given not in MISSING:
        raise option_error(f"missing must be one of {', '.join(MISSING)}, not {given!r}")
    lacking = [each.name for each in definition.columns if not each.hidden and each.name not in fields]
    if lacking and given == "error":
        raise missing_column(
            f"the DataFrame lacks columns of {definition.name}: {', '.join(lacking)}",
            suggestion='option("missing", "null") writes NULL for them.',
        )


class MapWriter(DataSourceArrowWriter):
    def __init__(self, target: Target) -> None:
        self._target = target
        self._delivery = f"load{new_id()}"
        target.inbox.expect(self._delivery)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._target.write(self._delivery, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._target.commit(self._delivery, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._target.abort(self._delivery, messages)


class MapStreamWriter(DataSourceStreamArrowWriter):
    """Every micro-batch is one atomic commit. Rows replace those with their keys, so a batch that Spark gives again
    after a failure changes nothing. Spark makes several of these for a batch and uses the delivery of one, so it is
    the tasks that make room for it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._delivery = f"load{new_id()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        self._target.inbox.expect(self._delivery)
        return self._target.write(self._delivery, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._target.commit(self._delivery, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._target.abort(self._delivery, messages)


def _with_keys(definition: MapDefinition, table: pa.Table) -> pa.Table:
    """Keys for a map without PRIMARY KEY: a block of consecutive ones, drawn at random from below zero.

    Tasks cannot ask each other, and one may run twice, so no task may rely on what another has taken; the keys that the
    grid gives are above zero. With 2^40 blocks the ten thousandth segment of a map meets the block of another once in a
    hundred million writes. That is then a duplicate key, and the write fails as a whole.
    """
    assert table.num_rows <= 1 << _BLOCK_BITS, "a task holds about one segment"
    (hidden,) = (column.name for column in definition.columns if column.hidden)
    first = -(secrets.randbelow(1 << (63 - _BLOCK_BITS)) + 1) << _BLOCK_BITS
    return table.append_column(hidden, pa.array(np.arange(first, first + table.num_rows, dtype=np.int64)))


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
