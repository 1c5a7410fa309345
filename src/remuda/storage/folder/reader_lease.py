"""Leases: how readers in other processes tell the writer which state of the folder they use.

    readers/<id>.lease      the version of a manifest, in a file that its reader holds locked
    readers/<id>.until      the same, kept until the time that follows it, though no process holds it

A reader takes a lease on everything before it reads the manifest, and narrows it to that manifest's version when all
files are open. The system gives the lock free when a process ends, however it ends: a lease that can be locked is
abandoned, and is removed. A folder that a reader may not write is read without a lease: files that are mapped stay
readable all the same, only processes that would open them later, on behalf of this one, could find them gone.

Readers of other users may share the folder through its group. A lease takes the folder's permissions; one that the
writer still cannot read counts as held until it is `UNREADABLE_SECONDS` old, and one that it cannot remove stays.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.errors import StorageError
from remuda.storage.folder.store_files import create_file, list_files, make_folder, open_file, read_file, remove_file

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "readers"
LEVELS = 1
UNREADABLE_SECONDS = 24 * 3600.0
"""Age at which a lease that the writer may not read is taken for abandoned."""
_LEASE, _FRESH, _UNTIL = ".lease", ".fresh", ".until"
_NAME = re.compile(r"[0-9a-f]{16}(\.lease|\.fresh|\.until|\.fresh\.until)")
_EVERYTHING = 0
_TRIES = 10
_logger = logging.getLogger("remuda.storage")
_warned: set[Path] = set()
"""Leases that could not be removed, each reported once."""


class ReaderLease:
    """Keeps the files of a version from being removed.

    Held as long as the object lives; the versions that are read keep it.
    """

    __slots__ = ("__weakref__", "_descriptor", "_end")

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._end = weakref.finalize(self, _give_back, descriptor, path, os.getpid())

    def narrow(self, version: int) -> None:
        """Narrow the lease to what the manifest of this version names."""
        os.pwrite(self._descriptor, _content(version), 0)

    def release(self) -> None:
        self._end()


def take_lease(store: Path) -> ReaderLease | None:
    """Return a lease on everything; None where the folder cannot be written."""
    folder = store / FOLDER
    for _ in range(_TRIES):
        path = folder / (new_id() + _FRESH)
        try:
            make_folder(folder)
            descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, levels=LEVELS)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            os.write(descriptor, _content(_EVERYTHING))
            # The name by which the writer knows it comes last: what it finds locked is whole.
            held = path.with_suffix(_LEASE)
            path.rename(held)
        except OSError:
            # The writer took it for abandoned before it was locked.
            os.close(descriptor)
            continue
        return ReaderLease(descriptor, held)
    return None


def can_lease(store: Path) -> bool:
    """Tell whether this process may write leases, though one could not be written now: the disk may be full."""
    folder = store / FOLDER
    return os.access(folder if folder.exists() else store, os.W_OK)


def leave_lease(store: Path, version: int, seconds: float) -> None:
    """Leave a lease for processes that do not live yet, and cannot say when they will have begun: it ends by the clock.

    Spark plans a read in one process and runs it in others.
    """
    path = store / FOLDER / new_id()
    fresh = path.with_suffix(_FRESH + _UNTIL)
    with suppress(OSError):
        with create_file(fresh, levels=LEVELS) as file:
            file.write(f"{version} {time.time() + seconds}".encode())
        fresh.rename(path.with_suffix(_UNTIL))


def oldest_version_read(store: Path) -> int | None:
    """Return the least version that any living reader needs; None where there is no reader. Removes the leases of the
    dead."""
    versions: list[int] = []
    for name in list_files(store / FOLDER, levels=LEVELS, form=_NAME):
        path = store / FOLDER / name
        try:
            versions += _version_until(path) if path.suffix == _UNTIL else _version_held(path)
        except FileNotFoundError:
            continue
        except (OSError, StorageError) as error:
            versions += _version_of_unreadable(path, error)
    return min(versions, default=None)


def _version_until(path: Path) -> list[int]:
    with suppress(ValueError):
        version, end = read_file(path, levels=LEVELS).split()
        if float(end) > time.time():
            return [int(version)]
    if path.name.endswith(_FRESH + _UNTIL) and time.time() - path.lstat().st_mtime < UNREADABLE_SECONDS:
        return []  # it is being written
    _remove(path)
    return []


def _version_held(path: Path) -> list[int]:
    descriptor = open_file(path, os.O_RDONLY, levels=LEVELS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        content = os.read(descriptor, 20).strip()
        # Without a number it is one that has just been made, or not one of ours: everything is kept.
        return [int(content) if content.isdigit() else _EVERYTHING] if path.suffix == _LEASE else []
    else:
        _remove(path)
        return []
    finally:
        os.close(descriptor)


def _version_of_unreadable(path: Path, error: Exception) -> list[int]:
    _warn_once(path, f"a reader's lease cannot be read, and counts until it is a day old: {error}")
    with suppress(OSError):
        if time.time() - path.lstat().st_mtime < UNREADABLE_SECONDS:
            return [_EVERYTHING]
    return []


def _remove(path: Path) -> None:
    try:
        remove_file(path, levels=LEVELS)
    except OSError as error:
        _warn_once(path, f"a reader's lease that has ended cannot be removed: {error}")


def _warn_once(path: Path, message: str) -> None:
    if path not in _warned:
        _warned.add(path)
        _logger.warning("%s", message)


def _content(version: int) -> bytes:
    return f"{version:019d}\n".encode()


def _give_back(descriptor: int, path: Path, process: int) -> None:
    # A forked child shares the lock, but must not end the lease of its parent.
    if os.getpid() == process:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    os.close(descriptor)
