"""A map: lookups, snapshots, writes, and changes of its structure."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.errors import StorageError
from remuda.expr.cancellation import cancelled_by
from remuda.storage.encodable import naming_columns, unencodable
from remuda.storage.folder.disk_errors import from_source, may_pass, reports_disk_errors
from remuda.storage.folder.verification import verify_segments
from remuda.storage.load.compaction import fold
from remuda.storage.load.map_load import load_table, load_tables, take_over_segments
from remuda.storage.lookup.row_projection import row_projection
from remuda.storage.map_state import MapState
from remuda.storage.map_version import MapVersion
from remuda.storage.memtable.changes import erase_keys, insert_row, insert_rows, put_rows
from remuda.storage.row_check import RowCheck
from remuda.storage.segment.checksum import no_pause
from remuda.storage.segment.segment_directory import is_verified
from remuda.storage.snapshot import MapSnapshot
from remuda.storage.statistics import StatisticsKeeper
from remuda.storage.wal.records import DELETE, PUT, encode_record
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from threading import RLock

    import pyarrow as pa

    from remuda.catalog import IndexDefinition, MapDefinition, MapStatistics
    from remuda.expr.cancellation import CancellationToken
    from remuda.storage.load.compaction import LoadMode
    from remuda.storage.lookup.row_projection import Row, RowProjection
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo
    from remuda.storage.wal.log import WriteAheadLog

FOLD_ENTRIES = 65_536
"""A log of so many entries is folded into a segment in the background."""

Answer = TypeVar("Answer")


class MapStore(MapState):
    """Made by `Store`, which gives it its place among the others."""

    def __init__(
        self,
        definition: MapDefinition,
        directory: SegmentDirectory,
        structure: RLock,
        commit_structure: Callable[[str | None], None],
        request_checkpoint: Callable[[], None],
        wal: WriteAheadLog | None = None,
    ) -> None:
        super().__init__(definition, directory, structure, commit_structure, wal)
        self._request_checkpoint = request_checkpoint
        self._token: CancellationToken | None = None
        self._shall_be_empty = False
        """Whether somebody waits to remove all rows: a fold of them is for nothing."""
        self._superseded: list[tuple[StoredSegment, ...]] = []
        """Segments that a manifest may still name, though a checkpoint has replaced them."""
        self._statistics = StatisticsKeeper()
        self._check = RowCheck(definition)

    # Reading

    def lookup(self, key: Any, columns: tuple[int, ...]) -> Row | None:
        """These columns of the newest committed row of a key in stored form, None if there is none."""
        found: Row | None = self.find(key, row_projection(columns))
        return found

    def find(self, key: Any, form: RowProjection) -> Any:
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

    def snapshot(self) -> MapSnapshot:
        if not self._readable:
            self.refuse_unreadable()
        version, newest = self._version, self._snapshot
        length = version.log.committed
        if newest.version is version and newest.length == length:
            return newest
        self._snapshot = newest = MapSnapshot(version, length, self.directory)
        return newest

    def __len__(self) -> int:
        return self._version.live

    def __bool__(self) -> bool:
        """Be true without rows as well: `known or new` must not replace a map because it is empty."""
        return True

    def statistics(self) -> MapStatistics:
        return self._statistics.of(self._version)

    def analyze(self) -> None:
        """Makes the statistics anew, however little has changed."""
        self._statistics = StatisticsKeeper()
        self.statistics()

    # Writing

    @contextmanager
    def writing_under(self, token: CancellationToken) -> Iterator[None]:
        """Do as `writing` for a statement whose token may still end it when it has done all but commit."""
        with self._writer:
            self._token = token
            try:
                yield
            finally:
                self._token = None

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

    def _write(self, kind: int, values: Sequence[Any], apply: Callable[..., Answer], *given: Any) -> Answer:
        """Applies a statement in memory, appends its record, makes it visible: in this order, all or nothing.

        `apply` gets the version and what is given for it.
        """
        wal, lock, payload = self._wal, self._writer_lock, b""
        if self.refusal is not None or wal is not None:
            self.refuse_unwritable()
        if wal is not None:
            payload = encode_record(self.definition.id, kind, values)
        with self._writer:
            if not self._readable:
                self.refuse_unreadable()
            version = self._version
            log = version.log
            try:
                answer = apply(version, *given)
                if self._token is not None:
                    self._token.begin_commit()
                if wal is not None and lock is not None and len(log.keys) > log.committed:
                    sequence = wal.append(payload, lock.epoch)
                    self.applied = lock.pending = sequence
                    self._unsafe.add(sequence, log.committed, wal.durable_sequence)
            except BaseException:
                version.roll_back()
                raise
            version.commit()
        if log.committed >= FOLD_ENTRIES:
            self._request_checkpoint()
        return answer

    @reports_disk_errors
    def truncate(self) -> int:
        """Removes all rows at once, and gives up a checkpoint of this map that is under way."""
        self._shall_be_empty = True
        with self.structure, self._writer:
            return self._truncate()

    def truncate_in_statement(self, patience: float) -> int | None:
        """Removes all rows for a statement that holds the writer lock; None where that cannot be done now.

        The structure lock comes before the writer lock, and its holder may wait for the other. So it is only tried, for
        `patience` seconds.
        """
        self._shall_be_empty = True
        if not self.structure.acquire(timeout=patience):
            self._shall_be_empty = False
            return None
        try:
            with self._writer:
                if not self._readable:
                    self.refuse_unreadable()
                if self._token is not None:
                    self._token.begin_commit()
                return self._truncate()
        finally:
            self._shall_be_empty = False
            self.structure.release()

    def _truncate(self) -> int:
        """Under both locks."""
        self._shall_be_empty = False
        self.refuse_unwritable()
        count = len(self)
        end = self._version.log.committed
        self.install((), self.applied, (end, end))
        return count

    @reports_disk_errors
    def load(self, table: pa.Table, mode: LoadMode = "append") -> int:
        """Adds a whole table, all or nothing; returns how many rows it had."""
        return load_table(self, table, mode)

    @reports_disk_errors
    def load_tables(
        self, tables: Iterable[pa.Table], mode: LoadMode = "append", progress: Callable[[int], None] | None = None
    ) -> int:
        """Adds tables one after the other, holding no more than one; all of them or nothing.

        `progress` is told how many rows have been written so far.
        """
        return load_tables(self, from_source(tables), mode, progress)

    @reports_disk_errors
    def commit_segments(
        self, infos: Sequence[SegmentInfo], mode: LoadMode = "append", delivery: str | None = None
    ) -> int:
        """Takes over segments that others have written into the map's folder, all or none."""
        return take_over_segments(self, infos, mode, delivery)

    # Structure: called by the store, or under its structure lock

    def checkpoint(self) -> None:
        """Folds the log into segments. Writers go on meanwhile: what they write is carried over."""
        with self.structure:
            if self.fold_log():
                self._commit_structure(None)
            self.discard_superseded()

    def fold_log(self) -> bool:
        """Does all of a checkpoint but its commit; False if there is nothing to do."""
        with self.structure:
            with self._writer:
                version, length, folded = self._version, self._version.log.committed, self.applied
            if length == 0:
                return False
            if self._wal is not None:
                # A statement that could still be refused must not get into a segment.
                self._wal.wait(folded)
            try:
                with cancelled_by(self._refuse_needless_fold):
                    stored = fold(self.directory, version, self.stored, length)
            except _NeedlessFoldError:
                return False
            with self._writer:
                self._superseded.append(self.stored)
                self._replace_version(stored, version.definition, carried=(length, self._version.log.committed))
                self.folded = folded
            return True

    def discard_superseded(self) -> None:
        """After a commit: lets go of the segments before the checkpoints that it has committed."""
        with self.structure:
            while self._superseded:
                self.directory.discard(self._superseded.pop(), self.stored)

    def _refuse_needless_fold(self) -> None:
        if self._shall_be_empty:
            raise _NeedlessFoldError

    def fill_unseen(self, fill: Callable[[MapStore], None]) -> None:
        """For a map that is not in the catalog yet: what is loaded is committed together with it."""
        commit, self._commit_structure = self._commit_structure, _leave_uncommitted
        fill(self)
        self._commit_structure = commit

    def create_index(self, index: IndexDefinition, token: CancellationToken | None = None) -> MapDefinition:
        """Builds the index over all segments while writes go on; the log indexes itself when asked."""
        with self.structure:
            stored = self.directory.with_index_everywhere(self.stored, index)
            if token is not None:
                token.begin_commit()
            return self.change_definition(self.definition.with_index(index), stored)

    def drop_index(self, index: IndexDefinition) -> MapDefinition:
        with self.structure:
            stored = tuple(self.directory.without_index(each, index) for each in self.stored)
            return self.change_definition(self.definition.without_index(index), stored)

    def destroy(self) -> None:
        """Marks the map as gone; its files go when the last snapshot does."""
        self.forget()
        self.directory.discard(self.stored, ())

    def refuse_unreadable(self) -> None:
        if self._verified_first:
            with suppress(StorageError):  # Damage is told below; where it could not look, the blocks guard the readers.
                self.verify(again=False)
            self._verified_first = False
            self._set_readable()
        super().refuse_unreadable()

    def damages(self) -> list[StorageError]:
        """Verify every segment again, and return what is wrong."""
        with self._using_proven():
            found = [damage for stored in self.stored for damage in self.directory.damages(stored)]
        damage = next((each for each in found if not may_pass(each)), None)
        if damage is not None:
            self.damage = damage
            self._readable = False
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
                self.damage = error
                self._readable = False
            raise

    @contextmanager
    def _using_proven(self) -> Iterator[None]:
        """If a segment is proven meanwhile, let go of the finders that verify the blocks they read."""
        unproven = [each for each in self.stored if not is_verified(each)]
        try:
            yield
        finally:
            if any(map(is_verified, unproven)):
                self._version.forget_finders()


class _NeedlessFoldError(Exception):
    """The map is about to be emptied."""


def _leave_uncommitted(_delivery: str | None) -> None:
    pass
