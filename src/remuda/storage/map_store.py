"""A map: lookups, snapshots, writes, and changes of its structure."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.errors import StorageError
from remuda.storage.commit.commit_retry import RootTakenError
from remuda.storage.encodable import naming_columns, unencodable
from remuda.storage.folder.disk_errors import from_source, may_pass, reports_disk_errors
from remuda.storage.folder.verification import verify_segments
from remuda.storage.load.change_load import load_changes, take_over_changes
from remuda.storage.load.group_compaction import rewritten
from remuda.storage.load.map_load import load_table, load_tables, optimize_map, take_over_segments
from remuda.storage.lookup.arrow_lookup import lookup_by_index, lookup_by_key
from remuda.storage.lookup.row_projection import row_projection
from remuda.storage.map_statistics import StatisticsKeeper
from remuda.storage.row_check import RowCheck
from remuda.storage.segment.checksum import no_pause
from remuda.storage.segment.segment_directory import is_verified
from remuda.storage.segment.stored_groups import read_segments, readable_segments
from remuda.storage.snapshot import MapSnapshot
from remuda.storage.state.map_availability import MapAvailability
from remuda.storage.state.map_flush import MapFlush
from remuda.storage.state.map_state import MapState
from remuda.storage.state.map_version import MapVersion, erase_keys, insert_row, insert_rows, put_rows
from remuda.storage.wal.records import DELETE, PUT, encode_record
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from threading import RLock

    import pyarrow as pa

    from remuda.catalog import IndexDefinition, MapDefinition, MapStatistics
    from remuda.expr.cancellation import CancellationToken
    from remuda.storage.commit.commit_retry import CommitRetry
    from remuda.storage.commit.recovery import RecoveredMap
    from remuda.storage.load.change_format import ChangeFormat
    from remuda.storage.load.change_load import ChangeRules
    from remuda.storage.load.group_compaction import WriteGroups
    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.load.merge_changes import ChangeCounts
    from remuda.storage.lookup.row_projection import Row, RowProjection
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo
    from remuda.storage.state.applied_batches import BatchId
    from remuda.storage.wal.log import WriteAheadLog

FLUSH_ENTRIES = 65_536
"""A memtable of so many entries is flushed into a segment in the background."""

Answer = TypeVar("Answer")


class MapStore:
    """Reads and writes one map. Made by `Store`.

    `state` is what is in force, `availability` whether it may be used.
    """

    def __init__(
        self,
        definition: MapDefinition,
        directory: SegmentDirectory,
        structure: RLock,
        commit: Callable[[str | None], None],
        request_checkpoint: Callable[[], None],
        retry: CommitRetry,
        wal: WriteAheadLog | None = None,
    ) -> None:
        self.state = MapState(definition, directory, structure, commit, wal)
        self.availability = MapAvailability()
        self._flush = MapFlush(self.state)
        self._request_checkpoint = request_checkpoint
        self.retry = retry
        self._token: CancellationToken | None = None
        self._statistics = StatisticsKeeper()
        self._check = RowCheck(definition)

    @property
    def definition(self) -> MapDefinition:
        return self.state.version.definition

    @property
    def stored(self) -> Sequence[StoredSegment]:
        """Return the segments in force."""
        return self.state.stored

    @property
    def folder(self) -> Path | None:
        """Return the folder of the segments; None in memory."""
        return self.state.directory.folder

    path = folder

    @property
    def memtable_length(self) -> int:
        """Return how many entries were written since the last checkpoint."""
        return self.state.version.memtable.committed

    # Reading

    def lookup(self, key: Any, columns: tuple[int, ...]) -> Row | None:
        """Return these columns of the newest committed row of a key in stored form, None if there is none."""
        found: Row | None = self.find(key, row_projection(columns))
        return found

    def find(self, key: Any, projection: RowProjection) -> Any:
        """Return the newest committed row of a key in this projection, None if there is none. No lock, no snapshot."""
        if not self.availability.readable:
            self.refuse_unreadable()
        version = self.state.version
        try:
            # The common case without a call.
            find = version.point_lookups.get(projection) or version.point_lookup(projection)
            return find(key)
        except UnicodeEncodeError as error:
            raise unencodable(self.definition, ", ".join(self.definition.key), key) from error
        except (IndexError, UnicodeDecodeError):
            # What a damaged file gives before it is found out in the background.
            self.verify()
            raise

    def find_many(self, keys: Sequence[Any], projection: RowProjection) -> list[Any]:
        """Return the rows of many keys at one snapshot, in the order of the keys; None where there is none."""
        if not self.availability.readable:
            self.refuse_unreadable()
        try:
            return self.state.version.batch_lookup(projection)(keys)
        except UnicodeEncodeError as error:
            raise unencodable(self.definition, ", ".join(self.definition.key), error.object) from error
        except (IndexError, UnicodeDecodeError):
            # What a damaged file gives before it is found out in the background.
            self.verify()
            raise

    def find_arrow(
        self, snapshot: MapSnapshot, keys: Sequence[pa.Array], columns: Sequence[str], index: IndexDefinition | None
    ) -> pa.RecordBatch:
        """Return the rows of many keys, or of many values of an index, at a snapshot."""
        try:
            if index is None:
                return lookup_by_key(snapshot, keys, columns)
            return lookup_by_index(snapshot, index, keys, columns)
        except (IndexError, UnicodeDecodeError):
            # What a damaged file gives before it is found out in the background.
            self.verify()
            raise

    def snapshot(self) -> MapSnapshot:
        if not self.availability.readable:
            self.refuse_unreadable()
        state = self.state
        version, newest = state.version, state.snapshot
        length = version.memtable.committed
        if newest.version is version and newest.length == length:
            return newest
        state.snapshot = newest = MapSnapshot(version, length, state.directory)
        return newest

    def __len__(self) -> int:
        return self.state.version.live

    def __bool__(self) -> bool:
        """Be true without rows as well: `known or new` must not replace a map because it is empty."""
        return True

    def statistics(self) -> MapStatistics:
        return self._statistics.of(self.state.version)

    def analyze(self) -> None:
        """Makes the statistics anew, however little has changed."""
        self._statistics = StatisticsKeeper()
        self.statistics()

    # Writing

    def writing(self) -> AbstractContextManager[object]:
        """Keeps other writers out of a statement that reads before it writes; may be entered again by its holder.

        The first lock of all: a thread that has a store's structure lock must not wait for it (`state/map_state.py`).
        """
        return self.state.writer

    @contextmanager
    def writing_under(self, token: CancellationToken) -> Iterator[None]:
        """Do as `writing` for a statement whose token may still end it when it has done all but commit."""
        with self.state.writer:
            self._token = token
            try:
                yield
            finally:
                self._token = None

    def begin_commit(self) -> None:
        """Commit guard of the statement that holds the writer lock."""
        if self._token is not None:
            self._token.begin_commit()

    @property
    def takes_segments(self) -> bool:
        """Tell whether a statement may commit segments by itself.

        A remote store commits for all that was written before as well, and may have to rebase for it, which takes the
        writer locks of all maps.
        """
        return self.state.pending is None

    def check_columns(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Refuse rows that may not be written, as `insert` and `put` do; their columns are in declared order."""
        self._check.check_columns(columns)

    def insert(self, rows: Sequence[Row]) -> int:
        """Adds rows; a key that exists, or comes twice, is refused and nothing is applied."""
        keys = self._check.keys_of(rows)
        return self._depending_on(keys, lambda: self._write(PUT, rows, insert_rows, keys, rows))

    def insert_one(self, row: Row) -> None:
        """Insert one row; refuse a key that exists."""
        key = self._check.key_of(row)
        if self.state.pending is None:
            self._write(PUT, (row,), insert_row, key, row)
        else:
            self._depending_on((key,), lambda: self._write(PUT, (row,), insert_row, key, row))

    def put(self, rows: Sequence[Row]) -> None:
        """Adds rows or puts them in the place of those with their keys; of equal keys the last counts."""
        self._write(PUT, rows, put_rows, self._check.keys_of(rows), rows)

    def put_one(self, row: Row) -> None:
        """Put one row; of an equal key the last counts."""
        self._write(PUT, (row,), MapVersion.write, self._check.key_of(row), row)

    def update(self, rows: Sequence[Row]) -> None:
        """Put rows that a statement has made of those it has found: another writer must not change these meanwhile."""
        keys = self._check.keys_of(rows)
        self._depending_on(keys, lambda: self._write(PUT, rows, put_rows, keys, rows))

    def update_one(self, row: Row) -> None:
        """Update one row as `update` does."""
        if self.state.pending is None:
            self.put_one(row)
        else:
            self.update((row,))

    def _depending_on(self, keys: Iterable[Any], write: Callable[[], Answer]) -> Answer:
        """Write, and note keys whose rows another writer of the store must not change before that is committed."""
        pending = self.state.pending
        if pending is None:
            return write()
        with self.state.writer:
            answer = write()
            pending.checked.update(keys)
        return answer

    def exchange(self, row: Row, columns: tuple[int, ...]) -> Row | None:
        """Put one row and return these columns of the row that it replaces; None if there was none."""
        try:
            return self._write(PUT, (row,), MapVersion.exchange, self._check.key_of(row), row, columns)
        except (IndexError, UnicodeDecodeError):
            # What a damaged file gives before it is found out in the background.
            self.verify()
            raise

    def delete(self, keys: Sequence[Any]) -> int:
        """Removes rows and returns how many there were."""
        canonical = [canonical_key(key) for key in keys]
        with naming_columns(self.definition, self.definition.key):
            return self._depending_on(canonical, lambda: self._write(DELETE, canonical, erase_keys, canonical))

    def _write(self, kind: int, values: Sequence[Any], apply: Callable[..., Answer], *given: Any) -> Answer:
        """Applies a statement in memory, appends its record, makes it visible: in this order, all or nothing.

        `apply` gets the version and what is given for it.
        """
        state, payload = self.state, b""
        wal, lock = state.wal, state.writer_lock
        if wal is not None or self.availability.refusal is not None:
            self.refuse_unwritable()
        if wal is not None:
            payload = encode_record(self.definition.id, kind, values)
        with state.writer, state.latch:
            if not self.availability.readable:
                self.refuse_unreadable()
            version = state.version
            memtable = version.memtable
            try:
                answer = apply(version, *given)
                if self._token is not None:  # `begin_commit` without a call, which every small write would make
                    self._token.begin_commit()
                if wal is not None and lock is not None and len(memtable.keys) > memtable.committed:
                    sequence = wal.append(payload, lock.epoch)
                    state.applied = lock.pending = sequence
                    state.unsafe.add(sequence, memtable.committed, wal.durable_sequence)
            except BaseException:
                version.roll_back()
                raise
            version.commit()
        if memtable.committed >= FLUSH_ENTRIES:
            self._request_checkpoint()
        return answer

    @reports_disk_errors
    def truncate(self) -> int:
        """Removes all rows at once, and gives up a checkpoint of this map that is under way."""
        self._flush.is_needless = True
        return self.retry.run(self._truncate_alone)

    def _truncate_alone(self) -> int:
        with self.state.writer, self.state.structure:
            return self._truncate()

    def truncate_in_statement(self) -> int | None:
        """Removes all rows for a statement that holds the writer lock; None where that cannot be done now."""
        state, flush = self.state, self._flush
        flush.is_needless = True
        try:
            with state.writer, state.structure:
                if not self.availability.readable:
                    self.refuse_unreadable()
                self.begin_commit()
                return self._truncate()
        except RootTakenError:
            # On top of another writer's rows the statement may not remove all: it removes those that it has read.
            return None
        finally:
            flush.is_needless = False

    def _truncate(self) -> int:
        """Install an empty version; both locks are held."""
        self._flush.is_needless = False
        self.refuse_unwritable()
        count, end = len(self), self.memtable_length
        self.state.install((), self.state.applied, (end, end))
        return count

    def restore_rows(self, past: MapStore) -> None:
        """Install the segments of a version of this map, and forget what was written since; both locks are held."""
        state = self.state
        self.refuse_unwritable()
        if past.availability.damage is not None:
            past.refuse_unreadable()
        if state.directory.remote is None:
            restored = state.directory.restore_all(past.stored, self.definition)
        else:  # There are no hard links.
            restored = list(rewritten(state.directory, self.definition, past.stored))
        try:
            end = self.memtable_length
            state.install(restored, state.applied, (end, end))
        except BaseException:
            state.directory.discard(restored, state.stored, named=False)
            raise

    @reports_disk_errors
    def load(
        self,
        table: pa.Table,
        mode: LoadMode = "append",
        order_by: str | None = None,
        batch: BatchId | None = None,
    ) -> int:
        """Adds a whole table, all or nothing; returns how many rows it had."""
        return load_table(self, table, mode, order_by, batch)

    @reports_disk_errors
    def load_changes(
        self,
        tables: Iterable[pa.Table],
        form: ChangeFormat,
        rules: ChangeRules,
        progress: Callable[[int], None] | None = None,
    ) -> ChangeCounts:
        """Applies inserts, updates and deletions by key, all or none."""
        return load_changes(self, from_source(tables), form, rules, progress)

    @reports_disk_errors
    def load_tables(
        self,
        tables: Iterable[pa.Table],
        mode: LoadMode = "append",
        progress: Callable[[int], None] | None = None,
        order_by: str | None = None,
        batch: BatchId | None = None,
    ) -> int:
        """Adds tables one after the other, holding no more than one; all of them or nothing.

        `progress` is told how many rows have been written so far.
        """
        return load_tables(self, from_source(tables), mode, progress, order_by, batch)

    @reports_disk_errors
    def commit_segments(
        self,
        infos: Sequence[SegmentInfo],
        mode: LoadMode = "append",
        delivery: str | None = None,
        order_by: str | None = None,
        batch: BatchId | None = None,
    ) -> int:
        """Takes over segments that others have written into the map's folder, all or none."""
        return take_over_segments(self, infos, mode, delivery, order_by, batch)

    @reports_disk_errors
    def commit_changes(
        self, infos: Sequence[SegmentInfo], marks: Path, rules: ChangeRules, delivery: str | None = None
    ) -> ChangeCounts:
        """Applies changes that others have written into the map's folder, with their marks in the folder `marks`."""
        return take_over_changes(self, infos, marks, rules, delivery)

    @reports_disk_errors
    def optimize(self, write: WriteGroups | None = None) -> None:
        """Merge the segments of each partition group into one, beside writers, in one commit.

        `write` makes the segments elsewhere, as in `optimize_groups`.
        """
        optimize_map(self, write)

    # Structure: called by the store, or under its structure lock

    def attach(self, wal: WriteAheadLog) -> None:
        """Record writes in this WAL from now on: what was replayed before came from it."""
        self.state.attach(wal)

    def restore(self, recovered: RecoveredMap) -> None:
        """Install the state that the files describe, at opening and at a refresh."""
        with self.state.latch:
            self.state.restore(recovered)
            self.availability.restore(recovered.damaged, recovered.stored)

    def checkpoint(self, *, needed: bool = False) -> None:
        """Flush the memtable into segments and commit. Writers go on meanwhile: what they write is carried over.

        One that is `needed` is not given up for a statement that waits to remove all rows.
        """
        with self.state.structure:
            if self._flush.run(needed=needed) or self.has_uncommitted_segments:
                self.state.commit(None)

    def flush(self) -> bool:
        """Do all of a checkpoint but its commit; return False if there was nothing to do."""
        return self._flush.run()

    @property
    def has_uncommitted_segments(self) -> bool:
        """Tell whether a flush is in no manifest yet: its commit has failed."""
        pending = self.state.pending
        return self._flush.is_uncommitted if pending is None else bool(pending.flushed)

    def mark_committed(self) -> None:
        """Take what is in force for committed, and let go of the segments that flushes before have replaced."""
        self.state.mark_committed()
        self._flush.mark_committed()

    def fill_unseen(self, fill: Callable[[MapStore], None]) -> None:
        """Load rows into a map that is not in the catalog yet; they are committed together with it."""
        commit, self.state.commit = self.state.commit, _leave_uncommitted
        fill(self)
        self.state.commit = commit

    def create_index(self, index: IndexDefinition, token: CancellationToken | None = None) -> MapDefinition:
        """Builds the index over all segments while writes go on; the memtable indexes itself when asked."""
        state = self.state
        with state.structure:
            stored = state.directory.with_index_everywhere(state.stored, index)
            if token is not None:
                token.begin_commit()
            return state.change_definition(state.definition.with_index(index), stored)

    def drop_index(self, index: IndexDefinition) -> MapDefinition:
        state = self.state
        with state.structure:
            stored = tuple(state.directory.without_index(each, index) for each in state.stored)
            return state.change_definition(state.definition.without_index(index), stored)

    def destroy(self, *, named: bool = True) -> None:
        """Marks the map as gone; its files go when the last snapshot does. `named` says that a root has named them."""
        self.availability.mark_destroyed()
        with suppress(StorageError):  # A group that cannot be read: the next opening removes what is left.
            self.state.directory.discard(self.state.stored, (), named=named)

    # Availability

    def refuse_unreadable(self) -> None:
        if self.availability.verifies_first:
            with suppress(StorageError):  # Damage is told below; where it could not look, the blocks guard the readers.
                self.verify(again=False)
            self.availability.end_verifying()
        self.availability.refuse_unreadable(self.definition.name)

    def refuse_unwritable(self) -> None:
        availability = self.availability
        if availability.refusal is not None:
            raise StorageError(availability.refusal, self.folder, sqlstate=availability.refusal_state)
        if availability.damage is not None:
            self.refuse_unreadable()
        if self.state.wal is not None:
            self.state.wal.refuse_after_failure()

    def refuse_reads(self, reason: str) -> None:
        """Refuse reads and writes for good, and let go of the files."""
        self.availability.close(reason)
        self.state.release()

    def damages(self) -> list[StorageError]:
        """Verify every segment again, and return what is wrong."""
        with self._using_proven():
            found = [
                damage for stored in readable_segments(self.stored) for damage in self.state.directory.damages(stored)
            ]
        damage = next((each for each in found if not may_pass(each)), None)
        if damage is not None:
            self.availability.mark_damaged(damage)
        return found

    def verify(self, pause: Callable[[], None] = no_pause, *, again: bool = True) -> None:
        """Raises where a byte of any file is not as it was written; from then on so does every read and write.

        `again` is False for those who need only look at what was not verified yet.
        """
        try:
            with self._using_proven():
                verify_segments(self, pause, again=again)
        except StorageError as error:
            if not may_pass(error):
                self.availability.mark_damaged(error)
            raise

    @contextmanager
    def _using_proven(self) -> Iterator[None]:
        """Drop the lookups that verify the blocks they read, if a segment is proven meanwhile."""
        unproven = [each for each in read_segments(self.stored) if not is_verified(each)]
        try:
            yield
        finally:
            if any(map(is_verified, unproven)):
                self.state.version.forget_lookups()


def _leave_uncommitted(_delivery: str | None) -> None:
    pass
