"""Leases: how readers in other processes tell the writer which state of the folder they use.

    readers/<id>.lease      the version of a manifest, in a file that its reader holds locked
    readers/<id>.until      the same, kept until the time that follows it, though nobody holds it

A reader takes a lease on everything before it reads the manifest, and narrows it to that manifest's version when all
files are open. The system gives the lock free when a process ends, however it ends: a lease that can be locked is
nobody's, and is removed. A folder that a reader may not write is read without a lease: files that are mapped stay
readable all the same, only processes that would open them later, on behalf of this one, could find them gone.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from remuda.catalog import new_id

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "readers"
_LEASE, _FRESH, _UNTIL = ".lease", ".fresh", ".until"
_EVERYTHING = 0
_TRIES = 10


class ReaderLease:
    """Held as long as the object lives; whoever uses the state keeps it."""

    __slots__ = ("__weakref__", "_descriptor", "_end")

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._end = weakref.finalize(self, _give_back, descriptor, path, os.getpid())

    def narrow(self, version: int) -> None:
        """From now on only what the manifest of this version names is needed."""
        os.pwrite(self._descriptor, _content(version), 0)

    def release(self) -> None:
        self._end()


def take_lease(store: Path) -> ReaderLease | None:
    """A lease on everything; None where the folder cannot be written."""
    folder = store / FOLDER
    for _ in range(_TRIES):
        path = folder / (new_id() + _FRESH)
        try:
            folder.mkdir(exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
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


def leave_lease(store: Path, version: int, seconds: float) -> None:
    """A lease for processes that do not live yet, and cannot say when they will have begun: it ends by the clock.

    Spark plans a read in one process and runs it in others.
    """
    path = store / FOLDER / new_id()
    fresh = path.with_suffix(_FRESH + _UNTIL)
    with suppress(OSError):
        fresh.write_text(f"{version} {time.time() + seconds}")
        fresh.rename(path.with_suffix(_UNTIL))


def oldest_version_read(store: Path) -> int | None:
    """The least version that any living reader needs; None where there is no reader. Removes the leases of the dead."""
    versions = []
    with suppress(FileNotFoundError):
        for path in (store / FOLDER).iterdir():
            if path.suffix == _UNTIL:
                versions.extend(_version_if_valid(path))
                continue
            content = _content_if_held(path)
            if content is not None and path.suffix == _LEASE:
                versions.append(int(content or _EVERYTHING))
    return min(versions, default=None)


def _version_if_valid(path: Path) -> list[int]:
    with suppress(OSError, ValueError):
        version, end = path.read_text().split()
        if float(end) > time.time():
            return [int(version)]
        path.unlink(missing_ok=True)
    return []


def _content_if_held(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 20)
    else:
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(descriptor)


def _content(version: int) -> bytes:
    return f"{version:019d}\n".encode()


def _give_back(descriptor: int, path: Path, process: int) -> None:
    # A forked child shares the lock, but must not end the lease of its parent.
    if os.getpid() == process:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    os.close(descriptor)
