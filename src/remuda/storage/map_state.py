"""What a map consists of at this moment, and how the next version of it takes its place.

Locks, from the outside in: `structure` (one for the store: checkpoints, loads, index changes), then the writer lock.
Readers take neither. A writer holds its lock for the microseconds of applying a statement in memory, not for the fsync.
"""

from __future__ import annotations

from collections import deque
from threading import RLock
from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError, StorageError, closed_error, damage_error
from remuda.storage.map_version import MapVersion
from remuda.storage.memtable.changes import write_again
from remuda.storage.recovery import version_of
from remuda.storage.segment.segment_directory import is_verified
from remuda.storage.snapshot import MapSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.memtable.memtable import Memtable
    from remuda.storage.recovery import DamagedMap, RecoveredMap
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.wal.log import WriteAheadLog


class WriterLock:
    """Locks a map for one writer, and waits for durability behind the lock.

    Leaving it for the last time waits until what was written is durable, after the lock is free: an fsync keeps no
    other writer out, and several writers share one.

    Where that fails, what was written is taken back before the error reaches the writer. Another writer that gets the
    lock before that takes it back first: a statement must not build on what was refused. One that has the lock already
    may have read it, so its record is refused too.

    `pending` is the last record appended under the lock; 0 if there is none. `epoch` is that of the WAL when all that
    it had refused was taken back.
    """

    __slots__ = ("_depth", "_lock", "_take_back", "_wal", "epoch", "pending")

    def __init__(self, wal: WriteAheadLog, take_back: Callable[[], None]) -> None:
        self._lock = RLock()
        self._wal = wal
        self._take_back = take_back
        self._depth = 0
        self.pending = 0
        self.epoch = wal.epoch

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self.epoch != self._wal.epoch and self._depth == 1:
            try:
                self._take_back()
            except BaseException:
                self._depth -= 1
                self._lock.release()
                raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        pending = 0
        if self._depth == 0:
            pending, self.pending = self.pending, 0
        self._lock.release()
        if pending:
            try:
                self._wal.wait(pending)
            except StorageError:
                self._take_back()
                raise


class UnsafeRecords:
    """Remembers which statements of a map may not be durable yet, so that they can be taken back.

    Each record has the length of the memtable before it. The caller holds the writer lock.
    """

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: deque[tuple[int, int]] = deque()

    def add(self, sequence: int, length: int, durable: int) -> None:
        """A new record; those up to `durable` are safe by now."""
        records = self._records
        while records and records[0][0] <= durable:
            records.popleft()
        records.append((sequence, length))

    def carried(self, start: int, stop: int) -> UnsafeRecords:
        """The same when only the entries [start, stop) of the log go on, in a new log."""
        kept = UnsafeRecords()
        kept._records.extend((sequence, length - start) for sequence, length in self._records if start <= length < stop)
        return kept

    def first_refused(self, is_refused: Callable[[int], bool]) -> tuple[int, int] | None:
        """The first record that will never be durable, with the length of the log before it; None if there is none."""
        return next((record for record in self._records if is_refused(record[0])), None)


VERIFIED_FIRST = 8 << 20
"""Bytes of rows up to which a map is verified before its first use: it takes about two milliseconds. A larger one is
verified in the background, and until then by the block, at first touch (`block_guard`)."""


