"""The state of a map in force: its version, its segments, its locks, and how the next version takes their place.

Locks, from the outside in; readers take none of them:

    writer      one for a map. A statement that reads before it writes holds it from its snapshot to its commit, any
                other writer while it applies its statement in memory, but not for the fsync. Whatever changes the rows
                of the map holds it. All of several maps, for a rebase: in the order of their ids.
    structure   one for the store: checkpoints, loads, changes of indexes and of the catalog.
    latch       one for a map, held for microseconds by a thread that applies a statement to the version in force or
                puts another version in its place.

A checkpoint and a change of an index leave the rows as they are, so they take no writer lock: they go on beside a
statement that holds it, which may itself wait for `structure`. A thread that has `structure` and finds that it needs
a writer lock as well may only try it for a bounded time, as `storage/load/map_load.py` does; where that fails it gives
`structure` back and takes both in order.
"""

from __future__ import annotations

from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from remuda.storage.load.segment_cut import worthwhile_cuts
from remuda.storage.segment.group_ranges import cuts_of
from remuda.storage.segment.stored_groups import StoredGroups
from remuda.storage.snapshot import MapSnapshot
from remuda.storage.state.applied_batches import AppliedBatches
from remuda.storage.state.grouped_version import version_of
from remuda.storage.state.map_version import MapVersion, write_again
from remuda.storage.state.pending_writes import PendingWrites
from remuda.storage.wal.writer_lock import UnsafeRecords, WriterLock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    import pyarrow as pa

    from remuda.catalog import MapDefinition
    from remuda.storage.commit.recovery import RecoveredMap
    from remuda.storage.lookup.row_projection import Row
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.state.applied_batches import BatchId
    from remuda.storage.wal.log import WriteAheadLog


