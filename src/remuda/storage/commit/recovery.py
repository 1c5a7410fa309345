"""The state of a folder as its files tell it: the manifest, its segments, and the write-ahead log on top.

Nothing is installed here. A reader that refreshes goes on with the state before until the one after is complete.
"""

from __future__ import annotations

from errno import ENOENT
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.catalog import Catalog
from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.commit.stored_segments import open_groups, open_segments
from remuda.storage.folder.definition_entries import MapEntry, map_definition, view_definition
from remuda.storage.folder.disk_errors import may_pass
from remuda.storage.folder.manifest import NAME, Manifest, read_manifest
from remuda.storage.folder.partition_groups import has_many_segments, read_by_group
from remuda.storage.state.applied_batches import AppliedBatches
from remuda.storage.state.grouped_version import version_of
from remuda.storage.state.map_version import MapVersion, erase_keys, key_maker, put_rows
from remuda.storage.wal.log_file import LogFile, log_path, read_log
from remuda.storage.wal.records import PUT, decode_record, restore
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.execution_pin import ExecutionPin
    from remuda.storage.folder.partition_groups import PartitionGroups
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment


Made = TypeVar("Made")

_OVERTAKEN_TRIES = 100
"""How often a reader reads manifest and log that the writer has replaced meanwhile."""


@dataclass(frozen=True, slots=True)
class DamagedMap:
    """Why the segments of a map cannot be opened, and what the manifest says of it: it stays as it is."""

    error: StorageError
    entry: MapEntry


@dataclass(slots=True)
class RecoveredMap:
    """Holds the state of a map as the files tell it.

    `flushed` is the last record whose effect is in the segments, `applied` the last that was applied at all.
    """

    definition: MapDefinition
    stored: Sequence[StoredSegment]
    version: MapVersion
    flushed: int
    applied: int
    damaged: DamagedMap | None = None
    batches: AppliedBatches = AppliedBatches()

    def replay(self, kind: int, values: Sequence[Any], sequence: int) -> None:
        """Applies a record of the write-ahead log again."""
        version = self.version
        if kind == PUT:
            key_of = key_maker(self.definition)
            put_rows(version, [key_of(row) for row in values], values)
        else:
            erase_keys(version, [canonical_key(key) for key in values])
        version.commit()
        self.applied = sequence


@dataclass(frozen=True, slots=True)
class Recovered:
    """Holds the state of a folder as its files tell it.

    `sequence` is the last record number that was ever given.
    """

    manifest: Manifest
    maps: Mapping[str, RecoveredMap]
    files: list[LogFile]
    sequence: int

    def catalog(self) -> Catalog:
        """Build the catalog that the manifest describes."""
        catalog = Catalog()
        for found in self.maps.values():
            catalog = catalog.with_map(found.definition)
        for entry in self.manifest.views:
            catalog = catalog.with_view(view_definition(entry))
        return Catalog(self.manifest.catalog_version, catalog.maps, catalog.views)


def recover(
    folder: Path,
    groups: PartitionGroups,
    directory_of: Callable[[MapDefinition], SegmentDirectory],
    opened: Callable[[str], Sequence[StoredSegment]],
    *,
    missing_is_damage: bool,
    has_writer: bool,
    keeps_files: bool,
    pin: ExecutionPin | None = None,
) -> Recovered:
    """Read the state of a folder.

    `opened` gives the segments of a map that are open already, and need not be opened again.

    With a pin the state is that of the pin instead of the present one.

    A file that is missing is damage for a writer. A reader may have been overtaken by the writer, and tries again.
    `has_writer` says that another process may write the folder meanwhile, `keeps_files` that it keeps the files of this
    state, so that they may be opened later.
    """
    if pin is None:
        manifest, files = _manifest_and_log(folder, has_writer=has_writer)
    else:
        manifest, files = pin.manifest, _log_of(folder, pin.manifest)
    maps = {
        entry.id: _recovered_map(
            folder / NAME,
            groups,
            entry,
            directory_of,
            opened(entry.id),
            missing_is_damage=missing_is_damage,
            keeps_files=keeps_files,
        )
        for entry in manifest.maps
    }
    if files and files[0].number != manifest.first_log:
        raise FileNotFoundError(ENOENT, "missing", str(log_path(folder / "wal", manifest.first_log)))
    for file in files:
        for sequence, payload in file.records:
            if not payload or (pin is not None and sequence > pin.last):
                continue
            try:
                _replay(maps, manifest.maps, payload, sequence)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                path = log_path(folder / "wal", file.number)
                raise damage_error(f"record {sequence} of the write-ahead log makes no sense: {error}", path) from error
    return Recovered(manifest, maps, files, max([manifest.sequence, *(file.last_sequence for file in files)]))


