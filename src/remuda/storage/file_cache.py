"""A bounded folder of immutable files that were fetched from elsewhere, shared by all processes of a machine.

    files/<name>            what was fetched; whole from the moment it has this name
    mirrors/<id>/           a store as one process sees it: links to files, and what is its own
    mirrors/<id>.lock       held by that process

Whoever uses a file links it into its mirror. So it cannot be lost to others who make room, and what nobody uses is
told by its number of links. The system gives the lock of a process free when that ends, however it ends: a mirror whose
lock can be taken is nobody's, and is removed.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from contextlib import suppress
from shutil import rmtree
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CACHE_BYTES = 16 << 30
"""What is kept by default beyond what is in use."""

_FRESH, _LOCK = ".fresh", ".lock"
_ABANDONED_SECONDS = 24 * 3600.0
"""Age at which a file that was never fetched to its end belongs to a process that is dead."""


class FileCache:
    """`limit` is in bytes. Files in use are never removed: as long as they are more than the limit, so is the cache."""

    __slots__ = ("_files", "_limit", "_mirrors")

    def __init__(self, folder: Path, limit: int = CACHE_BYTES) -> None:
        self._files = folder / "files"
        self._mirrors = folder / "mirrors"
        self._limit = limit
        try:
            self._files.mkdir(parents=True, exist_ok=True)
            self._mirrors.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"the cache cannot be written: {error.strerror}", folder) from error

    def new_mirror(self) -> Mirror:
        self._remove_abandoned()
        return Mirror(self._mirrors)

    def link(self, name: str, destination: Path, fetch: Callable[[Path], None]) -> None:
        """Puts the file of this name there; `fetch` writes it if it is not in the cache, or raises."""
        held = self._files / name
        while True:
            with suppress(FileNotFoundError):
                os.utime(held)  # For `make_room`: this one was needed last.
                os.link(held, destination)
                return
            fresh = self._files / (new_id() + _FRESH)
            try:
                fetch(fresh)
                held.parent.mkdir(exist_ok=True)
                # Another process may have been faster: both files are the same.
                fresh.replace(held)
            finally:
                fresh.unlink(missing_ok=True)

    def keep(self, name: str, path: Path) -> None:
        """Adds a file that was made here."""
        held = self._files / name
        held.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            os.link(path, held)

    def make_room(self) -> None:
        """Removes files that nobody uses, the longest unused ones first, until the rest is within the limit."""
        total, unused = 0, []
        for path in self._files.rglob("*"):
            with suppress(FileNotFoundError):  # Another process makes room too.
                found = path.stat()
                if path.is_dir():
                    continue
                total += found.st_size
                if found.st_nlink == 1 and (path.suffix != _FRESH or _is_abandoned(found.st_mtime)):
                    unused.append((found.st_mtime, found.st_size, path))
        for _, size, path in sorted(unused):
            if total <= self._limit:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _remove_abandoned(self) -> None:
        for lock in self._mirrors.glob("*" + _LOCK):
            with suppress(OSError):
                descriptor = os.open(lock, os.O_RDWR)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    rmtree(lock.with_suffix(""), ignore_errors=True)
                    lock.unlink()
                finally:
                    os.close(descriptor)
        self.make_room()


class Mirror:
    """A folder for one process, removed when it is released or the object is gone."""

    __slots__ = ("__weakref__", "_end", "folder")

    def __init__(self, parent: Path) -> None:
        self.folder = parent / new_id()
        fresh, lock = self.folder.with_suffix(_FRESH), self.folder.with_suffix(_LOCK)
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The name by which others know it comes last: a lock that they find is held.
        fresh.rename(lock)
        self.folder.mkdir()
        self._end = weakref.finalize(self, _remove_mirror, descriptor, self.folder, lock, os.getpid())

    def release(self) -> None:
        """Files that are mapped stay readable."""
        self._end()


def _remove_mirror(descriptor: int, folder: Path, lock: Path, process: int) -> None:
    # A forked child shares the lock, but must not take its parent's mirror away.
    if os.getpid() == process:
        rmtree(folder, ignore_errors=True)
        lock.unlink(missing_ok=True)
    os.close(descriptor)


def _is_abandoned(modified: float) -> bool:
    return modified < time.time() - _ABANDONED_SECONDS
