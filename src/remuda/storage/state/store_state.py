"""The state of a store in force: its maps, the catalog that names them, its locks, and the folder they lie in."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock, RLock
from typing import TYPE_CHECKING, Protocol

from remuda.catalog import Catalog
from remuda.errors import ErrorCode, SqlError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.commit.recovery import Recovered
    from remuda.storage.folder.store_folder import StoreFolder
    from remuda.storage.map_store import MapStore
    from remuda.storage.remote.remote_location import RemoteLocation
    from remuda.storage.snapshot import MapSnapshot
    from remuda.storage.wal.durability import Durability
    from remuda.storage.wal.log import WriteAheadLog


class PastMaps(Protocol):
    """Opens the maps of versions."""

    def map(self, definition: MapDefinition, /) -> MapStore:
        """Return a map of a version, which is never changed."""


class StoreState:
    """Holds the maps and the catalog, and gives snapshots of several maps at one moment.

    `folder` is None in memory. `structure` is the lock of all changes of maps and catalog; readers do not take it.
    """

    __slots__ = (
        "_installing",
        "catalog",
        "closed",
        "durability",
        "folder",
        "history",
        "maps",
        "partitions",
        "path",
        "read_only",
        "structure",
        "when_opened",
    )

    def __init__(
        self, path: Path | None, folder: StoreFolder | None, partitions: int, durability: Durability, *, read_only: bool
    ) -> None:
        self.path = path
        self.folder = folder
        self.partitions = partitions
        self.durability = durability
        self.read_only = read_only
        self.catalog = Catalog()
        self.maps: dict[str, MapStore] = {}
        self.history: PastMaps | None = None
        """Opens the maps of versions."""
        self.when_opened: Callable[[], None] | None = None
        """Called when a segment is opened after its map was."""
        self.closed = False
        self.structure = RLock()
        self._installing = Lock()
        """Held while a refresh replaces the maps by their newer states."""

    @property
    def remote(self) -> RemoteLocation | None:
        """Return what the path is a mirror of, if it is one: then no other machine sees it."""
        return None if self.folder is None or self.folder.remote is None else self.folder.remote.location

    @property
    def wal(self) -> WriteAheadLog | None:
        return None if self.folder is None else self.folder.wal

    def map(self, definition: MapDefinition) -> MapStore:
        found = self.maps.get(definition.id)
        if found is None and definition.is_past and self.history is not None and not self.closed:
            return self.history.map(definition)
        if found is None or found.availability.destroyed:
            raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {definition.name} was dropped")
        return found

    def map_with_id(self, map_id: str) -> MapStore:
        found = self.maps.get(map_id)
        if found is None:
            raise SqlError(ErrorCode.MAP_DESTROYED, "the map was dropped")
        return found

    def snapshot(self, definitions: Sequence[MapDefinition]) -> tuple[MapSnapshot, ...]:
        """Take snapshots of several maps at one moment: two passes that find the same had that moment between them.

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

    def install(self, recovered: Recovered, maps: dict[str, MapStore]) -> None:
        """Make all that was recovered from the folder visible at once; `maps` are those to restore, by their ids."""
        catalog = replace(recovered.catalog(), history=self.catalog.history)
        with self._installing:
            for map_id, found in recovered.maps.items():
                maps[map_id].restore(found)
            for map_id, gone in self.maps.items():
                if map_id not in maps:
                    gone.availability.mark_destroyed()
            self.catalog = catalog
            self.maps = maps
        self.partitions = recovered.manifest.partitions

    def refuse_unwritable(self) -> None:
        if self.closed or self.read_only:
            what = "the store is closed" if self.closed else "the folder is open for reading only"
            raise StorageError(what, self.path, sqlstate="08003" if self.closed else "25006")
        if self.folder is not None:
            self.folder.refuse_after_failure()
        if self.wal is not None:
            self.wal.refuse_after_failure()