class Writer(Protocol):
    """What a writer lock is: an `RLock`, or a `WriterLock`."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class MapState:
    """Holds the version of a map that is in force and the locks around it. `MapStore` reads and writes through it.

    `snapshot` is the newest one taken of `version`. `writer` keeps other writers out; with a WAL it is `writer_lock`.
    `latch` guards the version in force: see the order of locks above.
    `commit` writes the store's manifest, given the delivery that brought new segments, if one did.
    """

    __slots__ = (
        "applied",
        "batches",
        "commit",
        "directory",
        "flushed",
        "latch",
        "pending",
        "snapshot",
        "stored",
        "structure",
        "unsafe",
        "version",
        "wal",
        "writer",
        "writer_lock",
    )

    def __init__(
        self,
        definition: MapDefinition,
        directory: SegmentDirectory,
        structure: RLock,
        commit: Callable[[str | None], None],
        wal: WriteAheadLog | None,
    ) -> None:
        self.directory = directory
        self.structure = structure
        self.latch = RLock()
        self.commit = commit
        self.attach(wal)
        self.unsafe = UnsafeRecords()
        self.flushed = 0
        """The last write-ahead record whose effect is in the segments."""
        self.applied = 0
        """The last one whose effect is in the segments or the memtable."""
        self.stored: Sequence[StoredSegment] = ()
        self.batches = AppliedBatches()
        self.pending = None if directory.remote is None else PendingWrites()
        """What the newest root does not have, where other processes commit to the store as well."""
        self.use(MapVersion(definition))

    @property
    def definition(self) -> MapDefinition:
        return self.version.definition

    @property
    def cuts(self) -> list[int]:
        """Return the partitions at which the groups of the map are cut."""
        stored = self.stored
        return stored.cuts if isinstance(stored, StoredGroups) else cuts_of(stored, self.definition.partitions)

    def worthwhile_cuts(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Sequence[int]:
        """Return the cuts of the groups that rows are to be written into, nothing where they are too few for that."""
        return worthwhile_cuts(columns, self.cuts)

    def attach(self, wal: WriteAheadLog | None) -> None:
        """Record writes in this WAL from now on: what was replayed before came from it."""
        self.wal = wal
        self.writer_lock = None if wal is None else WriterLock(wal, self._take_back)
        self.writer: Writer = self.writer_lock or RLock()

    def _take_back(self) -> None:
        """Install a version without the records that could not be made durable, and without those behind them.

        A snapshot taken in between keeps what it saw.
        """
        with self.writer, self.latch:
            assert self.wal is not None
            assert self.writer_lock is not None
            self.writer_lock.epoch = self.wal.epoch
            found = self.unsafe.first_refused(self.wal.is_refused)
            if found is not None:
                sequence, length = found
                self.replace_version(self.stored, self.definition, carried=(0, length))
                self.applied = min(self.applied, sequence - 1)

    # The next version

    def use(self, version: MapVersion) -> None:
        """Put this version in force."""
        self.version = version
        # The snapshot kept for the next reader would keep the version before it, and its files.
        self.snapshot = MapSnapshot(version, version.memtable.committed, self.directory)

    def restore(self, recovered: RecoveredMap) -> None:
        """Install the state that the files describe, at opening and at a refresh; the latch is held."""
        self.stored = recovered.stored
        self.use(recovered.version)
        self.flushed, self.applied, self.batches = recovered.flushed, recovered.applied, recovered.batches
        self.mark_committed()

    def rebase(self, recovered: RecoveredMap) -> None:
        """Write what is not committed again, on top of a state that another process has committed.

        Nothing is installed here. The writer lock is held.
        """
        entries = self.uncommitted()
        if self.pending is not None and entries:
            self.pending.write_again(recovered, entries)

    def uncommitted(self) -> list[tuple[Any, Row | None]]:
        """Return the entries that the newest root does not have, flushed or not, the oldest first."""
        memtable = self.version.memtable
        recent = memtable.entries(0, memtable.committed)
        return [*recent] if self.pending is None else [*self.pending.flushed, *recent]

    def mark_committed(self) -> None:
        """Take the segments in force for those of the newest root."""
        if self.pending is not None:
            self.pending.commit(self.stored, keeps_keys=self.version.memtable.committed > 0)

    def install(
        self,
        stored: Sequence[StoredSegment],
        flushed: int,
        carried: tuple[int, int],
        fresh: Sequence[StoredSegment] = (),
        delivery: str | None = None,
        batch: BatchId | None = None,
    ) -> None:
        """Install segments and these entries of the memtable in place of the present version.

        The writer lock and `structure` are held. `delivery` and `batch` are those that brought the segments: the
        manifest says in the same moment that they are applied.
        """
        before, version, unsafe, flushed_before = self.stored, self.version, self.unsafe, self.flushed
        batches, self.batches = self.batches, self.batches.with_batch(batch)
        committed = self.directory.committed_version
        with self.latch:
            self.replace_version(stored, version.definition, carried=carried)
            self.flushed = flushed
            try:
                self.commit(delivery)
            except BaseException:
                if self.directory.committed_version == committed:
                    self.stored, self.unsafe, self.flushed, self.batches = before, unsafe, flushed_before, batches
                    self.use(version)
                    # What was made for this commit. Fresh segments are their giver's, who may try again.
                    self.directory.discard(stored, [*before, *fresh], named=False)
                raise
        self.directory.discard(before, stored)
        self.directory.discard(fresh, stored, named=False)

    def replace_version(
        self, stored: Sequence[StoredSegment], definition: MapDefinition, *, carried: tuple[int, int]
    ) -> None:
        """Install a version of these segments and of the entries [start, stop) of the memtable; the latch is held."""
        start, stop = carried
        version = version_of(definition, stored)
        write_again(version, self.version.memtable.entries(start, stop))
        version.commit()
        self.unsafe = self.unsafe.carried(start, stop)
        self.stored = stored if isinstance(stored, StoredGroups) else tuple(stored)
        self.use(version)

    def change_definition(self, definition: MapDefinition, stored: Sequence[StoredSegment]) -> MapDefinition:
        """Install a definition with other indexes: positions stay, so the memtable and the deletion vectors are
        shared with the version before."""
        with self.latch:
            present = self.version
            segments = [each.segment for each in stored]
            version = MapVersion(
                definition,
                segments,
                present.deletions,
                present.columns,
                [each.info for each in stored if each.info is not None],
            )
            version.live = present.live
            self.stored = stored
            self.use(version)
        return definition

    def let_go(self) -> None:
        """Install the same version over segments that are not open: their files go with the last query that reads them.

        For readers of a remote store: a writer knows its segments by themselves.
        """
        with self.latch:
            present = self.version
            if isinstance(self.stored, StoredGroups):
                self.stored = self.stored.unopened()
                version = version_of(present.definition, self.stored)
            else:
                self.stored = tuple([replace(each, segment=each.segment.unopened()) for each in self.stored])
                segments = [each.segment for each in self.stored]
                version = MapVersion(present.definition, segments, present.deletions, present.columns, present.infos)
            version.live, version.hold = present.live, present.hold
            self.use(version)
            self.mark_committed()

    def release(self) -> None:
        """Let go of the files at once, and not when the collector comes by."""
        self.stored = ()
        self.use(MapVersion(self.definition))
