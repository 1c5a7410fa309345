"""What a store holds at this moment: its maps, the catalog that names them, and the folder they are committed to."""

from __future__ import annotations

import logging
from threading import Lock, RLock, Thread
from typing import TYPE_CHECKING

from remuda.catalog import Catalog
from remuda.errors import ErrorCode, SqlError, StorageError
from remuda.storage.folder.disk_errors import reports_disk_errors
from remuda.storage.folder.manifest import map_entry
from remuda.storage.folder.store_folder import StoreFolder
from remuda.storage.map_store import MapStore
from remuda.storage.recovery import recover
from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.manifest import MapEntry
    from remuda.storage.folder.reader_lease import ReaderLease
    from remuda.storage.remote.remote_folder import RemoteFolder
    from remuda.storage.remote.remote_location import RemoteLocation
    from remuda.storage.segment.segment_file import SegmentInfo
    from remuda.storage.snapshot import MapSnapshot
    from remuda.storage.wal.log import Durability, WriteAheadLog
    from remuda.storage.wal.log_file import LogFile

# A checkpoint that a write asks for because its map's log has grown long, done on a thread of its own.


_logger = logging.getLogger("remuda.storage")


class BackgroundCheckpoint:
    """At most one runs at a time; what is asked for meanwhile is not queued, since the next write asks again."""

    def __init__(self, checkpoint: Callable[[], None]) -> None:
        self._checkpoint = checkpoint
        self._running = Lock()

    def request(self) -> None:
        """Starts one unless one is running."""
        if self._running.acquire(blocking=False):
            Thread(target=self._run, name="remuda-checkpoint", daemon=True).start()

    def _run(self) -> None:
        try:
            self._checkpoint()
        except Exception:
            # Nothing is lost: the log and its records stay, and the next write that finds it too long tries again.
            _logger.exception("a checkpoint in the background failed")
        finally:
            self._running.release()


class StoreState:
    """How the maps and the catalog are loaded from the folder, read together, replaced and committed, each at once.

    `Store` says when.
    """

    def __init__(
        self,
        path: Path | None,
        partitions: int,
        durability: Durability,
        *,
        read_only: bool,
        remote: RemoteFolder | None,
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
        self._checkpoints = BackgroundCheckpoint(self.checkpoint)

    @property
    def remote(self) -> RemoteLocation | None:
        """What the path is a mirror of, if it is one: then no other machine sees it."""
        return None if self._folder is None or self._folder.remote is None else self._folder.remote.place

    @property
    def _wal(self) -> WriteAheadLog | None:
        return None if self._folder is None else self._folder.wal

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

    def _load(
        self, folder: StoreFolder, lease: ReaderLease | None = None, *, missing_is_damage: bool = True
    ) -> list[LogFile]:
        """Reads what the folder holds and then makes all of it visible at once."""
        present = self._maps
        recovered = recover(
            folder.path,
            self._directory,
            lambda map_id: present[map_id].stored if map_id in present else (),
            missing_is_damage=missing_is_damage,
        )
        if lease is not None:
            lease.narrow(recovered.manifest.version)
        maps = {}
        for map_id, found in recovered.maps.items():
            found.version.hold = lease
            known = present.get(map_id)
            maps[map_id] = self._new_map(found.definition) if known is None else known
        catalog = recovered.catalog()
        with self._installing:
            for map_id, found in recovered.maps.items():
                maps[map_id].restore(found)
            for map_id, gone in present.items():
                if map_id not in maps:
                    gone.forget()
            self.catalog = catalog
            self._maps = maps
        self.partitions = recovered.manifest.partitions
        folder.take_up(recovered)
        return recovered.files

    def _new_map(self, definition: MapDefinition) -> MapStore:
        created = MapStore(
            definition,
            self._directory(definition),
            self._structure,
            lambda delivery: self._commit_manifest(delivery, changed=definition.id),
            self._checkpoints.request,
            self._wal,
        )
        if self.read_only:
            created.refusal = "the folder is open for reading only"
        return created

    def _directory(self, definition: MapDefinition) -> SegmentDirectory:
        if self._folder is None:
            return SegmentDirectory(None)
        return SegmentDirectory(self._folder.path / "maps" / definition.id, self._folder.disposal, self.remote)

    # Committing

    @reports_disk_errors
    def checkpoint(self) -> None:
        """Folds every write log into segments and lets go of the write-ahead files that are not needed any more."""
        with self._structure:
            if self.closed or self.read_only:
                return
            if self._folder is not None:
                self._folder.refuse_after_failure()
            if self._folder is not None and any(each.log_length for each in self._maps.values()):
                self._folder.begin_log_file()
            if self._wal is None:
                self._fold_all()
            else:
                for each in self._maps.values():
                    each.checkpoint()
            if self._folder is not None:
                self._folder.sweep()
                # Records of a map that cannot be opened stay too.
                maps = [each for each in self._maps.values() if each.log_length or each.damaged is not None]
                waiting = [each.folded + 1 for each in maps]
                self._folder.drop_old_logs(waiting, self._commit_manifest)

    def _fold_all(self) -> None:
        """Folds every write log and commits once.

        Without a write-ahead log nothing would make up for the maps that a crash between two commits leaves behind.
        """
        folded = [each for each in self._maps.values() if each.fold_log()]
        if folded:
            self._commit_manifest()
        for each in self._maps.values():
            each.discard_superseded()

    def _begin_change(self) -> None:
        """Before the catalog changes: refuses where nothing may be written.

        Without a write-ahead log, what was written before is committed first: the change must not be found without it.
        """
        self._refuse_unwritable()
        if self._folder is not None and self._wal is None:
            self._fold_all()

    def _change_indexes(self, found: MapStore, change: Callable[[MapStore], MapDefinition]) -> MapDefinition:
        definition, stored = found.definition, found.stored
        changed = change(found)
        self._change_catalog(self.catalog.with_map(changed), lambda: found.change_definition(definition, stored))
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

    def _commit_manifest(
        self, delivery: str | None = None, *, only_changes: bool = False, changed: str | None = None
    ) -> None:
        """`changed` is the id of the map that has changed its segments, where it was only one."""
        if self._folder is None:
            return
        with self._structure:
            if self.closed:  # a load that was under way: the folder may have another writer, and the maps hold nothing
                raise StorageError("the store is closed", self.path, sqlstate="08003")
            if self._wal is None and changed is not None:
                for each in self._maps.values():
                    if each.definition.id != changed:
                        each.fold_log()
            entries = [_entry_of(each) for each in self._maps.values()]
            self._folder.commit(self.partitions, self.catalog, entries, only_changes=only_changes, delivery=delivery)

    def _refuse_unwritable(self) -> None:
        if self.closed or self.read_only:
            what = "the store is closed" if self.closed else "the folder is open for reading only"
            raise StorageError(what, self.path, sqlstate="08003" if self.closed else "25006")
        if self._folder is not None:
            self._folder.refuse_after_failure()
        if self._wal is not None:
            self._wal.refuse_after_failure()


def _entry_of(each: MapStore) -> MapEntry:
    if each.damaged is not None:
        return each.damaged.entry
    return map_entry(each.definition, each.folded, _saved(each.stored))


def _saved(stored: Sequence[StoredSegment]) -> list[tuple[SegmentInfo, str | None]]:
    return [(each.info, each.deletion_file) for each in stored if each.info is not None]
