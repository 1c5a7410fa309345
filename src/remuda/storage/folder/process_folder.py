"""Folders that belong to one process and go when it has ended, however it ended.

    <id>/           the folder
    <id>.lock       held by its process

The system gives the lock of a process free when that ends: a folder whose lock can be taken is abandoned.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from shutil import rmtree
from typing import TYPE_CHECKING

from remuda.catalog import new_id

if TYPE_CHECKING:
    from pathlib import Path

_FRESH, _LOCK = ".fresh", ".lock"


class ProcessFolder:
    """Owns a folder of one process.

    Made in `parent`, and removed when it is released or the object is gone.
    """

    __slots__ = ("__weakref__", "_end", "path")

    def __init__(self, parent: Path) -> None:
        self.path = parent / new_id()
        fresh, lock = self.path.with_suffix(_FRESH), self.path.with_suffix(_LOCK)
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The name by which others know it comes last: a lock that they find is held.
        fresh.rename(lock)
        self.path.mkdir()
        self._end = weakref.finalize(self, _remove, descriptor, self.path, lock, os.getpid())

    def release(self) -> None:
        """Remove the folder; files that are mapped stay readable."""
        self._end()


def remove_abandoned(parent: Path) -> None:
    """Removes the folders of processes that have ended without doing so."""
    for lock in parent.glob("*" + _LOCK):
        with suppress(OSError):
            descriptor = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink()
            finally:
                os.close(descriptor)


def _remove(descriptor: int, folder: Path, lock: Path, process: int) -> None:
    # A forked child shares the lock, but must not take its parent's folder away.
    if os.getpid() == process:
        rmtree(folder, ignore_errors=True)
        lock.unlink(missing_ok=True)
    os.close(descriptor)
