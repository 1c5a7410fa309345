"""The spill files of one run of a query: all of them are closed when it ends, in whatever way."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

from remuda.errors import ErrorCode, SqlError
from remuda.exec.spill.spill_file import SpillFile

if TYPE_CHECKING:
    from pathlib import Path


class SpillFolder:
    """Makes spill files in a folder, or in the system's temporary one; costs nothing as long as none is made."""

    __slots__ = ("_files", "_is_closed", "_lock", "_path")

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = Lock()
        self._is_closed = False
        self._files: WeakSet[SpillFile] | None = None

    def new_file(self) -> SpillFile:
        with self._lock:
            if self._is_closed:
                raise SqlError(ErrorCode.CANCELLED_BY_USER, "the query was cancelled")
            made = SpillFile(self._path)
            if self._files is None:
                self._files = WeakSet()
            self._files.add(made)
            return made

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            files = list(self._files or ())
        for each in files:
            each.close()
