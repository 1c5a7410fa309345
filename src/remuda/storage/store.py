"""The store: the maps of one folder, or of this process's memory, and the catalog that names them.

What is in a folder beside the segments of the maps is the concern of `store_folder`.
"""

from __future__ import annotations

import logging
import time
from threading import Lock, RLock, Thread
from typing import TYPE_CHECKING

from remuda.catalog import Catalog, IndexDefinition, MapDefinition, ViewDefinition
from remuda.errors import ErrorCode, SqlError, StorageError
from remuda.storage.inbox import Inbox
from remuda.storage.manifest import NAME, map_entry, view_definition
from remuda.storage.map_store import MapStore
from remuda.storage.reader_lease import ReaderLease, leave_lease, take_lease
from remuda.storage.recovery import recover
from remuda.storage.segment_shelf import SegmentShelf, ShelvedSegment
from remuda.storage.store_folder import StoreFolder
from remuda.storage.verification import Verification
from remuda.storage.write_ahead_log import Durability

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from remuda.storage.remote_folder import RemoteFolder
    from remuda.storage.remote_place import RemotePlace
    from remuda.storage.segment_file import SegmentInfo
    from remuda.storage.snapshot import MapSnapshot
    from remuda.storage.write_ahead_file import LogFile
    from remuda.storage.write_ahead_log import WriteAheadLog

CLOSING_ENTRIES = 4096
"""A log of at least so many entries is folded at closing: the next opening need not replay it."""

_OPENING_TRIES = 10
_logger = logging.getLogger("remuda.storage")


def _nothing() -> None:
    pass