class MapState:
    """The segments and the log that are in force, the locks around them, and why they may not be used where that is so.

    `MapStore` reads and writes what is here.
    """

    def __init__(
        self,
        definition: MapDefinition,
        directory: SegmentDirectory,
        structure: RLock,
        commit_structure: Callable[[str | None], None],
        wal: WriteAheadLog | None = None,
    ) -> None:
        self.destroyed = False
        self.damage: StorageError | None = None
        """What is wrong with the map's files, once it is known."""
        self.damaged: DamagedMap | None = None
        """The same where they could not even be opened."""
        self._verified_first = False
        """Whether the first use is to wait until all files are verified."""
        self._readable = True
        self._unreadable_because: str | None = None
        self.refusal: str | None = None
        """Why the map cannot be written, where it cannot."""
        self.folded = 0
        """The last write-ahead record whose effect is in the segments."""
        self.applied = 0
        """The last one whose effect is in the segments or the log."""
        self.directory = directory
        self.structure = structure
        self._commit_structure = commit_structure
        self.attach(wal)
        self._unsafe = UnsafeRecords()
        self.stored: tuple[StoredSegment, ...] = ()
        self._version = MapVersion(definition)
        self._snapshot = MapSnapshot(self._version, 0, directory)

    @property
    def definition(self) -> MapDefinition:
        return self._version.definition

    @property
    def folder(self) -> Path | None:
        """Where the segments are; None in memory."""
        return self.directory.folder

    path = folder

    @property
    def log(self) -> Memtable:
        """What was written since the last checkpoint."""
        return self._version.log

    @property
    def log_length(self) -> int:
        return self._version.log.committed

    def writing(self) -> AbstractContextManager[object]:
        """Keeps other writers out of a statement that reads before it writes; may be entered again by its holder.

        Not for `load`, `truncate` and changes of structure, which take their own locks first.
        """
        return self._writer

    # The WAL

    def attach(self, wal: WriteAheadLog | None) -> None:
        """From now on writes are recorded there: what was replayed before came from it."""
        self._wal = wal
        self._writer_lock = None if wal is None else WriterLock(wal, self._take_back)
        self._writer: AbstractContextManager[object] = self._writer_lock or RLock()

    def _take_back(self) -> None:
        """After records could not be made durable: puts a version without them, and those behind, in place.

        A snapshot taken in between keeps what it saw.
        """
        with self._writer:
            assert self._wal is not None
            assert self._writer_lock is not None
            self._writer_lock.epoch = self._wal.epoch
            found = self._unsafe.first_refused(self._wal.is_refused)
            if found is not None:
                sequence, length = found
                self._replace_version(self.stored, self.definition, carried=(0, length))
                self.applied = min(self.applied, sequence - 1)

    # The next version

    def restore(self, recovered: RecoveredMap) -> None:
        """The state that the files describe, at opening and at a refresh."""
        with self._writer:
            self.stored = recovered.stored
            self._use(recovered.version)
            self.folded, self.applied = recovered.folded, recovered.applied
            self.damaged = recovered.damaged
            self.damage = None if recovered.damaged is None else recovered.damaged.error
            self._verified_first = self.damage is None and _is_verified_first(self.stored)
            self._set_readable()

    def install(
        self,
        stored: Sequence[StoredSegment],
        folded: int,
        carried: tuple[int, int],
        fresh: Sequence[StoredSegment] = (),
        delivery: str | None = None,
    ) -> None:
        """Puts segments, and these entries of the log, in the place of the present version; both locks are held.

        `delivery` is the one that brought the segments: the manifest says in the same moment that it is applied.
        """
        before, version, unsafe, folded_before = self.stored, self._version, self._unsafe, self.folded
        self._replace_version(stored, version.definition, carried=carried)
        self.folded = folded
        try:
            self._commit_structure(delivery)
        except BaseException:
            self.stored, self._unsafe, self.folded = before, unsafe, folded_before
            self._use(version)
            raise
        self.directory.discard([*before, *fresh], stored)

    def _replace_version(
        self, stored: Sequence[StoredSegment], definition: MapDefinition, *, carried: tuple[int, int]
    ) -> None:
        """Installs a version of these segments and of the entries [start, stop) of the log; the lock is held."""
        start, stop = carried
        version = version_of(definition, stored)
        write_again(version, self._version.log.entries(start, stop))
        version.commit()
        self._unsafe = self._unsafe.carried(start, stop)
        self.stored = tuple(stored)
        self._use(version)

    def change_definition(self, definition: MapDefinition, stored: tuple[StoredSegment, ...]) -> MapDefinition:
        """Only indexes differ: positions stay, so the log and what it hides are shared with the version before."""
        with self._writer:
            present = self._version
            segments = [each.segment for each in stored]
            version = MapVersion(
                definition,
                segments,
                present.hidden,
                present.columns,
                [each.info for each in stored if each.info is not None],
            )
            version.live = present.live
            self.stored = stored
            self._use(version)
        return definition

    def _use(self, version: MapVersion) -> None:
        self._version = version
        # The snapshot kept for the next reader would keep the version before it, and its files.
        self._snapshot = MapSnapshot(version, version.log.committed, self.directory)

    # Refusals

    def _set_readable(self) -> None:
        self._readable = not (
            self._verified_first or self.destroyed or self.damage is not None or self._unreadable_because is not None
        )

    def refuse_reads(self, reason: str) -> None:
        """Nor writes: for good. The files are let go at once, and not when the collector comes by."""
        self._unreadable_because = self.refusal = reason
        self._readable = False
        self.stored = ()
        self._use(MapVersion(self.definition))

    def forget(self) -> None:
        """The map is gone from the catalog: reads and writes say so."""
        self.destroyed = True
        self._readable = False

    def refuse_unreadable(self) -> None:
        if self._unreadable_because is not None:
            raise closed_error(self._unreadable_because)
        if self.destroyed:
            raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {self.definition.name} was dropped")
        if self.damage is not None:
            refusal = damage_error(f"the map {self.definition.name} cannot be used: {self.damage}")
            refusal.path, refusal.offset = self.damage.path, self.damage.offset
            raise refusal

    def refuse_unwritable(self) -> None:
        if self.refusal is not None:
            state = "25006" if self._unreadable_because is None else "08003"
            raise StorageError(self.refusal, self.directory.folder, sqlstate=state)
        if self.damage is not None:
            self.refuse_unreadable()
        if self._wal is not None:
            self._wal.refuse_after_failure()


def _is_verified_first(stored: Sequence[StoredSegment]) -> bool:
    unverified = [each.info for each in stored if each.info is not None and not is_verified(each)]
    return bool(unverified) and sum(info.row_bytes for info in unverified) <= VERIFIED_FIRST
