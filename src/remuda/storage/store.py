"""The store: the maps of one folder, or of this process's memory, and the catalog that names them.

What is in a folder beside the segments of the maps is the concern of `store_folder`.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError, StorageError, damage_error, table_exists
from remuda.storage.folder.disk_errors import reports_disk_errors, storage_error
from remuda.storage.folder.inbox import Inbox
from remuda.storage.folder.manifest import NAME
from remuda.storage.folder.reader_lease import ReaderLease, leave_lease, take_lease
from remuda.storage.folder.verification import Verification
from remuda.storage.store_state import StoreState
from remuda.storage.wal.log import Durability

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from remuda.catalog import IndexDefinition, MapDefinition, ViewDefinition
    from remuda.expr.cancellation import CancellationToken
    from remuda.storage.folder.store_folder import StoreFolder
    from remuda.storage.map_store import MapStore
    from remuda.storage.remote.remote_folder import RemoteFolder
    from remuda.storage.wal.log_file import DroppedTail, LogFile

CLOSING_ENTRIES = 4096
"""A log of at least so many entries is folded at closing: the next opening need not replay it."""

_OPENING_TRIES = 10
_logger = logging.getLogger("remuda.storage")


class Store(StoreState):
    """Use `Store.open`. The catalog changes only through the methods that say so, each atomic and durable."""

    def __init__(
        self,
        path: Path | None,
        partitions: int,
        durability: Durability,
        *,
        read_only: bool,
        remote: RemoteFolder | None = None,
    ) -> None:
        super().__init__(path, partitions, durability, read_only=read_only, remote=remote)
        self._lease: ReaderLease | None = None
        self.dropped_tail: DroppedTail | None = None
        """What the opening cut off of the write-ahead log."""
        self.verification = Verification(lambda: list(self._maps.values()))
        self._inbox = (
            None if self._folder is None or read_only or remote is not None else Inbox(self._folder, self._map_with_id)
        )

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
    ) -> Store:
        """Opens a folder, made if absent, or memory (`path` is None). An existing folder keeps its own partitions.

        A remote folder is opened by its mirror, which stands in the place of `path`. Who opens it only for a moment, to
        look at the catalog, does not want all files read in the background: `verifies` is False then.
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
        folder = store._folder
        if folder is None:
            return store
        if read_only:
            store.refresh()
            return store
        try:
            folder.lock()
            store._open_for_writing(folder)
            store.verification.start()
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
        self.closed = True
        if self._inbox is not None:
            self._inbox.stop()
        self.verification.stop()
        if self._wal is not None:
            self._wal.abandon()
        if self._folder is not None:
            self._folder.unlock()

    def _open_for_writing(self, folder: StoreFolder) -> None:
        files: list[LogFile] = []
        is_new = not folder.has_manifest()
        if is_new:
            folder.sync_own_name()
        else:
            try:
                files = self._load(folder)
            except FileNotFoundError as error:
                raise damage_error("a file named in the manifest is missing", error.filename) from error
        if files and files[-1].dropped is not None:
            self._report_dropped(files[-1].dropped)
        wal = folder.open_wal(files[-1] if files else None)
        if wal is not None:
            for each in self._maps.values():
                each.attach(wal)
        found = folder.version or 0
        # After a clean close there is nothing to say, and so nothing to sync: that was a third of the time of opening.
        self._commit_manifest(only_changes=True)
        folder.remove_orphans(self._maps, found)
        for each in self._maps.values():
            if each.damaged is None:
                each.directory.remove_orphans(each.stored, found)

    def _report_dropped(self, dropped: DroppedTail) -> None:
        self.dropped_tail = dropped
        _logger.warning(
            "the end of the write-ahead log had not been synced before a crash and is damaged: %d bytes with at least "
            "%d statements are cut off (%s, offset %d)",
            dropped.size,
            dropped.statements,
            dropped.path,
            dropped.offset,
        )

    # Changes of the catalog

    @reports_disk_errors
    def create_map(
        self,
        definition: MapDefinition,
        fill: Callable[[MapStore], None] | None = None,
        *,
        replaces: bool = False,
    ) -> None:
        """Add a map with the rows that `fill` loads: no reader sees it without them, not even after a crash.

        With `replaces` it takes the place of the map of that name, if there is one, in the same commit.
        """
        self._refuse_unwritable()
        created = self._new_map(definition)
        try:
            if fill is not None:
                created.fill_unseen(fill)
            with self._structure:
                self._begin_change()
                replaced = self._of_that_name(definition, expected=replaces)
                created.folded = created.applied = self._wal.sequence if self._wal is not None else 0
                self._exchange_maps(replaced, created)
                self._change_catalog(self.catalog.with_map(definition), lambda: self._exchange_maps(created, replaced))
        except BaseException:
            created.destroy()
            raise
        if replaced is not None:
            replaced.destroy()

    def _of_that_name(self, definition: MapDefinition, *, expected: bool) -> MapStore | None:
        """The map that has the name of a new one, which is an error where it is not expected."""
        found = self.catalog.find_map(definition.name, (definition.schema,))
        if found is None:
            return None
        if not expected:
            raise table_exists(f"there is already a map {definition.name}")
        return self.map(found)

    def _exchange_maps(self, old: MapStore | None, new: MapStore | None) -> None:
        if old is not None:
            del self._maps[old.definition.id]
        if new is not None:
            self._maps[new.definition.id] = new

    @reports_disk_errors
    def drop_map(self, definition: MapDefinition) -> None:
        with self._structure:
            self._begin_change()
            dropped = self.map(definition)
            del self._maps[definition.id]
            self._change_catalog(
                self.catalog.without_map(dropped.definition), lambda: self._maps.update({definition.id: dropped})
            )
            dropped.destroy()

    @reports_disk_errors
    def create_index(
        self, definition: MapDefinition, index: IndexDefinition, token: CancellationToken | None = None
    ) -> MapDefinition:
        """The index is complete when the new definition is returned; until then the old one stays in force.

        `token` guards its commit: when the index is built it may still be refused.
        """
        with self._structure:
            self._begin_change()
            return self._change_indexes(self.map(definition), lambda found: found.create_index(index, token))

    @reports_disk_errors
    def drop_index(self, definition: MapDefinition, index: IndexDefinition) -> MapDefinition:
        with self._structure:
            self._begin_change()
            found = self.map(definition)
            if index not in found.definition.indexes:
                raise SqlError(ErrorCode.INDEX_INVALID, f"the index {index.name} is gone")
            return self._change_indexes(found, lambda found: found.drop_index(index))

    @reports_disk_errors
    def create_view(self, view: ViewDefinition) -> None:
        """Adds the view, or puts it in the place of the one with the same name."""
        with self._structure:
            self._begin_change()
            self._change_catalog(self.catalog.with_view(view), lambda: None)

    @reports_disk_errors
    def drop_view(self, view: ViewDefinition) -> None:
        with self._structure:
            self._begin_change()
            self._change_catalog(self.catalog.without_view(view), lambda: None)

    # Readers of a folder

    @reports_disk_errors
    def refresh(self) -> None:
        """Makes a reader see all that was acknowledged by now."""
        folder = self._folder
        if not self.read_only or folder is None:
            return
        for attempt in range(_OPENING_TRIES):
            try:
                with self._structure:
                    self._refresh_from(folder, is_last=attempt == _OPENING_TRIES - 1)
                self.verification.start()
                return
            except FileNotFoundError as error:
                # The writer has committed a newer state and removed files of the one just read: read again.
                if folder.remote is None and not (folder.path / NAME).exists():
                    raise StorageError("there is no store in this folder", folder.path, sqlstate="58P01") from error
                if attempt == _OPENING_TRIES - 1:
                    raise damage_error("a file named in the manifest is missing", error.filename) from error
                time.sleep(0.01 * attempt)

    def _refresh_from(self, folder: StoreFolder, *, is_last: bool) -> None:
        if folder.remote is not None and not folder.remote.fetch():
            raise StorageError("there is no store in this folder", folder.remote.name, sqlstate="58P01")
        lease = take_lease(folder.path) if folder.path.exists() else None
        try:
            self._load(folder, lease, missing_is_damage=is_last)
        except BaseException:
            # Whoever keeps the error keeps this frame: the writer would have to keep files for nobody.
            if lease is not None:
                lease.release()
            raise
        self._lease = lease

    def keep_files(self, seconds: float) -> None:
        """Keeps the files of a reader's present state for so long, for others that are told of it, though it ends."""
        if self._lease is not None and self._folder is not None and self._folder.version is not None:
            leave_lease(self._folder.path, self._folder.version, seconds)

    # Life

    @reports_disk_errors
    def verify(self) -> None:
        """Reads every segment and index in full and raises `StorageError` where a byte is not as it was written."""
        with self._structure:
            for each in self._maps.values():
                each.verify()

    def refuse_damaged(self) -> None:
        """Raise if a file that no thread has verified yet is damaged: for an error that has no other explanation."""
        for each in list(self._maps.values()):
            each.verify(again=False)

    def check(self, definition: MapDefinition) -> list[StorageError]:
        """Read every file of a map in full and return what is damaged, at most once for each segment."""
        found = self.map(definition)
        if found.damaged is not None:
            return [found.damaged.error]
        return found.damages()

    def refuse_reads(self, reason: str) -> None:
        """From now on maps answer nothing, for this reason; snapshots that somebody has stay readable."""
        for each in list(self._maps.values()):
            each.refuse_reads(reason)

    def leave(self, reason: str) -> None:
        """In a process that was forked off: neither reads nor writes, and the lock is that of the other one alone.

        No lock of threads is taken here, as whoever held one is not in this process.
        """
        self.closed = True
        self.refuse_reads(reason)
        if self._folder is not None:
            self._folder.unlock()

    @reports_disk_errors
    def close(self) -> None:
        """Makes everything durable and gives the folder free. Snapshots stay readable, writes are refused then."""
        if self._inbox is not None:
            self._inbox.stop()
        with self._structure:
            if self.closed:
                return
            try:
                self._save_before_closing()
            finally:
                self.closed = True
                try:
                    if self._wal is not None:
                        self._wal.close()
                finally:
                    self._release()

    def _save_before_closing(self) -> None:
        wal = self._wal
        if self.path is None or self.read_only or (wal is not None and wal.failed):
            return
        entries = sum(each.log_length for each in self._maps.values())
        if entries >= CLOSING_ENTRIES or (wal is None and entries):
            self.checkpoint()
        if wal is not None:
            wal.make_safe()
            self._commit_manifest(only_changes=True)

    def _release(self) -> None:
        self.verification.stop()
        if self._lease is not None:
            self._lease.release()
        for each in self._maps.values():
            each.refusal = "the store is closed"
        if self._folder is not None:
            self._folder.unlock()
            if self._folder.remote is not None:
                self._folder.remote.close()