class Store:
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
        self.path = path
        self._folder = None if path is None else StoreFolder(path, durability, read_only=read_only, remote=remote)
        self.partitions = partitions
        self.durability = durability
        self.read_only = read_only
        self.catalog = Catalog()
        self.closed = False
        self._structure = RLock()
        self._installing = Lock()
        """Held while a refresh replaces the maps by their newer states."""
        self._maps: dict[str, MapStore] = {}
        self._checkpointing = Lock()
        self._lease: ReaderLease | None = None
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
    ) -> Store:
        """Opens a folder, made if absent, or memory (`path` is None). An existing folder keeps its own partitions.

        A remote folder is opened by its mirror, which stands in the place of `path`.
        """
        if remote is not None:
            path = remote.local
            if not read_only and durability is not Durability.NONE:
                raise StorageError(
                    "a remote folder has no write-ahead log: open it with read_only=True, or to load it with "
                    'durability="none", where writes are safe after a checkpoint, a load or the close',
                    remote.name,
                )
        store = cls(path, partitions, durability, read_only=read_only, remote=remote)
        folder = store._folder
        if folder is None:
            return store
        if read_only:
            store.refresh()
            return store
        folder.lock()
        try:
            store._open_for_writing(folder)
            store.verification.start()
            if store._inbox is not None:
                store._inbox.start()
        except BaseException:
            folder.unlock()
            raise
        return store

    @property
    def remote(self) -> RemotePlace | None:
        """What the path is a mirror of, if it is one: then no other machine sees it."""
        return None if self._folder is None or self._folder.remote is None else self._folder.remote.place

    # Maps

    def map(self, definition: MapDefinition) -> MapStore:
        found = self._maps.get(definition.id)
        if found is None or found.destroyed:
            raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {definition.name} was dropped")
        return found

    def _map_with_id(self, map_id: str) -> MapStore:
        found = self._maps.get(map_id)
        if found is None:
            raise SqlError(ErrorCode.MAP_DESTROYED, "the map was dropped")
        return found

    def snapshot(self, definitions: Sequence[MapDefinition]) -> tuple[MapSnapshot, ...]:
        """Snapshots of several maps at one moment: two passes that find the same had that moment between them.

        Only a refresh changes several maps at once.
        """
        if self.read_only and len(definitions) > 1:
            with self._installing:
                return tuple(self.map(definition).snapshot() for definition in definitions)
        maps = [self.map(definition) for definition in definitions]
        taken = tuple(each.snapshot() for each in maps)
        while len(maps) > 1:
            again = tuple(each.snapshot() for each in maps)
            if all(one is other for one, other in zip(taken, again, strict=True)):
                break
            taken = again
        return taken

    def create_map(self, definition: MapDefinition, fill: Callable[[MapStore], None] | None = None) -> None:
        """What `fill` loads is there when the map is: nobody sees the map without it, not even after a crash."""
        self._refuse_unwritable()
        created = self._new_map(definition)
        try:
            if fill is not None:
                created.fill_unseen(fill)
            with self._structure:
                self._refuse_unwritable()
                self._refuse_known(definition)
                created.folded = created.applied = self._journal.sequence if self._journal is not None else 0
                self._maps[definition.id] = created
                self._change_catalog(self.catalog.with_map(definition), lambda: self._maps.pop(definition.id))
        except BaseException:
            created.destroy()
            raise

    def _refuse_known(self, definition: MapDefinition) -> None:
        if self.catalog.find_map(definition.name, (definition.schema,)) is not None:
            raise SqlError(ErrorCode.GENERIC, f"there is already a map {definition.name}")

    def drop_map(self, definition: MapDefinition) -> None:
        with self._structure:
            self._refuse_unwritable()
            dropped = self.map(definition)
            del self._maps[definition.id]
            self._change_catalog(
                self.catalog.without_map(dropped.definition), lambda: self._maps.update({definition.id: dropped})
            )
            dropped.destroy()

    def create_index(
        self, definition: MapDefinition, index: IndexDefinition, confirm: Callable[[], None] = _nothing
    ) -> MapDefinition:
        """The index is complete when the new definition is returned; until then the old one stays in force.

        `confirm` is called when it is built, and may still refuse it by raising.
        """
        with self._structure:
            self._refuse_unwritable()
            return self._change_indexes(self.map(definition), lambda found: found.create_index(index, confirm))

    def drop_index(self, definition: MapDefinition, index: IndexDefinition) -> MapDefinition:
        with self._structure:
            self._refuse_unwritable()
            found = self.map(definition)
            if index not in found.definition.indexes:
                raise SqlError(ErrorCode.INDEX_INVALID, f"the index {index.name} is gone")
            return self._change_indexes(found, lambda found: found.drop_index(index))

    def create_view(self, view: ViewDefinition) -> None:
        """Adds the view, or puts it in the place of the one with the same name."""
        with self._structure:
            self._refuse_unwritable()
            self._change_catalog(self.catalog.with_view(view), lambda: None)

    def drop_view(self, view: ViewDefinition) -> None:
        with self._structure:
            self._refuse_unwritable()
            self._change_catalog(self.catalog.without_view(view), lambda: None)

    # Life

    def checkpoint(self) -> None:
        """Folds every write log into segments and lets go of the write-ahead files that are not needed any more."""
        with self._structure:
            if self.closed or self.read_only:
                return
            if self._folder is not None and any(each.log_length for each in self._maps.values()):
                self._folder.begin_log_file()
            for each in self._maps.values():
                each.checkpoint()
            if self._folder is not None:
                waiting = [each.folded + 1 for each in self._maps.values() if each.log_length]
                self._folder.drop_old_logs(waiting, self._commit_manifest)

    def verify(self) -> None:
        """Reads every segment and index in full and raises `StorageError` where a byte is not as it was written."""
        with self._structure:
            for each in self._maps.values():
                each.verify()

    def refresh(self) -> None:
        """Makes a reader see all that was acknowledged by now."""
        folder = self._folder
        if not self.read_only or folder is None:
            return
        for attempt in range(_OPENING_TRIES):
            try:
                with self._structure:
                    self._refresh_from(folder)
                self.verification.start()
                return
            except FileNotFoundError as error:
                # The writer has committed a newer state and removed files of the one just read: read again.
                if folder.remote is None and not (folder.path / NAME).exists():
                    raise StorageError("there is no store in this folder", folder.path) from error
                if attempt == _OPENING_TRIES - 1:
                    raise StorageError("a file named in the manifest is missing", error.filename) from error
                time.sleep(0.01 * attempt)

    def keep_files(self, seconds: float) -> None:
        """Keeps the files of a reader's present state for so long, for others that are told of it, though it ends."""
        if self._lease is not None and self._folder is not None and self._folder.version is not None:
            leave_lease(self._folder.path, self._folder.version, seconds)

    def refuse_reads(self, reason: str) -> None:
        """From now on maps answer nothing, for this reason; snapshots that somebody has stay readable."""
        for each in list(self._maps.values()):
            each.refuse_reads(reason)

    def close(self) -> None:
        """Makes everything durable and gives the folder free. Snapshots stay readable, writes are refused then."""
        if self._inbox is not None:
            self._inbox.stop()
        with self._structure:
            if self.closed:
                return
            entries = sum(each.log_length for each in self._maps.values())
            try:
                if self.path is not None and not self.read_only:
                    journal = self._journal
                    healthy = journal is None or not journal.failed
                    if healthy and (entries >= CLOSING_ENTRIES or (journal is None and entries)):
                        self.checkpoint()
                    if journal is not None:
                        journal.close()
                        self._commit_manifest(only_changes=True)
            finally:
                self.closed = True
                self.verification.stop()
                if self._lease is not None:
                    self._lease.release()
                for each in self._maps.values():
                    each.refusal = "the store is closed"
                if self._folder is not None:
                    self._folder.unlock()
                    if self._folder.remote is not None:
                        self._folder.remote.close()

    # Opening

    def _open_for_writing(self, folder: StoreFolder) -> None:
        files: list[LogFile] = []
        if folder.has_manifest():
            try:
                files = self._load(folder)
            except FileNotFoundError as error:
                raise StorageError("a file named in the manifest is missing", error.filename) from error
        journal = folder.open_journal(files[-1] if files else None)
        if journal is not None:
            for each in self._maps.values():
                each.attach(journal)
        found = folder.version or 0
        # After a clean close there is nothing to say, and so nothing to sync: that was a third of the time of opening.
        self._commit_manifest(only_changes=True)
        folder.remove_strangers(self._maps, found)
        for each in self._maps.values():
            each.shelf.remove_strangers(each.shelved, found)

    def _refresh_from(self, folder: StoreFolder) -> None:
        if folder.remote is not None and not folder.remote.fetch():
            raise StorageError("there is no store in this folder", folder.remote.name)
        lease = take_lease(folder.path) if folder.path.exists() else None
        try:
            self._load(folder, lease)
        except BaseException:
            # Whoever keeps the error keeps this frame: the writer would have to keep files for nobody.
            if lease is not None:
                lease.release()
            raise
        self._lease = lease

    def _load(self, folder: StoreFolder, lease: ReaderLease | None = None) -> list[LogFile]:
        """Reads what the folder holds and then makes all of it visible at once."""
        present = self._maps
        recovered = recover(
            folder.path, self._shelf, lambda map_id: present[map_id].shelved if map_id in present else ()
        )
        manifest = recovered.manifest
        if lease is not None:
            lease.narrow(manifest.version)
        maps, catalog = {}, Catalog()
        for map_id, found in recovered.maps.items():
            found.version.hold = lease
            maps[map_id] = present.get(map_id) or self._new_map(found.definition)
            catalog = catalog.with_map(found.definition)
        for entry in manifest.views:
            catalog = catalog.with_view(view_definition(entry))
        with self._installing:
            for map_id, found in recovered.maps.items():
                maps[map_id].restore(found)
            for map_id, gone in present.items():
                if map_id not in maps:
                    gone.forget()
            self.catalog = Catalog(manifest.catalog_version, catalog.maps, catalog.views)
            self._maps = maps
        self.partitions = manifest.partitions
        folder.take_up(recovered)
        return recovered.files

    def _new_map(self, definition: MapDefinition) -> MapStore:
        created = MapStore(
            definition,
            self._shelf(definition),
            self._structure,
            self._commit_manifest,
            self._request_checkpoint,
            self._journal,
        )
        if self.read_only:
            created.refusal = "the folder is open for reading only"
        return created

    def _shelf(self, definition: MapDefinition) -> SegmentShelf:
        if self._folder is None:
            return SegmentShelf(None)
        return SegmentShelf(self._folder.path / "maps" / definition.id, self._folder.disposal, self.remote)

    @property
    def _journal(self) -> WriteAheadLog | None:
        return None if self._folder is None else self._folder.journal

    # Committing

    def _change_indexes(self, found: MapStore, change: Callable[[MapStore], MapDefinition]) -> MapDefinition:
        definition, shelved = found.definition, found.shelved
        changed = change(found)
        self._change_catalog(self.catalog.with_map(changed), lambda: found.change_definition(definition, shelved))
        return changed

    def _change_catalog(self, catalog: Catalog, undo: Callable[[], object]) -> None:
        before = self.catalog
        self.catalog = catalog
        try:
            self._commit_manifest()
        except BaseException:
            self.catalog = before
            undo()
            raise

    def _commit_manifest(self, delivery: str | None = None, *, only_changes: bool = False) -> None:
        if self._folder is None:
            return
        with self._structure:
            entries = [map_entry(each.definition, each.folded, _saved(each.shelved)) for each in self._maps.values()]
            self._folder.commit(self.partitions, self.catalog, entries, only_changes=only_changes, delivery=delivery)

    def _request_checkpoint(self) -> None:
        """Starts a checkpoint in the background unless one is running."""
        if self._checkpointing.acquire(blocking=False):
            Thread(target=self._checkpoint_in_background, name="remuda-checkpoint", daemon=True).start()

    def _checkpoint_in_background(self) -> None:
        try:
            self.checkpoint()
        except Exception:
            # Nothing is lost: the log and its records stay, and the next write that finds it too long tries again.
            _logger.exception("a checkpoint in the background failed")
        finally:
            self._checkpointing.release()

    def _refuse_unwritable(self) -> None:
        if self.closed or self.read_only:
            raise StorageError(
                "the store is closed" if self.closed else "the folder is open for reading only", self.path
            )
        if self._journal is not None:
            self._journal.refuse_after_failure()


def _saved(shelved: Sequence[ShelvedSegment]) -> list[tuple[SegmentInfo, str | None]]:
    return [(each.info, each.deletion_file) for each in shelved if each.info is not None]
