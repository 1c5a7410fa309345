"""The store: the maps of one folder, or of this process's memory, and the catalog that names them.

What is in a folder beside the segments of the maps is the concern of `store_folder`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError, StorageError, table_exists
from remuda.storage.commit.store_writer import StoreWriter
from remuda.storage.commit.version_history import VersionHistory
from remuda.storage.folder.disk_errors import reports_disk_errors, storage_error
from remuda.storage.folder.verification import Verification
from remuda.storage.state.store_state import StoreState
from remuda.storage.wal.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from remuda.catalog import Catalog, IndexDefinition, MapDefinition, ViewDefinition
    from remuda.expr.cancellation import CancellationToken
    from remuda.storage.commit.store_loader import StoreLoader
    from remuda.storage.folder.execution_pin import ExecutionPin
    from remuda.storage.folder.inbox import Inbox
    from remuda.storage.map_store import MapStore
    from remuda.storage.remote.remote_folder import RemoteFolder
    from remuda.storage.remote.remote_location import RemoteLocation
    from remuda.storage.remote.remote_pins import RemotePin
    from remuda.storage.snapshot import MapSnapshot
    from remuda.storage.wal.log_file import DroppedTail

CLOSING_ENTRIES = 4096
"""Memtables of at least so many entries are flushed at closing: the next opening need not replay them."""


class Store:
    """Use `Store.open`. The catalog changes only through the methods that say so, each atomic and durable.

    `state` is what is in force; a writer commits what changes it.
    """

    def __init__(
        self,
        path: Path | None,
        partitions: int,
        durability: Durability,
        *,
        read_only: bool,
        remote: RemoteFolder | None = None,
    ) -> None:
        folder = None
        if path is not None:  # A process whose maps are in memory imports nothing of files.
            from remuda.storage.folder.store_folder import StoreFolder

            folder = StoreFolder(path, durability, read_only=read_only, remote=remote)
        self.state = state = StoreState(path, folder, partitions, durability, read_only=read_only)
        self._folder = folder
        self._writer = StoreWriter(state, self.checkpoint, self._rebase)
        self.history = VersionHistory(state, self._writer.new_map)
        state.history = self.history
        state.catalog = replace(state.catalog, history=self.history)
        self._loader: StoreLoader | None = None
        self._inbox: Inbox | None = None
        self.verification = Verification(lambda: list(state.maps.values()))
        state.when_opened = self.verification.start
        if folder is not None:
            from remuda.storage.commit.store_loader import StoreLoader
            from remuda.storage.folder.inbox import Inbox

            self._loader = StoreLoader(state, self._writer, folder)
            if not read_only and remote is None:
                self._inbox = Inbox(folder, state.map_with_id, self.create_map)

    @property
    def path(self) -> Path | None:
        return self.state.path

    @property
    def partitions(self) -> int:
        return self.state.partitions

    @property
    def durability(self) -> Durability:
        return self.state.durability

    @property
    def read_only(self) -> bool:
        return self.state.read_only

    @property
    def closed(self) -> bool:
        return self.state.closed

    @property
    def catalog(self) -> Catalog:
        return self.state.catalog

    @property
    def remote(self) -> RemoteLocation | None:
        """Return what the path is a mirror of, if it is one: then no other machine sees it."""
        return self.state.remote

    @property
    def dropped_tail(self) -> DroppedTail | None:
        """Return what the opening cut off of the write-ahead log."""
        return None if self._loader is None else self._loader.dropped_tail

    @property
    def pin(self) -> ExecutionPin | RemotePin | None:
        """Return the pin whose state a task of Spark reads; None where the newest state was read."""
        return None if self._loader is None else self._loader.pin

    def map(self, definition: MapDefinition) -> MapStore:
        return self.state.map(definition)

    def snapshot(self, definitions: Sequence[MapDefinition]) -> tuple[MapSnapshot, ...]:
        """Take snapshots of several maps at one moment."""
        return self.state.snapshot(definitions)

    @classmethod
    def open(
        cls,
        path: Path | None = None,
        *,
        partitions: int = 271,
        durability: Durability = Durability.FSYNC,
        read_only: bool = False,
        remote: RemoteFolder | None = None,
        verifies: bool = True,
        execution: str | None = None,
    ) -> Store:
        """Opens a folder, made if absent, or memory (`path` is None). An existing folder keeps its own partitions.

        A remote folder is opened by its mirror, which stands in the place of `path`. A caller that opens it only
        to look at the catalog passes `verifies=False`: all files would be read in the background. `execution` is as in
        `read_execution`.
        """
        if remote is not None:
            path = remote.local
            if not read_only and durability is not Durability.NONE:
                raise StorageError(
                    "a remote folder has no write-ahead log: open it with read_only=True, or to load it with "
                    'durability="none", where writes are safe after a checkpoint, a load or the close',
                    remote.name,
                    sqlstate="0A000",
                )
        store = cls(path, partitions, durability, read_only=read_only, remote=remote)
        if not verifies:
            store.verification.stop()
        folder, loader = store._folder, store._loader
        if folder is None or loader is None:
            return store
        if remote is not None:
            remote.segments.when_whole = store.verification.start
        if read_only:
            if remote is not None:
                remote.segments.let_go = store._let_go
            loader.execution = execution
            store.refresh()
            return store
        try:
            folder.lock()
            loader.open_for_writing()
            store.verification.start(loader.late)
            if store._inbox is not None:
                store._inbox.start()
        except OSError as error:
            store._give_up()
            raise storage_error("the folder cannot be opened", error, path) from error
        except BaseException:
            store._give_up()
            raise
        return store

    def _give_up(self) -> None:
        """Lets go of everything that an opening which failed had got hold of."""
        self.state.closed = True
        if self._inbox is not None:
            self._inbox.stop()
        self.verification.stop()
        if self.state.wal is not None:
            self.state.wal.abandon()
        if self._folder is not None:
            self._folder.unlock()

    # Changes of the catalog

    @reports_disk_errors
    def create_map(
        self,
        definition: MapDefinition,
        fill: Callable[[MapStore], None] | None = None,
        *,
        replaces: bool = False,
        delivery: str | None = None,
    ) -> None:
        """Add a map with the rows that `fill` loads: no reader sees it without them, not even after a crash.

        With `replaces` it takes the place of the map of that name, if there is one, in the same commit. `delivery` is
        the one that brought the map.
        """
        self.state.refuse_unwritable()
        created = self._writer.new_map(definition)
        try:
            if fill is not None:
                created.fill_unseen(fill)
            replaced = self._writer.retry.run(lambda: self._add_map(created, delivery, replaces=replaces))
        except BaseException:
            if self.state.maps.get(definition.id) is not created:  # Else it is committed, and was interrupted then.
                created.destroy(named=False)
            raise
        if replaced is not None:
            replaced.destroy()

    def _add_map(self, created: MapStore, delivery: str | None, *, replaces: bool) -> MapStore | None:
        """Commit a new map and return the one whose place it has taken."""
        with self.state.structure:
            self._writer.begin_change()
            replaced = self._of_that_name(created.definition, expected=replaces)
            wal = self.state.wal
            created.state.flushed = created.state.applied = wal.sequence if wal is not None else 0
            self._exchange_maps(replaced, created)
            self._writer.change_catalog(
                self.catalog.with_map(created.definition), lambda: self._exchange_maps(created, replaced), delivery
            )
        return replaced

    def _of_that_name(self, definition: MapDefinition, *, expected: bool) -> MapStore | None:
        """Return the map that has the name of a new one, which is an error where it is not expected."""
        found = self.catalog.find_map(definition.name, (definition.schema,))
        if found is None:
            return None
        if not expected:
            raise table_exists(f"there is already a map {definition.name}")
        return self.map(found)

    def _exchange_maps(self, old: MapStore | None, new: MapStore | None) -> None:
        if old is not None:
            del self.state.maps[old.definition.id]
        if new is not None:
            self.state.maps[new.definition.id] = new

    @reports_disk_errors
    def drop_map(self, definition: MapDefinition) -> None:
        self._writer.retry.run(lambda: self._drop_map(definition))

    def _drop_map(self, definition: MapDefinition) -> None:
        with self.state.structure:
            self._writer.begin_change()
            dropped = self.map(definition)
            del self.state.maps[definition.id]
            self._writer.change_catalog(
                self.catalog.without_map(dropped.definition), lambda: self.state.maps.update({definition.id: dropped})
            )
            dropped.destroy()

    @reports_disk_errors
    def create_index(
        self, definition: MapDefinition, index: IndexDefinition, token: CancellationToken | None = None
    ) -> MapDefinition:
        """Build an index and commit it.

        The index is complete when the new definition is returned; until then the old one stays in force.

        `token` guards its commit: when the index is built it may still be refused.
        """

        def create() -> MapDefinition:
            with self.state.structure:
                self._writer.begin_change()
                return self._writer.change_indexes(self.map(definition), lambda found: found.create_index(index, token))

        return self._writer.retry.run(create)

    @reports_disk_errors
    def drop_index(self, definition: MapDefinition, index: IndexDefinition) -> MapDefinition:
        return self._writer.retry.run(lambda: self._drop_index(definition, index))

    def _drop_index(self, definition: MapDefinition, index: IndexDefinition) -> MapDefinition:
        with self.state.structure:
            self._writer.begin_change()
            found = self.map(definition)
            if index not in found.definition.indexes:
                raise SqlError(ErrorCode.INDEX_INVALID, f"the index {index.name} is gone")
            return self._writer.change_indexes(found, lambda found: found.drop_index(index))

    @reports_disk_errors
    def create_view(self, view: ViewDefinition) -> None:
        """Adds the view, or puts it in the place of the one with the same name."""
        self._change_views(lambda catalog: catalog.with_view(view))

    @reports_disk_errors
    def drop_view(self, view: ViewDefinition) -> None:
        self._change_views(lambda catalog: catalog.without_view(view))

    def _change_views(self, change: Callable[[Catalog], Catalog]) -> None:
        def commit() -> None:
            with self.state.structure:
                self._writer.begin_change()
                self._writer.change_catalog(change(self.catalog), lambda: None)

        self._writer.retry.run(commit)

    @reports_disk_errors
    def checkpoint(self) -> None:
        """Flushes every memtable into segments and removes the write-ahead files that are not needed any more."""
        self._writer.retry.run(self._writer.checkpoint)

    @reports_disk_errors
    def restore_map(self, definition: MapDefinition, number: int) -> None:
        """Give a map the rows that it had in a version, in one commit, which is the next version."""
        self._writer.retry.run(lambda: self._restore_map(definition, number))

    def _restore_map(self, definition: MapDefinition, number: int) -> None:
        target = self.map(definition)
        with target.writing(), self.state.structure:
            self._writer.begin_change()
            target.refuse_unreadable()  # It may have been dropped meanwhile.
            past = self.history.find(target.definition, number)
            target.restore_rows(self.history.map(past))

    @reports_disk_errors
    def vacuum(self) -> None:
        """Give up versions whose retention is over, and remove files that waited for them or for readers."""
        with self.state.structure:
            self.state.refuse_unwritable()
            if self._folder is not None:
                self._folder.sweep()

    def _rebase(self) -> None:
        if self._loader is not None:
            self._loader.rebase()

    @reports_disk_errors
    def refresh(self) -> None:
        """Makes a reader, or one of several writers of a remote store, see all that was acknowledged by now."""
        if self._loader is None:
            return
        if self.read_only:
            self._loader.refresh()
            self.verification.start()
        elif self.remote is not None:
            self._loader.rebase()

    def read_execution(self, name: str) -> None:
        """Make a reader see, from now on, the state that the execution of this name has pinned: see `execution_pin`.

        Where the folder cannot be pinned, `pin` is None and the newest state is read.
        """
        if self._loader is not None:
            self._loader.execution = name
            self.refresh()

    def keep_files(self, seconds: float, version: int | None = None) -> None:
        """Keeps the files of a reader's present state for so long, for others that are told of it, though it ends.

        With the number of a version the files are kept that were needed since.
        """
        if self._loader is not None:
            self._loader.keep_files(seconds, version)

    def _let_go(self) -> None:
        """Give up what the maps have open of a remote store, as the cache needs the room."""
        for each in list(self.state.maps.values()):
            each.state.let_go()

    # Life

    @reports_disk_errors
    def verify(self) -> None:
        """Reads every segment and index in full and raises `StorageError` where a byte is not as it was written."""
        with self.state.structure:
            for each in self.state.maps.values():
                for damage in self._group_damages(each.definition):
                    raise damage
                each.verify()

    def refuse_damaged(self) -> None:
        """Raise if a file that no thread has verified yet is damaged: for an error that has no other explanation."""
        for each in list(self.state.maps.values()):
            each.verify(again=False)

    def check(self, definition: MapDefinition) -> list[StorageError]:
        """Read every file of a map in full and return what is damaged, at most once for each segment."""
        found = self.map(definition)
        damaged = found.availability.damaged
        return [*self._group_damages(definition), *found.damages()] if damaged is None else [damaged.error]

    def _group_damages(self, definition: MapDefinition) -> Iterator[StorageError]:
        """Yield what is damaged of the group files of a map, as they are on disk now.

        What they said is in memory since the opening, so the map can go on; the next opening could not.
        """
        return iter(()) if self._folder is None else self._folder.group_damages(definition.id)

    def refuse_reads(self, reason: str) -> None:
        """Refuse all reads and writes, for this reason; snapshots that readers hold stay readable."""
        for each in list(self.state.maps.values()):
            each.refuse_reads(reason)

    def leave(self, reason: str) -> None:
        """Give the store up in a process that was forked off: the lock is that of the other one alone.

        No lock of threads is taken here, as the thread that held one is not in this process.
        """
        self.state.closed = True
        self.refuse_reads(reason)
        if self._folder is not None:
            self._folder.unlock()

    @reports_disk_errors
    def close(self) -> None:
        """Makes everything durable and gives the folder free. Snapshots stay readable, writes are refused then."""
        if self._inbox is not None:
            self._inbox.stop()
        # The last commit to a remote store may have to rebase, for which writer locks come before `structure`.
        with self.state.structure if self.remote is None else self._writer.every_lock():
            if self.closed:
                return
            try:
                self._save_before_closing()
            finally:
                self.state.closed = True
                try:
                    if self.state.wal is not None:
                        self.state.wal.close()
                finally:
                    self._release()

    def _save_before_closing(self) -> None:
        wal = self.state.wal
        if self.path is None or self.read_only or (wal is not None and wal.failed):
            return
        entries = sum(each.memtable_length for each in self.state.maps.values())
        uncommitted = entries or any(each.has_uncommitted_segments for each in self.state.maps.values())
        if entries >= CLOSING_ENTRIES or (wal is None and uncommitted):
            self.checkpoint()
        if wal is not None:
            wal.make_safe()
            self._writer.commit_manifest(only_changes=True)

    def _release(self) -> None:
        self.verification.stop()
        if self._loader is not None:
            self._loader.release()
        for each in self.state.maps.values():
            each.availability.refusal = "the store is closed"
        if self._folder is not None:
            self._folder.unlock()
            if self._folder.remote is not None:
                self._folder.remote.close()
