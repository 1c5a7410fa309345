"""A bounded folder of immutable files that were fetched from elsewhere, shared by all processes of a machine.

    files/<name>            what was fetched; whole from the moment it has this name
    blocks/<name>           what is fetched by the block, and which blocks are there (`sparse_file`)
    mirrors/<id>/           a store as one process sees it: links to files, and what is its own
    mirrors/<id>.lock       held by that process
    turns/<number>          held by the process that fetches one of the files with that number

A process links the files that it uses into its mirror. So no other process that makes room can remove them, and the
number of links tells which files are unused. A mirror goes with its process (`process_folder`).
"""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.errors import StorageError
from remuda.storage.folder.process_folder import ProcessFolder, remove_abandoned
from remuda.storage.remote.sparse_file import create_sparse, is_presence, is_sparse_file, presence_path, remove_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CACHE_BYTES = 16 << 30
"""What is kept by default beyond what is in use."""

_FRESH = ".fresh"
_BLOCK = 512
"""Bytes of what the system counts as a block on the disk: holes take none."""
_TURNS = 256
"""Many more than are fetched at a time, so that two different files seldom have the same turn."""
_ABANDONED_SECONDS = 24 * 3600.0
"""Age at which a file that was never fetched to its end belongs to a process that is dead."""


def cache_folder(given: str | Path | None = None) -> Path:
    """Return the folder of the cache: as given, else where the user of this machine keeps caches."""
    chosen = given or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "remuda"
    return Path(chosen).expanduser().absolute()


class FileCache:
    """`limit` is in bytes. Files in use are never removed: as long as they are more than the limit, so is the cache."""

    __slots__ = ("_blocks", "_files", "_limit", "_mirrors", "_turns")

    def __init__(self, folder: Path, limit: int = CACHE_BYTES) -> None:
        self._files = folder / "files"
        self._blocks = folder / "blocks"
        self._mirrors = folder / "mirrors"
        self._turns = folder / "turns"
        self._limit = limit
        try:
            self._files.mkdir(parents=True, exist_ok=True)
            self._blocks.mkdir(exist_ok=True)
            self._mirrors.mkdir(exist_ok=True)
            self._turns.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"the cache cannot be written: {error.strerror}", folder) from error

    def new_mirror(self) -> ProcessFolder:
        remove_abandoned(self._mirrors)
        self.make_room()
        return ProcessFolder(self._mirrors)

    def link(self, name: str, destination: Path, fetch: Callable[[Path], None]) -> None:
        """Puts the file of this name there; `fetch` writes it if it is not in the cache, or raises.

        Of all who want a file that is not there, on this machine, one fetches it: a query on Spark begins with every
        slot of an executor asking for the same segments.
        """
        held = self._files / name
        while not _link(held, destination):
            with self.turn(name):
                if _link(held, destination):
                    return
                fresh = self._files / (new_id() + _FRESH)
                try:
                    fetch(fresh)
                    held.parent.mkdir(exist_ok=True)
                    fresh.replace(held)
                finally:
                    fresh.unlink(missing_ok=True)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Held by one process and thread at a time for a name, and for some others that it must not wait for long."""
        descriptor = os.open(self._turns / str(zlib.crc32(name.encode()) % _TURNS), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def keep(self, name: str, path: Path) -> None:
        """Adds a file that was made here."""
        held = self._files / name
        held.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            os.link(path, held)

    def link_sparse(self, name: str, destination: Path, size: Callable[[], int]) -> Path | None:
        """Put a file there of which any part may be missing, and return where it is said which parts are present.

        None if nothing is missing.
        """
        if _link(self._files / name, destination):
            return None
        held = self._blocks / name
        held.parent.mkdir(exist_ok=True)
        length = None if is_sparse_file(held) else size()
        with self.turn(name):
            if not is_sparse_file(held):
                create_sparse(held, size() if length is None else length)
            _link(held, destination)
        return presence_path(held)

    def drop_sparse(self, name: str) -> None:
        """Remove a file of which parts are present. Processes that have it linked go on with it."""
        with self.turn(name):
            remove_sparse(self._blocks / name)

    @property
    def limit(self) -> int:
        return self._limit

    @property
    def folder(self) -> Path:
        return self._files.parent

    def make_room(self) -> bool:
        """Remove unused files, the longest unused ones first, until the rest is within the limit.

        Return False where it is not: more than that is in use.
        """
        total, unused = 0, []
        for path in [*self._files.rglob("*"), *self._blocks.rglob("*")]:
            with suppress(FileNotFoundError):  # Another process makes room too.
                found = path.stat()
                if path.is_dir():
                    continue
                size = found.st_blocks * _BLOCK
                total += size
                if is_presence(path):
                    continue  # It goes with its file.
                if found.st_nlink == 1 and (path.suffix != _FRESH or _is_abandoned(found.st_mtime)):
                    unused.append((found.st_mtime, size, path))
        for _, size, path in sorted(unused):
            if total <= self._limit:
                break
            self._remove_unused(path)
            total -= size
        return total <= self._limit

    def _remove_unused(self, path: Path) -> None:
        """Remove a file, unless a process has linked it meanwhile."""
        if not path.is_relative_to(self._blocks):
            path.unlink(missing_ok=True)
            return
        with suppress(FileNotFoundError), self.turn(str(path.relative_to(self._blocks))):
            if path.stat().st_nlink == 1:
                remove_sparse(path)


def _link(held: Path, destination: Path) -> bool:
    """False if the file is not there."""
    try:
        os.utime(held)  # For `make_room`: this one was needed last.
        os.link(held, destination)
    except FileNotFoundError:
        return False
    return True


def _is_abandoned(modified: float) -> bool:
    return modified < time.time() - _ABANDONED_SECONDS
