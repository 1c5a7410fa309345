"""Stores on a file system of `pyarrow.fs` (S3, Google Cloud Storage, HDFS, ...), used through a mirror on local disk.

A reader fetches the manifest and then every file that it names. Segments and their indexes never change, so they come
from the cache where it has them, and are compared with their checksums before they get there. From then on the reader
needs nothing of the remote store: the writer removes at once what its manifest no longer names, and a reader that
misses a file has read an old manifest, and reads it again.

A writer works on its mirror. A commit uploads the files that are new and then the manifest, in one put: that is the
commit. There is no write-ahead log, and no lock: see `publish`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.folder.manifest import NAME, Manifest, decode_manifest, encode_manifest, named_files
from remuda.storage.remote.remote_files import TRANSFERS
from remuda.storage.wal.log_file import log_path

if TYPE_CHECKING:
    from remuda.storage.folder.manifest import SegmentEntry
    from remuda.storage.remote.remote_location import RemoteLocation


class RemoteFolder:
    def __init__(self, place: RemoteLocation) -> None:
        self.place = place
        self._files = place.files
        self._cache = place.open_cache()
        self._mirror = self._cache.new_mirror()
        self._version = 0
        """Of the manifest that was fetched or published last; 0 if there is none."""
        self._present: frozenset[str] = frozenset()
        """The files that manifest names."""
        self._retired: frozenset[str] = frozenset()
        """Files in the mirror that the manifest before named, and that one does not."""

    @property
    def name(self) -> str:
        """How errors call it."""
        return self._files.name

    @property
    def local(self) -> Path:
        """A folder that looks like the store as it was when it was fetched last."""
        return self._mirror.path

    def fetch(self) -> bool:
        """Brings the mirror to the present state; False if there is no store.

        `FileNotFoundError` means that the writer was faster, and that it is worth to try again.
        """
        found = self._find_manifest()
        if found is None:
            return False
        raw, manifest = found
        files = dict(named_files(manifest))
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
            raise StorageError(
                "another process has written this store since it was opened here", self.name, sqlstate="40001"
            )
        files = dict(named_files(manifest))
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._upload, sorted(files.keys() - self._present)))
        self._files.replace(NAME, encode_manifest(manifest))
        obsolete = self._present - files.keys()
        self._version, self._present = manifest.version, frozenset(files)
        self._files.remove(obsolete)

    def close(self) -> None:
        self._mirror.release()
        self._cache.make_room()

    def _find_manifest(self) -> tuple[bytes, Manifest] | None:
        """As it is there, and decoded; None if there is none.

        File systems ask for the size of a file before they read it. One that is replaced in between comes cut off, and
        otherwise the next time; damage stays as it is.
        """
        before = None
        while (raw := self._files.read(NAME)) is not None:
            try:
                return raw, decode_manifest(raw, f"{self.name}/{NAME}")
            except StorageError:
                if raw == before:
                    raise
            before = raw
        return None

    def _bring(self, named: tuple[str, SegmentEntry | None]) -> None:
        name, rows = named
        destination = self.local / name
        if not destination.exists():
            self._cache.link(name.removeprefix("maps/"), destination, lambda path: self._files.fetch(name, path, rows))

    def _fetch_logs(self, first: int) -> None:
        """Of a store that was copied from a local folder: they are small, and not immutable."""
        folder = self.local / "wal"
        for old in folder.iterdir():
            old.unlink()
        for name in self._files.list("wal"):
            if Path(name).stem.isdigit() and name >= log_path(folder, first).name:
                self._files.copy(f"wal/{name}", folder / name)

    def _upload(self, name: str) -> None:
        path = self.local / name
        self._files.upload(path, name)
        self._cache.keep(name.removeprefix("maps/"), path)
