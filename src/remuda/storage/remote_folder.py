"""Stores on a file system of `pyarrow.fs` (S3, Google Cloud Storage, HDFS, ...), used through a mirror on local disk.

A reader fetches the manifest and then every file that it names. Segments and their indexes never change, so they come
from the cache where it has them, and are compared with their checksums before they get there. From then on the reader
needs nothing of the remote store: the writer removes at once what its manifest no longer names, and a reader that
misses a file has read an old manifest, and reads it again.

A writer works on its mirror. A commit uploads the files that are new and then the manifest, in one put: that is the
commit. There is no write-ahead log, and no lock: see `publish`.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pf

from remuda.errors import StorageError
from remuda.storage.array_file import verify_array_file
from remuda.storage.manifest import NAME, Manifest, decode_manifest, encode_manifest, named_files
from remuda.storage.segment_file import digest
from remuda.storage.write_ahead_file import log_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.storage.file_cache import FileCache
    from remuda.storage.manifest import SegmentEntry

TRANSFERS = 8
"""Files that are fetched or uploaded at the same time."""

_PIECE = 8 << 20
_ATOMIC_PUTS = frozenset({"s3", "gcs", "abfs"})
"""File systems on which a file appears when it is closed, whole, in the place of the one before: object stores.

Tried with S3 alone. On all others the manifest is written beside the old one and moved.
"""
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")


class RemoteFolder:
    """`name` is how errors call it: without the secrets that its URI may hold."""

    def __init__(self, filesystem: Any, path: str, name: str, cache: FileCache) -> None:
        self.name = name
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._cache = cache
        self._mirror = cache.new_mirror()
        self._version = 0
        """Of the manifest that was fetched or published last; 0 if there is none."""
        self._present: frozenset[str] = frozenset()
        """The files that manifest names."""
        self._retired: frozenset[str] = frozenset()
        """Files in the mirror that the manifest before named, and that one does not."""

    @property
    def local(self) -> Path:
        """A folder that looks like the store as it was when it was fetched last."""
        return self._mirror.folder

    def fetch(self) -> bool:
        """Brings the mirror to the present state; False if there is no store.

        `FileNotFoundError` means that the writer was faster, and that it is worth to try again.
        """
        found = self._find_manifest()
        if found is None:
            return False
        raw, manifest = found
        files = dict(named_files(manifest))
        for name in files:
            if not all(_NAME.fullmatch(part) for part in name.split("/")):
                raise StorageError(f"the manifest names an impossible file: {name!r}", self.name)
        for folder in ("wal", *{str(Path(name).parent) for name in files}):
            (self.local / folder).mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._bring, files.items()))
        self._fetch_logs(manifest.first_log)
        (self.local / NAME).write_bytes(raw)
        for gone in self._retired - files.keys():
            (self.local / gone).unlink(missing_ok=True)
        # Until the store has gone over to the new state, its verification may look for files of the old one.
        self._retired = self._present - files.keys()
        self._version, self._present = manifest.version, frozenset(files)
        self._cache.make_room()
        return True

    def publish(self, manifest: Manifest) -> None:
        """Makes this the state of the remote store.

        No file system here can replace a file on condition that it is still the one that was read. So that there is one
        writer is up to whoever opens the store; a second one is noticed if it has committed before this commit begins.
        """
        found = self._find_manifest()
        if (0 if found is None else found[1].version) != self._version:
            raise StorageError("another process has written this store since it was opened here", self.name)
        files = dict(named_files(manifest))
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._upload, sorted(files.keys() - self._present)))
        self._put_manifest(encode_manifest(manifest))
        obsolete = self._present - files.keys()
        self._version, self._present = manifest.version, frozenset(files)
        self._remove(obsolete)

    def close(self) -> None:
        self._mirror.release()
        self._cache.make_room()

    def _find_manifest(self) -> tuple[bytes, Manifest] | None:
        """As it is there, and decoded; None if there is none.

        File systems ask for the size of a file before they read it. One that is replaced in between comes cut off, and
        otherwise the next time; damage stays as it is.
        """
        before = None
        while (raw := self._read_manifest()) is not None:
            try:
                return raw, decode_manifest(raw, f"{self.name}/{NAME}")
            except StorageError:
                if raw == before:
                    raise
            before = raw
        return None

    def _read_manifest(self) -> bytes | None:
        try:
            with self._filesystem.open_input_stream(f"{self._path}/{NAME}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            raise self._failed("the store cannot be read", error) from error

    def _bring(self, named: tuple[str, SegmentEntry | None]) -> None:
        name, rows = named
        destination = self.local / name
        if not destination.exists():
            self._cache.link(name.removeprefix("maps/"), destination, lambda path: self._download(name, path, rows))

    def _download(self, name: str, path: Path, rows: SegmentEntry | None) -> None:
        self._copy(name, path)
        if rows is not None:
            whole = digest(path) == (rows.row_bytes, rows.row_checksum)
        else:
            try:
                verify_array_file(path)
                whole = True
            except StorageError:
                whole = False
        if not whole:
            raise StorageError("the file is not as it was written", f"{self.name}/{name}")

    def _copy(self, name: str, path: Path) -> None:
        try:
            with self._filesystem.open_input_stream(f"{self._path}/{name}") as source, path.open("wb") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)
        except FileNotFoundError:
            raise FileNotFoundError(ENOENT, "missing", f"{self.name}/{name}") from None
        except (OSError, pa.ArrowException) as error:
            raise self._failed(f"{name} cannot be fetched", error) from error

    def _fetch_logs(self, first: int) -> None:
        """Of a store that was copied from a local folder: they are small, and not immutable."""
        folder = self.local / "wal"
        for old in folder.iterdir():
            old.unlink()
        listing = pf.FileSelector(f"{self._path}/wal", allow_not_found=True)
        try:
            found = {info.base_name for info in self._filesystem.get_file_info(listing)}
        except (OSError, pa.ArrowException) as error:
            raise self._failed("the write-ahead log cannot be listed", error) from error
        for name in found:
            if Path(name).stem.isdigit() and name >= log_path(folder, first).name:
                self._copy(f"wal/{name}", folder / name)

    def _upload(self, name: str) -> None:
        path = self.local / name
        try:
            self._make_folder(f"{self._path}/{Path(name).parent}")
            with path.open("rb") as source, self._filesystem.open_output_stream(f"{self._path}/{name}") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)
        except (OSError, pa.ArrowException) as error:
            raise self._failed(f"{name} cannot be uploaded", error) from error
        self._cache.keep(name.removeprefix("maps/"), path)

    def _put_manifest(self, raw: bytes) -> None:
        path = f"{self._path}/{NAME}"
        fresh = path if self._puts_are_atomic() else path + ".new"
        try:
            self._make_folder(self._path)
            with self._filesystem.open_output_stream(fresh) as stream:
                stream.write(raw)
            if fresh != path:
                self._filesystem.move(fresh, path)
        except (OSError, pa.ArrowException) as error:
            raise self._failed("the manifest cannot be written", error) from error

    def _make_folder(self, path: str) -> None:
        if not self._puts_are_atomic():
            self._filesystem.create_dir(path, recursive=True)

    def _puts_are_atomic(self) -> bool:
        filesystem = self._filesystem
        while isinstance(filesystem, pf.SubTreeFileSystem):
            filesystem = filesystem.base_fs
        return filesystem.type_name in _ATOMIC_PUTS

    def _remove(self, names: Iterable[str]) -> None:
        """What cannot be removed now stays: it costs space, nothing else."""
        for name in names:
            with suppress(OSError, pa.ArrowException):
                self._filesystem.delete_file(f"{self._path}/{name}")

    def _failed(self, what: str, error: Exception) -> StorageError:
        return StorageError(f"{what}: {str(error).splitlines()[0]}", self.name)
