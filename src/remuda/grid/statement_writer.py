"""The writer of a statement: few rows go into the memtable as tuples, many become segments batch by batch.

Which of the two it is turns out as the rows come: the plan has the number of rows above which segments cost less
(`Modify.segment_cutover`). Nothing is written before `commit`, and nothing is left of a statement that fails.
"""

from __future__ import annotations

import pickle
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from remuda.catalog import new_id
from remuda.errors import ConstraintError
from remuda.exec.batch import pieces
from remuda.exec.memory import bytes_held
from remuda.expr.cancellation import cancelled_by
from remuda.grid.files.load_source import TABLE_BYTES, TABLE_ROWS
from remuda.grid.write_rows import apply_modification, generated_keys, same_keys
from remuda.plan.logical import Operation
from remuda.plan.traits import Convention
from remuda.storage.folder.delivery import remove_uncommitted
from remuda.storage.load.statement_load import StatementLoad, column_of, delete_rows
from remuda.storage.load.task_target import TaskTarget
from remuda.storage.load.upsert_keys import LAST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Modify
    from remuda.storage import LoadMode, SegmentInfo, Store


class StatementWriter:
    """Writes the rows of one statement, whose fragments may run on several threads; each has a part of its own.

    The thread that makes it, and that calls `commit`, holds the writer lock of the map.
    """

    def __init__(self, store: Store, node: Modify) -> None:
        self.node = node
        self.target = store.map(node.map)
        self.in_memory = store.path is None
        self._cutover = node.segment_cutover if self.target.takes_segments else None
        self._parts: list[RowsOfFragment] = []
        self._rows = 0
        self._load_id = f"load{new_id()}"
        self._has_tasks = node.traits.convention is Convention.SPARK
        self._taken_over: set[str] = set()
        """The segments that tasks have written."""
        self._lock = Lock()
        mode: LoadMode = "append" if node.operation is Operation.INSERT else "upsert"
        self.load = StatementLoad(self.target, mode, None if node.operation is Operation.MERGE else LAST)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.load.discard()
        if self.target.folder is not None and self._has_tasks:
            # Also after success: a task that Spark started twice has left a second set of files.
            remove_uncommitted(self.target.folder, self._load_id, self._taken_over if error is None else ())

    def part(self, context: ExecContext) -> RowsOfFragment:
        part = RowsOfFragment(self, context)
        with self._lock:
            self._parts.append(part)
        return part

    def count(self, batch: RowBatch) -> None:
        """Count rows that have come."""
        with self._lock:
            self._rows += batch.row_count

    @property
    def makes_segments(self) -> bool:
        """Tell whether so many rows have come that they become segments."""
        return bool(self._taken_over) or (self._cutover is not None and self._rows > self._cutover)

    @property
    def task_target(self) -> TaskTarget | None:
        """Return where tasks of other processes write; None where they cannot."""
        folder = self.target.folder
        if folder is None or not self.target.takes_segments:
            return None
        is_upsert = self.node.operation is not Operation.INSERT
        return TaskTarget(str(folder.absolute()), self._load_id, self.target.definition, is_upsert)

    def take_over(self, rows: int, prepared: bytes) -> None:
        infos: list[SegmentInfo] = pickle.loads(prepared)
        self.load.take_over(infos)
        self._taken_over.update(info.id for info in infos)
        with self._lock:
            self._rows += rows

    def commit(self) -> int:
        """Write all rows, or none, and return how many were written or removed."""
        rows, target, deletes = self._rows, self.target, self.node.operation is Operation.DELETE
        for part in self._parts:
            part.prepare()
        if not self.makes_segments:
            tuples = [row for part in self._parts for row in part.tuples()]
            with cancelled_by(None):  # from here on the commit guard decides whether the statement may be given up
                return apply_modification(target, self.node, tuples)
        if deletes:
            # All that is there: the statement has read the rows under the lock that it writes under.
            removed = target.truncate_in_statement() if rows == len(target) else None
            return delete_rows(target, self._keys()) if removed is None else removed
        try:
            self.load.commit()
        except ConstraintError as error:
            raise self.refused(error) from error
        return rows

    def refused(self, error: ConstraintError) -> Exception:
        """Return what the user is told of a row that the map does not take."""
        return same_keys(self.node.map) if self.node.operation is Operation.MERGE else error

    def _keys(self) -> list[pa.Array]:
        names = self.node.map.key
        held = [batch.arrow() for part in self._parts for batch in part.held]
        return [column_of([batch.column(number) for batch in held]).combine_chunks() for number in range(len(names))]


class RowsOfFragment:
    """The rows of one fragment: held until it is known that they become segments, and from then on up to a table of
    them."""

    def __init__(self, writer: StatementWriter, context: ExecContext) -> None:
        self._writer = writer
        self._context = context
        self.held: list[RowBatch] = []
        self._rows = self._held_rows = self._held_bytes = self._kept = 0
        self._deletes = writer.node.operation is Operation.DELETE

    def add(self, batch: RowBatch) -> None:
        self._context.verify()
        size = bytes_held(batch)
        memory = self._context.memory
        splits = self._writer.makes_segments and not self._deletes
        if splits and self.held and memory is not None and not memory.try_hold(self, self._size + size):
            self._make_segments()
        self.held.append(batch)
        self._rows += batch.row_count
        self._held_rows += batch.row_count
        self._held_bytes += size
        self._context.hold(self, "the statement", self._size)
        self._writer.count(batch)
        if splits and (self._held_rows >= TABLE_ROWS or self._held_bytes >= TABLE_BYTES):
            self._make_segments()

    def finish(self) -> int:
        if self._writer.makes_segments and not self._deletes and self.held:
            self._make_segments()
        return self._rows

    def prepared(self) -> bytes | None:
        """Return nothing: the rows are in this process."""
        return None

    def prepare(self) -> None:
        """Prepare what `finish` has left, as the rows of all fragments were few until then, and note the decision."""
        makes_segments = self._writer.makes_segments
        self.finish()
        name = ("deletion vectors" if self._deletes else "segments") if makes_segments else "memtable"
        self._context.activity.decide(f"{name}: {{}} rows", self._rows)

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that are held as tuples."""
        for batch in self.held:
            for piece in pieces(batch, self._context):
                yield from piece.tuples()

    @property
    def _size(self) -> int:
        return self._held_bytes + self._kept

    def _make_segments(self) -> None:
        """Make segments of the rows that are held. In memory they stay part of what the statement holds."""
        writer = self._writer
        columns = _columns(self.held, writer.node)
        self.held, self._held_rows, self._held_bytes = [], 0, 0
        try:
            added = writer.load.add(columns)
        except ConstraintError as error:
            raise writer.refused(error) from error
        if writer.in_memory:
            self._kept += added
        self._context.hold(self, "the statement", self._size)


def _columns(batches: Sequence[RowBatch], node: Modify) -> list[pa.ChunkedArray]:
    """Return the columns of a map from batches that have them in order, with the keys that it makes itself."""
    held = [batch.arrow() for batch in batches]
    columns = []
    for number, column in enumerate(node.map.columns):
        if column.hidden:
            keys = generated_keys(sum(batch.num_rows for batch in held))
            columns.append(pa.chunked_array([pa.array(np.arange(keys.start, keys.stop))]))
        else:
            columns.append(column_of([batch.column(number) for batch in held]))
    return columns
