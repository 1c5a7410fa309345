"""The lock against a second writer. The system gives it free when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from remuda.errors import FolderInUseError
from remuda.storage.folder.store_files import open_file

if TYPE_CHECKING:
    from pathlib import Path


HOLDER_BYTES = 20
"""Length of the file: the number of the process that has the lock, and spaces."""


class FolderLock:
    __slots__ = ("__weakref__", "_descriptor", "_end")

    def __init__(self, path: Path) -> None:
        self._descriptor = open_file(path, os.O_RDWR | os.O_CREAT, levels=0)
        # A grid that is dropped without being closed lets go of its folder, and so does one that fails to open.
        self._end = weakref.finalize(self, os.close, self._descriptor)
        try:
            self._take(path)
        except BaseException:
            self.release()
            raise

    def _take(self, path: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._descriptor, HOLDER_BYTES).decode("ascii", "replace").strip()
            if holder == str(os.getpid()):
                message = "the folder is open for writing by this process already: use that grid, or close it first"
            else:
                message = f"the folder is open for writing in process {holder or 'unknown'}"
            raise FolderInUseError(f"{message}; open it with read_only=True to read it", path.parent) from error
        # Whose it is helps those who find it taken; the lock holds without it.
        with suppress(OSError):  # As long each time: a file that is cut off is written at once when it is closed.
            os.pwrite(self._descriptor, f"{os.getpid()}".ljust(HOLDER_BYTES).encode(), 0)

    def is_at(self, path: Path) -> bool:
        """Tell whether the file that is locked is still the one at this path."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.stat())
        except OSError:
            return False

    def release(self) -> None:
        self._end()
        self._descriptor = -1
