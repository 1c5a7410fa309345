"""`spark.readStream.format("remuda")`: the versions of a map as a stream. An offset is the number of a version.

A micro-batch is the difference of two versions, so that a key comes at most once in it. The process in which Spark
plans the stream keeps a lease on the files of the version that it has delivered, and the description of that version: a
stream that runs misses nothing, however soon the writer gives versions up. One that is started again reads the versions
of its checkpoint from the folder, where they stay for the retention of the tables.

With the trigger `availableNow` the stream fixes its end when it is started. Spark runs a single batch of a source that
cannot do so, and after a failure that is the batch that was begun before: what was committed since is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from remuda.dataclass import dataclass
from remuda.errors import ErrorCode, SqlError, state_error
from remuda.spark.source.change_read import feed_columns, plan_shares, since_option
from remuda.spark.source.partition_scan import arrow_schema
from remuda.spark.source.pinned_read import open_reader
from remuda.spark.source.planned_map import find_map
from remuda.storage import open_snapshot
from remuda.storage.folder.reader_lease import take_lease
from remuda.storage.version_changes import VersionChanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition

    from remuda.storage import SnapshotDescription, Store

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.1 has no such class: its streams run a single batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


_VERSION = "version"
Offset = dict[str, int]


@dataclass(frozen=True, slots=True)
class _Delivered:
    """A version of the map that this process has seen."""

    committed: int
    snapshot: SnapshotDescription | None


class ChangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in the process that plans the stream, and travels to tasks, which use `read` alone."""

    def __init__(self, options: Mapping[str, str], tasks: int) -> None:
        self._options = dict(options)
        self._tasks = tasks
        self._store: Store | None = None
        self._lease: Any = None
        self._seen: dict[int, _Delivered] = {}
        self._last: Offset | None = None
        """Where the stream ends; None if it goes on for ever."""

    def initialOffset(self) -> Offset:
        """Return where a new stream begins: before the first row, unless `since` says otherwise."""
        return {_VERSION: since_option(self._options, self._open())}

    def prepareForTriggerAvailableNow(self) -> None:
        """End the stream with the version that is the newest now; Spark calls this before the first batch."""
        self._last = self.latestOffset()

    def latestOffset(self, *_: Any) -> Offset:
        """Return the newest version, also where it has changed other maps alone: it is kept the longest.

        Spark 4.1 calls this without arguments, later ones with the start and a limit.
        """
        if self._last is not None:
            return self._last
        store = self._open()
        newest = store.history.newest()
        if newest not in self._seen:
            store.refresh()
            self._see(newest)
        return {_VERSION: newest}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Compare two versions; `start` is what the last batch ended with."""
        first, last = start[_VERSION], end[_VERSION]
        if first == last:
            return []
        before, after = (self._see(number) for number in (first, last))
        if after.snapshot is None:
            return []
        changes = VersionChanges(
            None if before.snapshot is None else open_snapshot(before.snapshot),
            open_snapshot(after.snapshot),
            last,
            after.committed,
        )
        definition = changes.after.definition
        schema = arrow_schema(feed_columns(definition, self._options))
        return plan_shares(changes, before.snapshot, schema, self._tasks)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        yield from partition.read()

    def commit(self, end: Offset) -> None:
        """Let go of what is older than the versions that the next batch needs."""
        delivered = end[_VERSION]
        self._seen = {number: each for number, each in self._seen.items() if number >= delivered}
        if self._lease is not None:
            self._lease.narrow(delivered)

    def stop(self) -> None:
        if self._store is not None:
            self._store.close()
        if self._lease is not None:
            self._lease.release()
        self._store = self._lease = None
        self._seen = {}

    def _open(self) -> Store:
        """Open the folder, whose files stay from now on."""
        if self._store is None:
            self._store = store = open_reader(self._options)
            self._lease = None if store.path is None else take_lease(store.path)
        return self._store

    def _see(self, number: int) -> _Delivered:
        """Return a version as this process has seen it first; it may be gone from the folder since."""
        found = self._seen.get(number)
        if found is None:
            found = self._seen[number] = self._read(number)
        return found

    def _read(self, number: int) -> _Delivered:
        if number == 0:
            return _Delivered(0, None)
        store = self._open()
        definition = find_map(store, self._options["map"])
        try:
            past = store.history.past(definition, number)
        except SqlError as error:
            if error.code is not ErrorCode.OBJECT_NOT_FOUND:
                raise
            raise state_error(
                f"the changes of {definition.name} after version {number} are not known any more: {error.message}",
                suggestion="Begin again with a new checkpoint. CREATE TABLE ... WITH (retention = '7 days') keeps "
                "versions longer.",
            ) from error
        if past is None:
            return _Delivered(0, None)
        (snapshot,) = store.snapshot([past])
        return _Delivered(store.history.committed(number), snapshot.describe())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_store": None, "_lease": None, "_seen": {}}
