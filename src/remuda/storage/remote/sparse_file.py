"""A local file with the parts of a remote one that were fetched so far; all other bytes are holes.

    <name>              as long as the remote file, mapped by its readers
    <name>.present      its size (8 bytes), then a byte for each chunk: 1 where the chunk is there

Processes of one machine share both files. A chunk is marked when its bytes are written, so one that a killed process
was writing is fetched again, and two processes that fetch the same chunk write the same bytes. After a crash of the
machine a mark may be there and the bytes not: readers compare blocks with their checksums in any case (`block_guard`),
and a block that differs is read from the remote file once more.
"""

from __future__ import annotations

import os
import struct
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from threading import Condition
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.remote.remote_files import TRANSFERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

CHUNK_SHIFT = 16
CHUNK_BYTES = 1 << CHUNK_SHIFT
"""What is fetched at least: on a network such a request takes hardly longer than one of a few bytes."""
REQUEST_CHUNKS = 128
"""8 MiB: a longer range is fetched by several requests at the same time."""
GAP_CHUNKS = 4
"""Chunks between two that are needed which cost less than another request."""
_SIZE = struct.Struct("<Q")


_PRESENT = ".present"


def presence_path(path: Path) -> Path:
    return path.with_name(path.name + _PRESENT)


def is_presence(path: Path) -> bool:
    return path.suffix == _PRESENT


def remove_sparse(path: Path) -> None:
    """Remove both files. The marks go last: without them the other one is no sparse file."""
    path.unlink(missing_ok=True)
    presence_path(path).unlink(missing_ok=True)


def create_sparse(path: Path, size: int) -> None:
    """Make a file without a single chunk, in the place of the one that was there."""
    remove_sparse(path)
    presence_path(path).write_bytes(_SIZE.pack(size) + bytes(_chunks(size)))
    with path.open("wb") as file:
        file.truncate(size)


def is_sparse_file(path: Path) -> bool:
    """Tell whether both files are there and fit each other: a crash of the machine may have left one, or half."""
    try:
        size = path.stat().st_size
        with presence_path(path).open("rb") as file:
            found = file.read(_SIZE.size)
            return found == _SIZE.pack(size) and os.fstat(file.fileno()).st_size == _SIZE.size + _chunks(size)
    except FileNotFoundError:
        return False


