"""The manifest: what a folder holds, as one JSON file replaced by atomic rename. The only place where definitions are
written down and read back.

    REMUDA 1 <checksum>
    {"version": 9, "partitions": 271, "catalog_version": 3, "first_log": 2, "maps": [...]}
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from decimal import Decimal
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from remuda.catalog import ColumnDefinition, IndexDefinition, IndexType, MapDefinition, ViewDefinition
from remuda.errors import OutcomeUnknownError, StorageError, damage_error
from remuda.storage.folder.store_files import (
    DELIVERY_ID,
    ID,
    SEGMENT_FILE,
    SEGMENT_ID,
    create_file,
    read_file,
    remove_file,
)
from remuda.storage.segment.column_summary import ColumnSummary
from remuda.storage.segment.segment_file import SegmentInfo, files_of
from remuda.storage.wal.log_file import sync_folder
from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 1
NAME = "MANIFEST"
_HEAD = "REMUDA"
MOVED = b"REMUDA 2 roots\nThe states of this store are in roots/.\n"
"""Stands in the place of the manifest of a remote store with numbered roots: versions that know none refuse it."""


class ColumnEntry(msgspec.Struct, frozen=True):
    name: str
    kind: str
    precision: int
    scale: int
    nullable: bool
    hidden: bool
    length: int | None = None


class IndexEntry(msgspec.Struct, frozen=True):
    id: str
    name: str
    columns: tuple[str, ...]
    kind: str


class SummaryEntry(msgspec.Struct, frozen=True):
    rows: int
    nulls: int
    distinct: int
    minimum: Any
    maximum: Any
    histogram: list[Any]
    common: list[tuple[Any, int]] = []
    up_to: list[float] = []
    """Manifests of earlier versions have neither of the last two."""


class SegmentEntry(msgspec.Struct, frozen=True):
    id: str
    rows: int
    indexes: tuple[str, ...]
    row_bytes: int
    row_checksum: str
    summaries: dict[str, SummaryEntry]
    deletion_file: str | None


class MapEntry(msgspec.Struct, frozen=True):
    id: str
    schema: str
    name: str
    columns: list[ColumnEntry]
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    partitions: int
    replicated: bool
    indexes: list[IndexEntry]
    flushed: int = msgspec.field(name="folded")
    segments: list[SegmentEntry]


class ViewEntry(msgspec.Struct, frozen=True):
    id: str
    schema: str
    name: str
    text: str
    search_path: tuple[str, ...]
    columns: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True):
    """Describes the committed state of a folder.

    `version` counts the manifests of the folder; `first_log` is the number of the first write-ahead file that is
    needed; `safe_log` a file's number and the length of it that was synced when the manifest was written; `sequence` a
    record number that all new ones must be above; `deliveries` has those that are applied and may not be answered.
    """

    version: int
    partitions: int
    catalog_version: int
    first_log: int
    safe_log: tuple[int, int]
    sequence: int
    maps: list[MapEntry]
    views: list[ViewEntry] = []
    deliveries: tuple[str, ...] = ()


class Root(Manifest, frozen=True):
    """A manifest of a remote store.

    `commit` is the id of the commit that made it, by which a writer recognises its own. `has_log` says that a
    write-ahead log belongs to it, as to a store that was copied from a local folder and that no process has written.
    """

    commit: str = ""
    has_log: bool = False


AnyManifest = TypeVar("AnyManifest", bound=Manifest)


class UnsyncedManifestError(OutcomeUnknownError):
    """The manifest is in its place, but a crash may leave this one or the one before."""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    replace_manifest(folder, manifest)
    try:
        sync_folder(folder)
    except OSError as error:
        message = (
            "it is unknown whether the statement is durable, the manifest could not be made durable: "
            f"{error.strerror}; the maps can be read, and written again once the folder is opened anew"
        )
        raise UnsyncedManifestError(message, folder / NAME) from error


def replace_manifest(folder: Path, manifest: Manifest) -> None:
    """Puts it in its place; its name there is durable only once the folder is synced."""
    path, fresh = folder / NAME, folder / (NAME + ".new")
    try:
        with create_file(fresh, levels=0) as file:
            file.write(encode_manifest(manifest))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            remove_file(fresh, levels=0)
        raise StorageError(f"the manifest cannot be written: {error.strerror}", path) from error


def read_manifest(folder: Path) -> Manifest:
    path = folder / NAME
    return decode_manifest(read_file(path, levels=0), path)


def encode_manifest(manifest: Manifest) -> bytes:
    body = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    return f"{_HEAD} {FORMAT} {zlib.crc32(body):08x}\n".encode() + body


def decode_manifest(raw: bytes, path: Path | str, form: type[AnyManifest] = Manifest) -> AnyManifest:  # type: ignore[assignment]
    """Decode a manifest; `path` is where it was read, for errors."""
    head, _, body = raw.partition(b"\n")
    words = head.decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != _HEAD:
        raise damage_error("not a manifest", path, 0)
    if raw == MOVED:
        message = "this is a copy of a remote store, which is not opened as a local folder"
        raise StorageError(message, path, sqlstate="0A000")
    if words[1] != str(FORMAT):
        raise StorageError(f"the folder has format {words[1]}, this version reads {FORMAT}", path, 0, sqlstate="0A000")
    if words[2] != f"{zlib.crc32(body):08x}":
        raise damage_error("the manifest is damaged", path, len(head) + 1)
    try:
        manifest = msgspec.json.decode(body, type=form)
        _check_names(manifest)
    except (msgspec.DecodeError, ValueError) as error:
        raise damage_error(f"the manifest cannot be read: {error}", path, len(head) + 1) from error
    return manifest


def _check_names(manifest: Manifest) -> None:
    """Raise `ValueError` for an id that was not made by `new_id`: names of files are made of ids.

    A checksum guards against damage, not against an attacker who writes a manifest by hand.
    """
    for entry in manifest.maps:
        check_map_names(entry)
    for delivery in manifest.deliveries:
        _check_form(DELIVERY_ID, delivery)
    for view in manifest.views:
        _check_form(ID, view.id)


def check_map_names(entry: MapEntry) -> None:
    """Raise `ValueError` for an id of a map, an index or a segment that a store does not give."""
    for each in (entry.id, *(index.id for index in entry.indexes)):
        _check_form(ID, each)
    for segment in entry.segments:
        _check_form(SEGMENT_ID, segment.id)
        for each in segment.indexes:
            _check_form(ID, each)
        if segment.deletion_file is not None:
            _check_form(SEGMENT_FILE, segment.deletion_file)


def _check_form(form: re.Pattern[str], name: str) -> None:
    if not form.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is no name that a store gives")


def named_files(manifest: Manifest) -> Iterator[tuple[str, SegmentEntry | None]]:
    """Yield the files of all segments by their names within the store; the rows of a segment with its entry."""
    for held in manifest.maps:
        folder = PurePosixPath("maps", held.id)
        for segment in held.segments:
            rows, *others = files_of(folder, segment.id, segment.indexes)
            if segment.deletion_file is not None:
                others.append(folder / segment.deletion_file)
            yield str(rows), segment
            yield from ((str(other), None) for other in others)


def map_entry(definition: MapDefinition, flushed: int, segments: list[tuple[SegmentInfo, str | None]]) -> MapEntry:
    types = {column.name: column.type for column in definition.columns}
    return MapEntry(
        definition.id,
        definition.schema,
        definition.name,
        [
            ColumnEntry(
                each.name,
                each.type.name,
                each.type.precision,
                each.type.scale,
                each.nullable,
                each.hidden,
                each.length,
            )
            for each in definition.columns
        ],
        definition.key,
        definition.partitioned_by,
        definition.partitions,
        definition.replicated,
        [IndexEntry(each.id, each.name, each.columns, each.type.value) for each in definition.indexes],
        flushed,
        [_segment_entry(info, deletion_file, types) for info, deletion_file in segments],
    )


def map_definition(entry: MapEntry) -> MapDefinition:
    return MapDefinition(
        entry.id,
        entry.schema,
        entry.name,
        tuple(
            ColumnDefinition(
                each.name, SqlType.named(each.kind, each.precision, each.scale), each.nullable, each.hidden, each.length
            )
            for each in entry.columns
        ),
        entry.key,
        entry.partitioned_by,
        entry.partitions,
        entry.replicated,
        tuple(IndexDefinition(each.id, each.name, each.columns, IndexType[each.kind]) for each in entry.indexes),
    )


def view_entry(view: ViewDefinition) -> ViewEntry:
    return ViewEntry(view.id, view.schema, view.name, view.text, view.search_path, view.columns)


def view_definition(entry: ViewEntry) -> ViewDefinition:
    return ViewDefinition(entry.id, entry.schema, entry.name, entry.text, entry.search_path, entry.columns)


def segment_info(entry: SegmentEntry, definition: MapDefinition) -> SegmentInfo:
    types = {column.name: column.type for column in definition.columns}
    summaries = {
        name: ColumnSummary(
            each.rows,
            each.nulls,
            each.distinct,
            _from_text(types[name], each.minimum),
            _from_text(types[name], each.maximum),
            tuple(_from_text(types[name], end) for end in each.histogram),
            tuple((_from_text(types[name], value), count) for value, count in each.common),
            tuple(each.up_to),
        )
        for name, each in entry.summaries.items()
    }
    return SegmentInfo(entry.id, entry.rows, entry.indexes, entry.row_bytes, entry.row_checksum, summaries)


def _segment_entry(info: SegmentInfo, deletion_file: str | None, types: dict[str, SqlType]) -> SegmentEntry:
    summaries = {
        name: SummaryEntry(
            each.rows,
            each.nulls,
            each.distinct,
            _to_text(types[name], each.minimum),
            _to_text(types[name], each.maximum),
            [_to_text(types[name], end) for end in each.histogram],
            [(_to_text(types[name], value), count) for value, count in each.common],
            list(each.up_to),
        )
        for name, each in info.summaries.items()
    }
    return SegmentEntry(info.id, info.rows, info.indexes, info.row_bytes, info.row_checksum, summaries, deletion_file)


def _to_text(sql_type: SqlType, value: Any) -> Any:
    """Encode values for JSON: what it cannot hold, or not exactly, becomes a string."""
    if value is None:
        return None
    match sql_type.kind:
        case Kind.DECIMAL:
            return str(value)
        case Kind.REAL | Kind.DOUBLE:
            return float(value).hex()
        case Kind.VARBINARY:
            return value.hex()
        case _:
            return value


def _from_text(sql_type: SqlType, value: Any) -> Any:
    if value is None:
        return None
    match sql_type.kind:
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.REAL | Kind.DOUBLE:
            return float.fromhex(value)
        case Kind.VARBINARY:
            return bytes.fromhex(value)
        case _:
            return value
