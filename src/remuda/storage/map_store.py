"""A map: lookups, snapshots, writes, and the installing of versions.

Locks, from the outside in: `structure` (one for the store: checkpoints, loads, index changes), then the writer lock.
Readers take neither. A writer holds its lock for the microseconds of applying a statement in memory, not for the fsync.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.errors import ErrorCode, SqlError, StorageError
from remuda.storage.checksum import no_pause
from remuda.storage.compaction import fold
from remuda.storage.encodable import naming_columns, unencodable
from remuda.storage.map_load import load_table, load_tables, take_over_segments
from remuda.storage.map_statistics import StatisticsKeeper
from remuda.storage.map_version import MapVersion
from remuda.storage.records import DELETE, PUT, encode_record
from remuda.storage.recovery import version_of
from remuda.storage.row_check import RowCheck
from remuda.storage.row_form import row_form
from remuda.storage.snapshot import MapSnapshot
from remuda.storage.statements import erase_keys, insert_row, insert_rows, put_rows, write_again
from remuda.storage.unsafe_records import UnsafeRecords
from remuda.storage.value_order import canonical_key
from remuda.storage.verification import verify_segments
from remuda.storage.writer_lock import WriterLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa

    from remuda.catalog import IndexDefinition, MapDefinition, MapStatistics
    from remuda.storage.load_merge import LoadMode
    from remuda.storage.recovery import RecoveredMap
    from remuda.storage.row_form import Row, RowForm
    from remuda.storage.segment_file import SegmentInfo
    from remuda.storage.segment_shelf import SegmentShelf, ShelvedSegment
    from remuda.storage.write_ahead_log import WriteAheadLog
    from remuda.storage.write_log import WriteLog

FOLD_ENTRIES = 65_536
"""A log of so many entries is folded into a segment in the background."""

Answer = TypeVar("Answer")


class MapStore:
    """Made by `Store`, which gives it its place among the others."""

    def __init__(
        self,
        definition: MapDefinition,
        shelf: SegmentShelf,
        structure: RLock,
        commit_structure: Callable[[str | None], None],
        request_checkpoint: Callable[[], None],
        journal: WriteAheadLog | None = None,
    ) -> None:
        self.destroyed = False
        self.damage: StorageError | None = None
        """What is wrong with the map's files, once it is known."""
        self._readable = True
        self._unreadable_because: str | None = None
        self._confirm: Callable[[], None] | None = None
        self.refusal: str | None = None
        """Why the map cannot be written, where it cannot."""
        self.folded = 0
        """The last write-ahead record whose effect is in the segments."""
        self.applied = 0
        """The last one whose effect is in the segments or the log."""
        self.shelf = shelf
        self.structure = structure
        self._commit_structure = commit_structure
        self._request_checkpoint = request_checkpoint
        self._write_through(journal)
        self._unsafe = UnsafeRecords()
        self.shelved: tuple[ShelvedSegment, ...] = ()
        self._version = MapVersion(definition)
        self._snapshot = MapSnapshot(self._version, 0, shelf)
        self._statistics = StatisticsKeeper()
        self._check = RowCheck(definition)

    # Reading

    @property
    def definition(self) -> MapDefinition:
        return self._version.definition

    def lookup(self, key: Any, columns: tuple[int, ...]) -> Row | None:
        """These columns of the newest committed row of a key in stored form, None if there is none."""
        found: Row | None = self.find(key, row_form(columns))
        return found

    def find(self, key: Any, form: RowForm) -> Any:
        """The newest committed row of a key in this form, None if there is none. No lock, no snapshot."""
        if not self._readable:
            self.refuse_unreadable()
        version = self._version
        try:
            # The common case without a call.
            find = version.finders.get(form) or version.finder(form)
            return find(key)
        except UnicodeEncodeError as error:
            raise unencodable(self.definition, ", ".join(self.definition.key), key) from error
        except (IndexError, UnicodeDecodeError):
            # What a damaged file gives before it is found out in the background.
            self.verify()
            raise

    @property
    def folder(self) -> Path | None:
        """Where the segments are; None in memory."""
        return self.shelf.folder

    def snapshot(self) -> MapSnapshot:
        if not self._readable:
            self.refuse_unreadable()
        version, newest = self._version, self._snapshot
        length = version.log.committed
        if newest.version is version and newest.length == length:
            return newest
        self._snapshot = newest = MapSnapshot(version, length, self.shelf)
        return newest

    def __len__(self) -> int:
        return self._version.live

    def statistics(self) -> MapStatistics:
        return self._statistics.of(self._version)

    def analyze(self) -> None:
        """Makes the statistics anew, however little has changed."""
        self._statistics = StatisticsKeeper()
        self.statistics()

    # Writing

    def writing(self) -> AbstractContextManager[object]:
        """Keeps other writers out of a statement that reads before it writes; may be entered again by its holder.

        Not for `load`, `truncate` and changes of structure, which take their own locks first.
        """
        return self._writer

    @contextmanager
    def writing_if(self, confirm: Callable[[], None]) -> Iterator[None]:
        """The same for a statement that `confirm` may still end, by raising, when it has done all but commit."""
        with self._writer:
            self._confirm = confirm
            try:
                yield
            finally:
                self._confirm = None

    def insert(self, rows: Sequence[Row]) -> int:
        """Adds rows; a key that exists, or comes twice, is refused and nothing is applied."""
        return self._write(PUT, rows, insert_rows, self._check.keys_of(rows), rows)

    def insert_one(self, row: Row) -> None:
        """`insert` of one row."""
        self._write(PUT, (row,), insert_row, self._check.key_of(row), row)

    def put(self, rows: Sequence[Row]) -> None:
        """Adds rows or puts them in the place of those with their keys; of equal keys the last counts."""
        self._write(PUT, rows, put_rows, self._check.keys_of(rows), rows)

    def put_one(self, row: Row) -> None:
        """`put` of one row."""
        self._write(PUT, (row,), MapVersion.write, self._check.key_of(row), row)

    def exchange(self, row: Row, columns: tuple[int, ...]) -> Row | None:
        """`put_one` that gives these columns of the row which was there before; None if there was none."""
        try:
            return self._write(PUT, (row,), MapVersion.exchange, self._check.key_of(row), row, columns)
        except (IndexError, UnicodeDecodeError):
            # What a damaged file gives before it is found out in the background.
            self.verify()
            raise

    def delete(self, keys: Sequence[Any]) -> int:
        """Removes rows and returns how many there were."""
        wanted = [canonical_key(key) for key in keys]
        with naming_columns(self.definition, self.definition.key):
            return self._write(DELETE, wanted, erase_keys, wanted)

    def truncate(self) -> int:
        """Removes all rows at once."""
        with self.structure, self._writer:
            self.refuse_unwritable()
            count = len(self)
            end = self._version.log.committed
            self.install((), self.applied, (end, end))
            return count

    def load(self, table: pa.Table, mode: LoadMode = "append") -> int:
        """Adds a whole table, all or nothing; returns how many rows it had."""
        return load_table(self, table, mode)

    def load_tables(
        self, tables: Iterable[pa.Table], mode: LoadMode = "append", progress: Callable[[int], None] | None = None
    ) -> int:
        """Adds tables one after the other, holding no more than one; all of them or nothing.

        `progress` is told how many rows have been written so far.
        """
        return load_tables(self, tables, mode, progress)

    def commit_segments(
        self, infos: Sequence[SegmentInfo], mode: LoadMode = "append", delivery: str | None = None
    ) -> int:
        """Takes over segments that others have written into the map's folder, all or none."""
        return take_over_segments(self, infos, mode, delivery)

    # Structure: called by the store, or under its structure lock

    def checkpoint(self) -> None:
        """Folds the log into segments. Writers go on meanwhile: what they write is carried over."""
        with self.structure:
            with self._writer:
                version, length, folded = self._version, self._version.log.committed, self.applied
            if length == 0:
                return
            if self._journal is not None:
                # A statement that could still be refused must not get into a segment.
                self._journal.wait(folded)
            shelved = fold(self.shelf, version, self.shelved, length)
            with self._writer:
                before = self.shelved
                self._replace_version(shelved, version.definition, carried=(length, self._version.log.committed))
                self.folded = folded
            self._commit_structure(None)
            self.shelf.discard(before, shelved)

    def fill_unseen(self, fill: Callable[[MapStore], None]) -> None:
        """For a map that is not in the catalog yet: what is loaded is committed together with it."""
        commit, self._commit_structure = self._commit_structure, _leave_uncommitted
        fill(self)
        self._commit_structure = commit

    def create_index(self, index: IndexDefinition, confirm: Callable[[], None]) -> MapDefinition:
        """Builds the index over all segments while writes go on; the log indexes itself when asked."""
        with self.structure:
            shelved = self.shelf.with_index_everywhere(self.shelved, index)
            confirm()
            return self.change_definition(self.definition.with_index(index), shelved)

    def drop_index(self, index: IndexDefinition) -> MapDefinition:
        with self.structure:
            shelved = tuple(self.shelf.without_index(each, index) for each in self.shelved)
            return self.change_definition(self.definition.without_index(index), shelved)

    def restore(self, recovered: RecoveredMap) -> None:
        """The state that the files describe, at opening and at a refresh."""
        with self._writer:
            self.shelved = recovered.shelved
            self._use(recovered.version)
            self.folded, self.applied = recovered.folded, recovered.applied

    def _use(self, version: MapVersion) -> None:
        self._version = version
        # The snapshot kept for the next reader would keep the version before it, and its files.
        self._snapshot = MapSnapshot(version, version.log.committed, self.shelf)

    def attach(self, journal: WriteAheadLog) -> None:
        """From now on writes are recorded: what was replayed came from there."""
        self._write_through(journal)

    def _write_through(self, journal: WriteAheadLog | None) -> None:
        self._journal = journal
        self._journal_lock = None if journal is None else WriterLock(journal, self._take_back)
        self._writer: AbstractContextManager[object] = self._journal_lock or RLock()

    def destroy(self) -> None:
        """Marks the map as gone; its files go when the last snapshot does."""
        self.forget()
        self.shelf.discard(self.shelved, ())

    def forget(self) -> None:
        """The map is gone from the catalog: reads and writes say so."""
        self.destroyed = True
        self._readable = False

    def verify(self, pause: Callable[[], None] = no_pause, *, again: bool = True) -> None:
        """Raises where a byte of any file is not as it was written; from then on so does every read and write.

        `again` is False for those who need only look at what was not verified yet.
        """
        try:
            verify_segments(self, pause, again=again)
        except StorageError as error:
            self.damage = error
            self._readable = False
            raise

    @property
    def log(self) -> WriteLog:
        """What was written since the last checkpoint."""
        return self._version.log

    @property
    def log_length(self) -> int:
        return self._version.log.committed

    def _write(self, kind: int, values: Sequence[Any], apply: Callable[..., Answer], *given: Any) -> Answer:
        """Applies a statement in memory, appends its record, makes it visible: in this order, all or nothing.

        `apply` gets the version and what is given for it.
        """
        journal, lock, payload = self._journal, self._journal_lock, b""
        if self.refusal is not None or journal is not None:
            self.refuse_unwritable()
        if journal is not None:
            payload = encode_record(self.definition.id, kind, values)
        with self._writer:
            if not self._readable:
                self.refuse_unreadable()
            version = self._version
            log = version.log
            try:
                answer = apply(version, *given)
                if self._confirm is not None:
                    self._confirm()
                if journal is not None and lock is not None and len(log.keys) > log.committed:
                    sequence = journal.append(payload)
                    self.applied = lock.pending = sequence
                    self._unsafe.add(sequence, log.committed, journal.durable_sequence)
            except BaseException:
                version.roll_back()
                raise
            version.commit()
        if log.committed >= FOLD_ENTRIES:
            self._request_checkpoint()
        return answer

    def _take_back(self) -> None:
        """After a record could not be made durable: puts a version without it, and without those behind it, in place.

        Nothing can be appended any more, so those are all there are. A snapshot taken in between keeps what it saw.
        """
        with self._writer:
            assert self._journal is not None
            durable = self._journal.durable_sequence
            safe = self._unsafe.safe_length(durable)
            if safe is not None:
                self._replace_version(self.shelved, self.definition, carried=(0, safe))
                self.applied = min(self.applied, durable)

    def install(
        self,
        shelved: Sequence[ShelvedSegment],
        folded: int,
        carried: tuple[int, int],
        fresh: Sequence[ShelvedSegment] = (),
        delivery: str | None = None,
    ) -> None:
        """Puts segments, and these entries of the log, in the place of the present version; both locks are held.

        `delivery` is the one that brought the segments: the manifest says in the same moment that it is applied.
        """
        before, version, unsafe, folded_before = self.shelved, self._version, self._unsafe, self.folded
        self._replace_version(shelved, version.definition, carried=carried)
        self.folded = folded
        try:
            self._commit_structure(delivery)
        except BaseException:
            self.shelved, self._unsafe, self.folded = before, unsafe, folded_before
            self._use(version)
            raise
        self.shelf.discard([*before, *fresh], shelved)

    def _replace_version(
        self, shelved: Sequence[ShelvedSegment], definition: MapDefinition, *, carried: tuple[int, int]
    ) -> None:
        """Installs a version of these segments and of the entries [start, stop) of the log; the lock is held."""
        start, stop = carried
        version = version_of(definition, shelved)
        write_again(version, self._version.log.entries(start, stop))
        version.commit()
        self._unsafe = self._unsafe.carried(start, stop)
        self.shelved = tuple(shelved)
        self._use(version)

    def change_definition(self, definition: MapDefinition, shelved: tuple[ShelvedSegment, ...]) -> MapDefinition:
        """Only indexes differ: positions stay, so the log and what it hides are shared with the version before."""
        with self._writer:
            present = self._version
            segments = [each.segment for each in shelved]
            version = MapVersion(
                definition,
                segments,
                present.hidden,
                present.columns,
                [each.info for each in shelved if each.info is not None],
            )
            version.live = present.live
            self.shelved = shelved
            self._use(version)
        return definition

    def refuse_reads(self, reason: str) -> None:
        """Nor writes: for good."""
        self._unreadable_because = self.refusal = reason
        self._readable = False

    def refuse_unreadable(self) -> None:
        if self._unreadable_because is not None:
            raise SqlError(ErrorCode.GENERIC, self._unreadable_because)
        if self.destroyed:
            raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {self.definition.name} was dropped")
        if self.damage is not None:
            raise StorageError(f"the map {self.definition.name} cannot be used: {self.damage}")

    def refuse_unwritable(self) -> None:
        if self.refusal is not None:
            raise StorageError(self.refusal, self.shelf.folder)
        if self._journal is not None:
            self._journal.refuse_after_failure()


def _leave_uncommitted(_delivery: str | None) -> None:
    pass
