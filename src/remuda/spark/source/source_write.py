"""Writing from Spark SQL into maps: tasks write segments, one commit hands all of them to the writer of the folder."""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_remuda.daemon import quiet_forked_process
from remuda.catalog import new_id
from remuda.dataclass import dataclass
from remuda.errors import option_error
from remuda.spark.driver.tasks import unseen_folder
from remuda.spark.load.change_job import row_fields
from remuda.spark.load.change_task import change_segments, held_tables
from remuda.spark.load.matching import match_columns
from remuda.spark.load.partition_task import fitting
from remuda.spark.load.segment_task import TASK_BYTES
from remuda.spark.source.write_target import find_or_define, refuse_missing
from remuda.sql import bind_condition
from remuda.storage.folder.delivery import FolderInbox
from remuda.storage.load.change_format import ChangeFormat, change_format, refuse_generated_key
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.load.conforming import order_column
from remuda.storage.load.load_runs import GatheredLoad
from remuda.storage.state.applied_batches import BatchId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.types import StructType

    from remuda.catalog import MapDefinition
    from remuda.storage import LoadMode, SegmentInfo
    from remuda.storage.remote.remote_delivery import RemoteInbox

MODES = ("append", "upsert", "apply")
RUNS_OF_BUDGET = 4
"""Sorted runs that the batch budget of a task becomes where it is not enough."""
_BLOCK_BITS = 23
"""Of the number of keys in a block: those of a segment and of the batch that made it large enough."""


@dataclass
class WrittenSegments(WriterCommitMessage):
    """What one task has written, and for which delivery: Spark may commit by another copy of the writer."""

    delivery_id: str
    infos: tuple[SegmentInfo, ...]
    stream: str | None = None
    """The streaming query that the task belongs to."""


@dataclass(frozen=True, slots=True)
class Target:
    """The map that is written to, how, and which of its columns the data has."""

    inbox: FolderInbox | RemoteInbox
    definition: MapDefinition
    mode: LoadMode
    names: tuple[str, ...]
    order_by: str | None = None
    creates: bool = False
    """Whether the map is not there yet, and made by the commit."""
    form: ChangeFormat | None = None
    """How the rows tell changes, where they do; then `names` are those of the data."""
    rules: ChangeRules = ChangeRules()
    stream: str | None = None
    """The name that the user gives the stream, if any."""
    cuts: tuple[int, ...] = ()
    """Where the partition groups of the map are cut."""

    @property
    def generates_keys(self) -> bool:
        """Whether it is a map without PRIMARY KEY, and the data does not bring the hidden one."""
        return any(column.hidden and column.name not in self.names for column in self.definition.columns)

    def created(self) -> Target:
        """Create the map without rows where it is absent: a stream has no first batch before it is started."""
        if not self.creates:
            return self
        self.inbox.deliver(f"load{new_id()}", self.definition, [], "append", creates=True)
        return replace(self, creates=False)

    def write(self, delivery_id: str, batches: Iterator[pa.RecordBatch]) -> WrittenSegments:
        """Runs in a task, which holds its batch budget, and sorted runs of what is more on its disk.

        So the segments of a task have partitions of their own, however many rows it has.
        """
        if isinstance(self.inbox, FolderInbox) and not Path(self.inbox.store).is_dir():
            raise unseen_folder(self.inbox.store)
        infos: list[SegmentInfo] = []
        if self.form is not None:
            for given in held_tables(batches):
                changes = change_segments(self.definition, self.form, given)
                infos.extend(self.inbox.save_changes(delivery_id, changes))
        else:
            load = GatheredLoad(
                self.definition,
                Path(tempfile.gettempdir()),
                self.cuts,
                is_upsert=self.mode == "upsert",
                order_by=self.order_by,
                is_share=True,
                budget=TASK_BYTES,
            )
            infos.extend(self.inbox.save(delivery_id, load.segments(self._columns_of(batches))))
        return WrittenSegments(delivery_id, tuple(infos))

    def _columns_of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.Array | pa.ChunkedArray]]:
        """Yield the rows as conforming columns, a part of the budget at a time."""
        for given in held_tables(batches, TASK_BYTES // RUNS_OF_BUDGET):
            table = given.rename_columns(list(self.names))
            if self.generates_keys:
                table = _with_keys(self.definition, table)
            yield fitting(self.definition, table).columns

    def commit(
        self, delivery_id: str, messages: list[WriterCommitMessage | None], batch: BatchId | None = None
    ) -> None:
        quiet_forked_process()
        written = [cast("WrittenSegments", message) for message in messages]
        infos = [info for each in written for info in each.infos]
        delivery_id = written[0].delivery_id if written else delivery_id
        if infos or self.mode == "replace" or self.creates:
            mode: LoadMode = self.mode if self.form is None else "apply"
            rules = self.rules if batch is None else replace(self.rules, batch=batch)
            self.inbox.deliver(
                delivery_id, self.definition, infos, mode, self.order_by, creates=self.creates, rules=rules
            )
        else:
            self.inbox.forget(delivery_id)

    def abort(self, delivery_id: str, messages: list[WriterCommitMessage | None]) -> None:
        """Tasks may still be running, see `expect` and `save` of the inbox. Of a stream's delivery that no message
        names, what they left is removed when it has been quiet for some hours."""
        for each in {delivery_id, *(cast("WrittenSegments", message).delivery_id for message in messages if message)}:
            self.inbox.forget(each)


def find_target(options: Mapping[str, str], schema: StructType, mode: LoadMode, batch: BatchId | None = None) -> Target:
    """Find the map and check the columns before any row is read: Spark itself would not notice a wrong schema."""
    given = {name: options.get(name) for name in ("operation", "orderBy", "changes", "condition")}
    form = change_format(mode, *given.values())
    inbox, definition, cuts = find_or_define(options, schema, form)
    creates = cuts is None
    rows = row_fields(form, None if creates else definition, schema)
    fields = match_columns(definition, rows, generates_keys=True)
    refuse_missing(definition, fields, options)
    if form is not None:
        refuse_generated_key(definition)
        condition = None if given["condition"] is None else bind_condition(given["condition"], definition)
        rules = ChangeRules(form.order_name, condition, batch)
        return Target(inbox, definition, mode, (), form.order_name, creates, form, rules)
    by_field = {field.name: name for name, field in fields.items()}
    names = tuple(by_field[field.name] for field in schema.fields)
    order_by = order_column(definition, given["orderBy"])
    if order_by is not None and mode != "upsert":
        raise option_error(f"orderBy says which row of an upsert wins: mode is {mode}")
    return Target(inbox, definition, mode, names, order_by, creates, rules=ChangeRules(batch=batch), cuts=cuts or ())


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
    """Every micro-batch is one atomic commit, which also says that it has the batch: one that Spark gives again after
    a failure changes nothing. Spark makes several of these for a batch and uses the delivery of one, so it is the
    tasks that make room for it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._delivery = f"load{new_id()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        self._target.inbox.expect(self._delivery)
        written = self._target.write(self._delivery, iterator)
        return WrittenSegments(written.delivery_id, written.infos, _stream_of_task())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        named = self._target.stream
        stream = named or next((cast("WrittenSegments", each).stream for each in messages if each), None)
        self._target.commit(self._delivery, messages, None if stream is None else BatchId(stream, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._target.abort(self._delivery, messages)


def _stream_of_task() -> str | None:
    """Return the id of the streaming query, which stays the same as long as its checkpoint is."""
    task = TaskContext.get()
    return None if task is None else task.getLocalProperty("sql.streaming.queryId")


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
