"""The manifest: what a folder holds, in two levels. A root, one file replaced by atomic rename, and the files of the
partition groups that it names (`group_file`).

    REMUDA 4 <checksum>
    the root in MessagePack: version, log, views, maps with their definitions and groups

Format 3 has neither the deleted rows of groups nor the statistics of maps. Format 2 has one group for each map, and is
the same otherwise. Format 1 has all of it in the root, in JSON (`manifest_format_1`). All are read as they are, and the
first commit writes this format; a map gets what format 3 lacks by the first commit that changes it.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec

from remuda.errors import OutcomeUnknownError, StorageError, damage_error
from remuda.storage.folder import manifest_format_1
from remuda.storage.folder.definition_entries import MapEntry, ViewEntry, check_map_names
from remuda.storage.folder.store_files import DELIVERY_ID, ID, check_form, create_file, read_file, remove_file
from remuda.storage.wal.log_file import sync_folder

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 4
NAME = "MANIFEST"
MOST_BYTES = 1 << 30
"""Size of the largest root that is read: ten million groups."""
_HEAD = "REMUDA"
MOVED = b"REMUDA 2 roots\nThe states of this store are in roots/.\n"
"""Stands in the place of the manifest of a remote store with numbered roots: versions that know none refuse it."""


class Manifest(msgspec.Struct, frozen=True):
    """Describes the committed state of a folder: the root.

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
    data_version: int = 0
    """The number of the first root that had the same maps and views: see `kept_versions`. 0: the same as `version`."""
    committed: int = 0
    """When that root was committed, in microseconds since 1970 in UTC. 0: by an earlier version, which did not say."""


class Root(Manifest, frozen=True):
    """A root of a remote store.

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
    return decode_manifest(read_file(path, levels=0, most=MOST_BYTES), path)


def encode_manifest(manifest: Manifest) -> bytes:
    body = msgspec.msgpack.encode(manifest)
    return f"{_HEAD} {FORMAT} {zlib.crc32(body):08x}\n".encode() + body


def decode_manifest(raw: bytes, path: Path | str, form: type[AnyManifest] = Manifest) -> AnyManifest:  # type: ignore[assignment]
    """Decode a root; `path` is where it was read, for errors."""
    head, _, body = raw.partition(b"\n")
    words = head[:100].decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != _HEAD:
        raise damage_error("not a manifest", path, 0)
    if raw == MOVED:
        message = "this is a copy of a remote store, which is not opened as a local folder"
        raise StorageError(message, path, sqlstate="0A000")
    if words[1] not in _DECODERS:
        message = f"the folder has format {words[1]}, this version reads {', '.join(_DECODERS)}"
        raise StorageError(message, path, 0, sqlstate="0A000")
    if words[2] != f"{zlib.crc32(body):08x}":
        raise damage_error("the manifest is damaged", path, len(head) + 1)
    try:
        manifest: AnyManifest = _DECODERS[words[1]](body, form)
        _check_names(manifest)
    except (msgspec.DecodeError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise damage_error(f"the manifest cannot be read: {error}", path, len(head) + 1) from error
    return manifest


def _decode(body: bytes, form: type[AnyManifest]) -> AnyManifest:
    return msgspec.msgpack.decode(body, type=form)


_DECODERS = {"1": manifest_format_1.decode, "2": _decode, "3": _decode, "4": _decode}


def _check_names(manifest: Manifest) -> None:
    """Raise `ValueError` for an id that was not made by `new_id`: names of files are made of ids.

    A checksum guards against damage, not against an attacker who writes a manifest by hand.
    """
    for entry in manifest.maps:
        check_map_names(entry)
    for delivery in manifest.deliveries:
        check_form(DELIVERY_ID, delivery)
    for view in manifest.views:
        check_form(ID, view.id)
