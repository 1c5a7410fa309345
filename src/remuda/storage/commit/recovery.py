"""The state of a folder as its files tell it: the manifest, its segments, and the write-ahead log on top.

Nothing is installed here. A reader that refreshes goes on with the state before until the one after is complete.
"""

from __future__ import annotations

from errno import ENOENT
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.catalog import Catalog
from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.disk_errors import may_pass
from remuda.storage.folder.manifest import (
    NAME,
    Manifest,
    MapEntry,
    map_definition,
    read_manifest,
    segment_info,
    view_definition,
)
from remuda.storage.state.map_version import MapVersion, erase_keys, key_maker, put_rows, version_of
from remuda.storage.wal.log_file import LogFile, log_path, read_log
from remuda.storage.wal.records import PUT, decode_record, restore
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.execution_pin import ExecutionPin
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo


Made = TypeVar("Made")


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
    stored: tuple[StoredSegment, ...]
    version: MapVersion
    flushed: int
    applied: int
    damaged: DamagedMap | None = None

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
    directory_of: Callable[[MapDefinition], SegmentDirectory],
    opened: Callable[[str], Sequence[StoredSegment]],
    *,
    missing_is_damage: bool,
    pin: ExecutionPin | None = None,
) -> Recovered:
    """Read the state of a folder.

    `opened` gives the segments of a map that are open already, and need not be opened again.

    With a pin the state is that of the pin instead of the present one.

    A file that is missing is damage for a writer. A reader may have been overtaken by the writer, and tries again.
    """
    manifest = read_manifest(folder) if pin is None else pin.manifest
    maps = {
        entry.id: _recovered_map(
            folder / NAME, entry, directory_of, opened(entry.id), missing_is_damage=missing_is_damage
        )
        for entry in manifest.maps
    }
    files = list(read_log(folder / "wal", manifest.first_log, manifest.safe_log))
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


def _recovered_map(
    manifest_path: Path,
    entry: MapEntry,
    directory_of: Callable[[MapDefinition], SegmentDirectory],
    opened: Sequence[StoredSegment],
    *,
    missing_is_damage: bool,
) -> RecoveredMap:
    """Open the segments of a map.

    A map with a damaged file is there, and says so when it is used: the other maps of the store go on.

    A file that the system cannot open just now is not damaged: opening the store fails, and can be tried again.
    """
    definition = _understood(manifest_path, map_definition, entry)
    directory = directory_of(definition)
    try:
        infos = [_understood(manifest_path, segment_info, each, definition) for each in entry.segments]
        stored = _opened_segments(entry, infos, definition, directory, opened)
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
        return RecoveredMap(definition, stored, version, entry.flushed, entry.flushed)
    return _damaged_map(definition, entry, damage)


def _damaged_map(definition: MapDefinition, entry: MapEntry, error: StorageError) -> RecoveredMap:
    damaged = DamagedMap(error, entry)
    return RecoveredMap(definition, (), version_of(definition, ()), entry.flushed, entry.flushed, damaged)


def _opened_segments(
    entry: MapEntry,
    infos: Sequence[SegmentInfo],
    definition: MapDefinition,
    directory: SegmentDirectory,
    opened: Sequence[StoredSegment],
) -> tuple[StoredSegment, ...]:
    by_id = {each.segment.id: each for each in opened}
    stored = []
    for each, info in zip(entry.segments, infos, strict=True):
        held = by_id.get(each.id)
        if held is None or (held.info, held.deletion_file) != (info, each.deletion_file):
            held = directory.open(definition, info, each.deletion_file)
        stored.append(held)
    return tuple(stored)