class SparseFile:
    """Fetches what readers of one file need and is not there yet.

    `path` is a link of this object's own, so that the cache keeps the file; it goes with the object. `read` reads a
    range of the remote file, `turn` lets one process at a time fetch a chunk of this name, and `when_whole` is called
    when the last chunk has come. Without a `presence` nothing is missing.
    """

    __slots__ = (
        "__weakref__",
        "_busy",
        "_claimed",
        "_presence",
        "_present",
        "_read",
        "_turn",
        "_when_whole",
        "path",
        "shown",
        "size",
    )

    def __init__(
        self,
        path: Path,
        presence: Path | None,
        shown: str,
        read: Callable[[int, int], memoryview],
        turn: Callable[[int], AbstractContextManager[None]],
        when_whole: Callable[[], None],
    ) -> None:
        self.path = path
        self.shown = shown
        """How errors call the remote file."""
        self.size = path.stat().st_size
        self._presence = presence
        whole = b"\1" * _chunks(self.size)
        self._present = bytearray(whole if presence is None else presence.read_bytes()[_SIZE.size :])
        self._claimed = bytearray(len(self._present))
        """1 where a thread of this process is fetching a chunk."""
        self._busy = Condition()
        self._read = read
        self._turn = turn
        self._when_whole = when_whole
        # The folder that the link is in goes with its process; a forked child must not take it away.
        weakref.finalize(self, _unlink, path, os.getpid()).atexit = False

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing is left to be fetched."""
        return 0 not in self._present

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Make these ranges of bytes present."""
        fetch_all([(self, ranges)])

    def fetch_whole(self) -> None:
        self.fetch([(0, self.size)])

    def missing(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the requests by which these ranges become present: chunks from the first up to the last, left out."""
        runs: list[tuple[int, int]] = []
        for start, stop in sorted(ranges):
            if start >= stop:
                continue
            for first, last in self._absent(start >> CHUNK_SHIFT, (stop - 1 >> CHUNK_SHIFT) + 1):
                if runs and first <= runs[-1][1] + GAP_CHUNKS:
                    runs[-1] = runs[-1][0], max(last, runs[-1][1])
                else:
                    runs.append((first, last))
        for first, last in runs:
            yield from pairwise([*range(first, last, REQUEST_CHUNKS), last])

    def fetch_chunks(self, first: int, last: int) -> None:
        """Fetch the chunks of a range that are not there; wait for those that other threads are fetching."""
        with self._busy:
            while 1 in self._claimed[first:last]:
                self._busy.wait()
            if 0 not in self._present[first:last]:
                return
            self._claimed[first:last] = b"\1" * (last - first)
        try:
            with self._turn(first):
                self._look_again(first, last)
                self._fetch_absent(first, last)
        except OSError as error:
            message = f"the cache cannot be used: {error.strerror or error}"
            raise StorageError(message, self.path) from error
        finally:
            with self._busy:
                self._claimed[first:last] = bytes(last - first)
                self._busy.notify_all()
        if self.is_whole:
            self._when_whole()

    def repair(self, start: int, stop: int, is_sound: Callable[[memoryview], bool]) -> bool:
        """Read a range from the remote file again, and write it where it is as it should be; tell whether it was.

        Nothing is written otherwise: other readers may have compared what is here.
        """
        raw = self._read(start, stop)
        if not is_sound(raw):
            return False
        self._write([(start, raw)])
        return True

    def _absent(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        find = self._present.find
        while (begin := find(0, first, last)) >= 0:
            end = find(1, begin, last)
            first = last if end < 0 else end
            yield begin, first

    def _look_again(self, first: int, last: int) -> None:
        """Take over the marks of what other processes have fetched meanwhile."""
        assert self._presence is not None, "something is missing"
        with self._presence.open("rb") as file:
            file.seek(_SIZE.size + first)
            marks = file.read(last - first)
        for chunk, mark in enumerate(marks, first):
            if mark == 1:
                self._present[chunk] = 1

    def _fetch_absent(self, first: int, last: int) -> None:
        runs = list(self._absent(first, last))
        if not runs:
            return
        begin, end = runs[0][0] << CHUNK_SHIFT, min(runs[-1][1] << CHUNK_SHIFT, self.size)
        raw = self._read(begin, end)
        places = [(start << CHUNK_SHIFT, min(stop << CHUNK_SHIFT, self.size)) for start, stop in runs]
        self._write([(start, raw[start - begin : stop - begin]) for start, stop in places])
        assert self._presence is not None, "something was missing"
        with self._presence.open("rb+") as file:
            for start, stop in runs:
                file.seek(_SIZE.size + start)
                file.write(b"\1" * (stop - start))
        for start, stop in runs:
            self._present[start:stop] = b"\1" * (stop - start)

    def _write(self, pieces: Iterable[tuple[int, memoryview]]) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for start, raw in pieces:
                written = 0
                while written < len(raw):
                    written += os.pwrite(descriptor, raw[written:], start + written)
        finally:
            os.close(descriptor)


def fetch_all(wanted: Iterable[tuple[SparseFile, Sequence[tuple[int, int]]]]) -> None:
    """Make ranges of several files present, by several requests at the same time."""
    requests = [(file, *chunks) for file, ranges in wanted for chunks in file.missing(ranges)]
    if len(requests) == 1:
        file, first, last = requests[0]
        file.fetch_chunks(first, last)
    elif requests:
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(lambda request: request[0].fetch_chunks(*request[1:]), requests))


def _chunks(size: int) -> int:
    return -(-size // CHUNK_BYTES)


def _unlink(path: Path, process: int) -> None:
    if os.getpid() == process:
        with suppress(OSError):
            path.unlink()
