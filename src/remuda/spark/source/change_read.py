"""The changes of a map between two versions, as tasks read them: each compares some partitions.

With the option `changes` = delta a row has the columns of Delta's change data feed. Without it only rows that are new
are delivered, and a version that updates or deletes rows is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from remuda.dataclass import dataclass
from remuda.errors import not_supported, option_error
from remuda.expr import Column
from remuda.spark.driver.tasks import freeze_garbage
from remuda.spark.source.partition_scan import arrow_schema, shares_of
from remuda.spark.source.pinned_read import open_reader
from remuda.spark.source.planned_map import KEPT_SECONDS, find_map
from remuda.spark.source.source_read import read_columns
from remuda.storage import open_snapshot
from remuda.storage.version_changes import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    INSERT,
    VersionChanges,
    refuse_change_names,
)
from remuda.types import BIGINT, TIMESTAMP_TZ, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from remuda.catalog import MapDefinition
    from remuda.storage import SnapshotDescription, Store

DELTA = "delta"
NEWEST = "newest"
_ROWS_A_TASK = 100_000


def reads_changes(options: Mapping[str, str]) -> bool:
    """Tell whether the change feed is asked for; the only form is that of Delta."""
    form = options.get("changes")
    if form not in {None, DELTA}:
        raise option_error(f"the changes of a map are read as {DELTA}, not as {form!r}")
    return form is not None


def feed_columns(definition: MapDefinition, options: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the columns of the map that are read and, with changes, those of the feed."""
    columns = read_columns(definition, options.get("columns"))
    if not reads_changes(options):
        return columns
    refuse_change_names(definition)
    types = ((CHANGE_TYPE, VARCHAR), (COMMIT_VERSION, BIGINT), (COMMIT_TIMESTAMP, TIMESTAMP_TZ))
    return (*columns, *(Column(len(columns) + at, name, each, False) for at, (name, each) in enumerate(types)))


@dataclass(frozen=True, slots=True)
class ChangeShare(InputPartition):
    """What one task reads. It pickles."""

    before: SnapshotDescription | None
    after: SnapshotDescription
    version: int
    committed: int
    schema: pa.Schema
    partitions: np.ndarray

    def read(self) -> Iterator[pa.RecordBatch]:
        """Compare the partitions of both versions. Runs in a task."""
        before = None if self.before is None else open_snapshot(self.before)
        changes = VersionChanges(before, open_snapshot(self.after), self.version, self.committed)
        if CHANGE_TYPE in self.schema.names:
            yield from changes.read_feed(self.schema, self.partitions)
        else:
            yield from _new_rows(changes, self.schema, self.partitions)
        freeze_garbage()


def _new_rows(changes: VersionChanges, schema: pa.Schema, partitions: np.ndarray) -> Iterator[pa.RecordBatch]:
    for batch in changes.read(schema.names, partitions):
        if batch.column(len(schema))[0].as_py() != INSERT:
            raise not_supported(
                f"rows of {changes.after.definition.name} were updated or deleted up to version {changes.version}",
                suggestion='option("changes", "delta") delivers them, with what happened to each.',
            )
        arrays = [batch.column(number).cast(field.type) for number, field in enumerate(schema)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def plan_shares(
    changes: VersionChanges, before: SnapshotDescription | None, schema: pa.Schema, tasks: int
) -> list[InputPartition]:
    """Cut the comparison of two versions into as many tasks as its rows are worth."""
    if not changes.most_rows:
        return []
    count = min(tasks, 1 + changes.most_rows // _ROWS_A_TASK)
    after = changes.after.describe()
    return [
        ChangeShare(before, after, changes.version, changes.committed, schema, share)
        for share in shares_of(changes.after.definition, count)
    ]


def since_option(options: Mapping[str, str], store: Store, default: str = "0") -> int:
    """Return the version after which changes are read: a number, 0 for all rows, or the newest."""
    given = options.get("since", default).strip().casefold()
    if given == NEWEST:
        return store.history.newest()
    if not given.isdecimal():
        raise option_error(f'since is the number of a version, 0 or "{NEWEST}", not {given!r}')
    return int(given)


class ChangeReader(DataSourceReader):
    """Reads the changes up to the newest version in one query: the option `changes` of `spark.read`."""

    def __init__(self, options: Mapping[str, str], tasks: int) -> None:
        self._options = dict(options)
        self._tasks = tasks

    def partitions(self) -> list[InputPartition]:
        freeze_garbage()
        store = open_reader(self._options)
        try:
            definition = find_map(store, self._options["map"])
            since = since_option(self._options, store)
            store.keep_files(KEPT_SECONDS, since)
            changes = store.history.changes(definition, since)
            schema = arrow_schema(feed_columns(definition, self._options))
            before = None if changes.before is None else changes.before.describe()
            return plan_shares(changes, before, schema, self._tasks)
        finally:
            store.close()

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        yield from partition.read()
