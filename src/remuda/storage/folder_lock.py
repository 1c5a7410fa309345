"""The lock against a second writer. The system gives it free when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from remuda.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path


class FolderInUseError(StorageError):
    """Another process has the folder open for writing."""


class FolderLock:
    __slots__ = ("_descriptor",)

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise FolderInUseError(
                f"the folder is open for writing in process {holder}; open it with read_only=True to read it",
                path.parent,
            ) from error
        except BaseException:
            os.close(self._descriptor)
            raise
        # Whose it is helps those who find it taken; the lock holds without it.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def is_at(self, path: Path) -> bool:
        """Whether the file that is locked is still the one at this path."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.stat())
        except OSError:
            return False

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
