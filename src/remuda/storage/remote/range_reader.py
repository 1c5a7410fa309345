"""Reads ranges of remote files. Each request is tried a few times, as one query may need thousands of them."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from remuda.errors import StorageError
from remuda.storage.commit.commit_retry import FileGoneError
from remuda.storage.remote.compressed_object import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.storage.remote.remote_files import RemoteFiles

Answer = TypeVar("Answer")

_TRIES = 4
_PAUSE = 0.1
"""Seconds before the second try, above those of the file system's own client; it doubles."""
_MOST_OPEN = 64
"""Files that are kept open: one that is opened again costs a request for its size, on some file systems a descriptor
as long as it is open."""


def gone_error(shown: str) -> FileGoneError:
    """Report a file that is named by the state which is read."""
    message = (
        "a file of the store is gone: the state that is read is older than the retention, or the store is damaged; "
        "refresh, and ask again"
    )
    return FileGoneError(message, shown)


class RangeReader:
    """Reads ranges of the files of one store, by any number of threads."""

    __slots__ = ("_files", "_lock", "_open")

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files
        self._open: OrderedDict[str, ObjectFile] = OrderedDict()
        self._lock = Lock()

    def size(self, name: str) -> int:
        """Return how many bytes a file has."""
        return self._try(name, lambda file: file.size())

    def read(self, name: str, start: int, stop: int) -> memoryview:
        """Return the bytes from `start` up to `stop`, all of them."""
        return self._try(name, lambda file: file.read(start, stop))

    def shown(self, name: str) -> str:
        """Return how errors call a file."""
        return f"{self._files.name}/{name}"

    def _try(self, name: str, use: Callable[[ObjectFile], Answer]) -> Answer:
        failure: Exception | None = None
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE * 2 ** (attempt - 1))
            try:
                return use(self._file(name))
            except FileNotFoundError as error:
                raise gone_error(self.shown(name)) from error
            except (OSError, pa.ArrowException) as error:
                self._forget(name)  # Opened anew it tells whether it is still there.
                failure = error
        reason = str(failure).splitlines()[0]
        raise StorageError(f"a file cannot be fetched: {reason}", self.shown(name)) from failure

    def _file(self, name: str) -> ObjectFile:
        with self._lock:
            found = self._open.get(name)
            if found is not None:
                self._open.move_to_end(name)
                return found
        opened = self._files.filesystem.open_input_file(f"{self._files.path}/{name}")
        found = ObjectFile(opened, self.shown(name))
        with self._lock:
            self._open[name] = found
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return found

    def _forget(self, name: str) -> None:
        with self._lock:
            self._open.pop(name, None)