def _manifest_and_log(folder: Path, *, has_writer: bool) -> tuple[Manifest, list[LogFile]]:
    """Read the manifest, and the log while that manifest is in force.

    A load commits by the next manifest alone. If the writer committed one between the two reads, and then a statement,
    the log would have the statement and the manifest not the load before it: a state that never was.
    """
    for _ in range(_OVERTAKEN_TRIES):
        manifest = read_manifest(folder)
        files = _log_of(folder, manifest)
        if not has_writer or read_manifest(folder) == manifest:
            return manifest, files
    raise StorageError(
        "another process commits too often for this one to read the store: try again", folder, sqlstate="40001"
    )


def _log_of(folder: Path, manifest: Manifest) -> list[LogFile]:
    return list(read_log(folder / "wal", manifest.first_log, manifest.safe_log))


def _replay(maps: dict[str, RecoveredMap], entries: Sequence[MapEntry], payload: bytes, sequence: int) -> None:
    record = decode_record(payload)
    found = maps.get(record.map_id)
    # A record of a map that is not in the manifest: the map was dropped later.
    if found is not None and found.damaged is None and sequence > found.flushed:
        try:
            found.replay(record.kind, restore(found.definition, record), sequence)
        except StorageError as error:
            # The row that the record replaces is looked for in a damaged block.
            (entry,) = [each for each in entries if each.id == record.map_id]
            maps[entry.id] = _damaged_map(found.definition, entry, error)


def _understood(path: Path, make: Callable[..., Made], *given: Any) -> Made:
    """Make something of a part of the manifest, whose checksum does not tell whether it makes sense."""
    try:
        return make(*given)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise damage_error(f"the manifest makes no sense: {error}", path) from error


def recover_map(
    groups: PartitionGroups, entry: MapEntry, directory: SegmentDirectory, definition: MapDefinition
) -> RecoveredMap:
    """Open the segments of a map of a version, which has no log. A missing file is no damage: the version may end, and
    so all segments are opened now."""
    try:
        stored = open_segments(groups, entry, definition, directory, (), lazily=False)
        return RecoveredMap(definition, stored, version_of(definition, stored), entry.flushed, entry.flushed)
    except StorageError as error:
        if may_pass(error):
            raise
        return _damaged_map(definition, entry, error)


def _recovered_map(
    manifest_path: Path,
    groups: PartitionGroups,
    entry: MapEntry,
    directory_of: Callable[[MapDefinition], SegmentDirectory],
    opened: Sequence[StoredSegment],
    *,
    missing_is_damage: bool,
    keeps_files: bool,
) -> RecoveredMap:
    """Open the segments of a map.

    A map with a damaged file is there, and says so when it is used: the other maps of the store go on.

    A file that the system cannot open just now is not damaged: opening the store fails, and can be tried again.
    """
    definition = _understood(manifest_path, map_definition, entry)
    directory = directory_of(definition)
    try:
        stored: Sequence[StoredSegment]
        if keeps_files and (statistics := read_by_group(entry)) is not None:
            stored = open_groups(groups, entry, definition, directory, opened, statistics)
        else:
            lazily = keeps_files and has_many_segments(entry)
            stored = open_segments(groups, entry, definition, directory, opened, lazily=lazily)
        version = version_of(definition, stored)
    except FileNotFoundError as error:
        if not missing_is_damage:
            raise
        damage = damage_error("a file named in the manifest is missing", error.filename)
    except StorageError as error:
        if may_pass(error):
            raise
        damage = error
    else:
        batches = AppliedBatches.of(entry.batches)
        return RecoveredMap(definition, stored, version, entry.flushed, entry.flushed, batches=batches)
    return _damaged_map(definition, entry, damage)


def _damaged_map(definition: MapDefinition, entry: MapEntry, error: StorageError) -> RecoveredMap:
    damaged = DamagedMap(error, entry)
    return RecoveredMap(definition, (), version_of(definition, ()), entry.flushed, entry.flushed, damaged)
