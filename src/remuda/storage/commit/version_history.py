"""The versions of a store, opened for reading: their catalogs, and their maps as maps of their own that never change.

A map of a version has the id `<id of the map>@<number of the version>`. So a plan can read two versions of one map as
if they were two maps, and nothing behind the binder knows of versions.

Stores in memory have no versions: what reads them is imported where it is used.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import TYPE_CHECKING

from msgspec import structs

from remuda.catalog import Catalog
from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error, not_found, not_supported, option_error, wrong_object

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.folder.kept_versions import KeptVersions
    from remuda.storage.folder.manifest import Manifest
    from remuda.storage.map_store import MapStore
    from remuda.storage.remote.remote_folder import RemoteFolder
    from remuda.storage.remote.remote_versions import RemoteVersions
    from remuda.storage.segment.segment_directory import SegmentDirectory
    from remuda.storage.state.store_state import StoreState
    from remuda.storage.version_changes import VersionChanges

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_MAPS = 64
"""Maps of versions that are kept open for the next statement."""


@dataclass(frozen=True, slots=True)
class VersionDescription:
    """`committed` is in microseconds since 1970 in UTC, `changed` names the tables that the version has changed."""

    number: int
    committed: int
    changed: tuple[str, ...]


class VersionHistory:
    """Gives the catalogs and maps of versions. `new_map` makes a map without rows, which is in no catalog."""

    def __init__(self, state: StoreState, new_map: Callable[[MapDefinition, SegmentDirectory], MapStore]) -> None:
        self._state = state
        self._new_map = new_map
        self._maps: dict[str, MapStore] = {}
        self._lock = RLock()

    def versions(self) -> list[Manifest]:
        """Return the roots of all versions, the newest last."""
        return [manifest for _, manifest in self._kept().all()]

    def descriptions(self) -> list[VersionDescription]:
        """Describe all versions, from the oldest on."""
        from remuda.storage.folder.kept_versions import version_number

        described, before = [], None
        for manifest in self.versions():
            described.append(
                VersionDescription(version_number(manifest), manifest.committed, _changed(before, manifest))
            )
            before = manifest
        return described

    def at(self, moment: int | datetime) -> Catalog:
        """Return the catalog of a version by its number, or of the one that was the newest at a moment."""
        from remuda.storage.folder.definition_entries import map_definition
        from remuda.storage.folder.kept_versions import version_number

        manifest = self._at_time(moment) if isinstance(moment, datetime) else self._numbered(moment)
        number = version_number(manifest)
        catalog = Catalog(number)
        for entry in manifest.maps:
            definition = map_definition(entry)
            catalog = catalog.with_map(replace(definition, id=f"{definition.id}@{number}"))
        return replace(catalog, version=number)

    def map(self, definition: MapDefinition) -> MapStore:
        """Open a map of a version; it stays open for the statements that follow."""
        with self._lock:
            found = self._maps.get(definition.id)
            if found is None:
                while len(self._maps) >= _MOST_MAPS:
                    del self._maps[next(iter(self._maps))]
                found = self._maps[definition.id] = self._open(definition)
            return found

    def find(self, definition: MapDefinition, number: int) -> MapDefinition:
        """Return a map of now as it was in a version; raise where that cannot take the place of what is there now."""
        found = self.past(definition, number)
        if found is None:
            raise not_found(f"version {number} has no table {definition.name}")
        return found

    def past(self, definition: MapDefinition, number: int) -> MapDefinition | None:
        """Return a map of now as it was in a version; None where it was not made yet."""
        catalog = self.at(number)
        for found in catalog.maps.values():
            if found.id == f"{definition.id}@{number}":
                if _shape(found) != _shape(definition):
                    raise wrong_object(f"{definition.name} had other columns or partitions in version {number}")
                return found
        if catalog.find_map(definition.name, (definition.schema,)) is not None:
            raise wrong_object(
                f"the table {definition.name} of version {number} was dropped, and this is another one",
                suggestion=f"Read it: SELECT ... FROM {definition.name} FOR VERSION AS OF {number}.",
            )
        return None

    def newest(self) -> int:
        """Return the number of the newest version."""
        return self._kept().newest()

    def committed(self, number: int) -> int:
        """Return when a version was committed, in microseconds since 1970 in UTC."""
        return self._numbered(number).committed

    def changes(self, definition: MapDefinition, since: int, until: int | None = None) -> VersionChanges:
        """Compare a map of now as it was in two versions: after `since` (0: before the first), up to `until` (newest).

        A version before the map was made has none of its rows.
        """
        from remuda.storage.version_changes import VersionChanges

        number = self.newest() if until is None else until
        if not 0 <= since <= number:
            raise option_error(f"since is 0 or a version up to {number}, not {since}")
        after = self.find(definition, number)
        before = None if since == 0 else self.past(definition, since)
        rows = None if before is None else self.map(before).snapshot()
        return VersionChanges(rows, self.map(after).snapshot(), number, self.committed(number))

    def _open(self, definition: MapDefinition) -> MapStore:
        map_id, _, number = definition.id.partition("@")
        manifest = self._numbered(int(number))
        (entry,) = [each for each in manifest.maps if each.id == map_id]
        try:
            return self._opened(definition, entry)
        except FileNotFoundError as error:
            # The version has ended between the look at its root and this one; else the file is missing.
            self._numbered(int(number))
            raise damage_error("a file named in the root of a version is missing", error.filename) from error

    def _opened(self, definition: MapDefinition, entry: MapEntry) -> MapStore:
        from remuda.storage.commit.recovery import recover_map
        from remuda.storage.folder.partition_groups import PartitionGroups
        from remuda.storage.segment.segment_directory import SegmentDirectory

        path, remote = self._path(), self._remote()
        directory = SegmentDirectory(path / "maps" / entry.id)
        if remote is not None:
            remote.fetch_map(entry)
            directory = SegmentDirectory(directory.folder, None, remote.location, remote.segments)
        recovered = recover_map(PartitionGroups(path), entry, directory, definition)
        opened = self._new_map(definition, directory)
        opened.availability.refusal = "a version of a map is never changed"
        opened.restore(recovered)
        return opened

    def _numbered(self, number: int) -> Manifest:
        try:
            return self._kept().read(number)
        except FileNotFoundError:
            raise not_found(f"there is no version {number}: {self._range()}") from None

    def _at_time(self, moment: datetime) -> Manifest:
        limit = (moment - _EPOCH) // timedelta(microseconds=1)
        past = [manifest for manifest in self.versions() if manifest.committed <= limit]
        if not past:
            raise not_found(f"there is no version of {moment:%Y-%m-%d %H:%M:%S%z}: {self._range()}")
        return past[-1]

    def _range(self) -> str:
        """Name the versions that there are, for errors."""
        from remuda.storage.folder.kept_versions import version_number

        versions = self.versions()
        numbers = [version_number(each) for each in versions]
        shown = ", ".join(map(str, numbers)) if len(numbers) <= 8 else f"{numbers[0]} to {numbers[-1]}"
        since = f"{_EPOCH + timedelta(microseconds=versions[0].committed):%Y-%m-%d %H:%M:%S} UTC"
        return f"there are the versions {shown}, the first one of {since}"

    def _kept(self) -> KeptVersions | RemoteVersions:
        from remuda.storage.folder.kept_versions import KeptVersions

        path, remote = self._path(), self._remote()
        return KeptVersions(path) if remote is None else remote.versions

    def _remote(self) -> RemoteFolder | None:
        return None if self._state.folder is None else self._state.folder.remote

    def _path(self) -> Path:
        path, folder = self._state.path, self._state.folder
        if path is None or folder is None:
            raise not_supported("versions need a folder: this store is in memory")
        from remuda.storage.folder.manifest import NAME

        if folder.remote is None and not (path / NAME).exists():
            raise StorageError("there is no store in this folder", path, sqlstate="58P01")
        return path


def _shape(definition: MapDefinition) -> object:
    """Return the part of a definition that its segments depend on; indexes can be built."""
    columns = tuple((each.name, each.type, each.nullable, each.hidden) for each in definition.columns)
    return columns, definition.key, definition.partitioned_by, definition.partitions


def _changed(before: Manifest | None, manifest: Manifest) -> tuple[str, ...]:
    """Name the tables that are not as they were in the version before, those that were dropped included."""
    known = {} if before is None else {entry.id: entry for entry in before.maps}
    present = {entry.id for entry in manifest.maps}
    changed = [entry.name for entry in manifest.maps if _content(known.get(entry.id)) != _content(entry)]
    return tuple(dict.fromkeys([*changed, *(entry.name for entry in known.values() if entry.id not in present)]))


def _content(entry: MapEntry | None) -> object:
    """Return the content of a map in a version: its definition and its segments."""
    return None if entry is None else structs.replace(entry, flushed=0)
