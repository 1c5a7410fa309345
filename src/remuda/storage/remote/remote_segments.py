"""The segments of a remote store on this machine: sparse files in the shared cache, fetched block by block."""

from __future__ import annotations

import gc
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from shutil import rmtree
from threading import Lock, Thread
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from remuda.catalog import new_id
from remuda.storage.remote.range_reader import RangeReader
from remuda.storage.remote.remote_files import TRANSFERS
from remuda.storage.remote.sparse_file import SparseFile, fetch_all
from remuda.storage.segment.remote_segment import RemoteSegment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.process_folder import ProcessFolder
    from remuda.storage.remote.file_cache import FileCache
    from remuda.storage.remote.remote_files import RemoteFiles
    from remuda.storage.segment.segment_file import SegmentInfo

_LINKS = "blocks"
"""The folder of a mirror that has the links to what is in use."""


_ROOM_SHARE = 8
"""The cache is looked at whenever a process has fetched this part of its limit: an eighth."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
"""Seconds between two tries to bring the cache within its limit; a pause is twice as long as the one before."""
_fetched: Counter[Path] = Counter()
"""The bytes that this process has fetched into each cache since it looked at it."""


class RemoteSegments:
    """Opens segments of one remote store, each file at most once at a time."""

    def __init__(self, files: RemoteFiles, cache: FileCache, mirror: ProcessFolder) -> None:
        self._ranges = RangeReader(files)
        self._cache = cache
        self._mirror = mirror
        self._links = mirror.path / _LINKS
        self._links.mkdir(exist_ok=True)
        self.folder = mirror.path / "maps"
        """Where the folders of the maps are."""
        self._open: WeakValueDictionary[str, SparseFile] = WeakValueDictionary()
        self._lock = Lock()
        self.when_whole: Callable[[], None] = _do_nothing
        """What is called when all of a file has come: the segment may be proven then."""
        self._making_room = Lock()
        self.let_go: Callable[[], None] | None = None
        """What gives up segments of this process that no query is reading, so that the cache can remove their files."""

    def open(self, folder: Path, definition: MapDefinition, info: SegmentInfo) -> RemoteSegment:
        """Return a segment of which nothing is read yet. What stands in the folder already is used there."""
        return RemoteSegment(folder, definition, info, self)

    def source_of(self, path: Path, size: int | None = None) -> SparseFile | None:
        """Return what fetches a file, of which the size may be known; None where the whole file is at that path."""
        name = f"{path.parent.name}/{path.name}"
        found = self._open.get(name)
        if found is None and not path.exists():
            made = self._make(name, size)
            with self._lock:
                found = self._open.setdefault(name, made)
        return found

    def open_heads(self, paths: Sequence[tuple[Path, int | None]]) -> None:
        """Fetch where files begin and end, all at the same time."""
        with ThreadPoolExecutor(TRANSFERS) as pool:
            opened = list(pool.map(lambda each: self.source_of(*each), paths))
        fetch_all([(each, [(0, 1), (each.size - 1, each.size)]) for each in opened if each is not None])

    def forget(self, paths: Iterable[Path]) -> None:
        """Give up what was fetched of files that were found to be damaged."""
        for path in paths:
            name = f"{path.parent.name}/{path.name}"
            with self._lock:
                self._open.pop(name, None)
            self._cache.drop_sparse(name)

    @contextmanager
    def temporary_folder(self, map_id: str) -> Iterator[Path]:
        """Make a folder that links to files of a map can be put into, and remove it."""
        made = self._links / new_id()
        folder = made / "maps" / map_id  # Errors name files by their paths.
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            rmtree(made, ignore_errors=True)

    def _read(self, name: str, start: int, stop: int) -> memoryview:
        raw = self._ranges.read(name, start, stop)
        cache, folder = self._cache, self._cache.folder
        with self._lock:
            _fetched[folder] += stop - start
            is_much = _fetched[folder] * _ROOM_SHARE >= cache.limit
            if is_much:
                _fetched[folder] = 0
        if is_much:
            # This thread may hold locks of the store, which letting go takes.
            Thread(target=self._make_room, name="remuda-cache", daemon=True).start()
        return raw

    def _make_room(self) -> None:
        """Bring the cache within its limit, by files of this process where others do not do.

        Queries under way keep the files that they read: it is tried again until they have ended.
        """
        if not self._making_room.acquire(blocking=False):
            return
        try:
            with suppress(OSError):  # Its folder is removed.
                pause = _FIRST_PAUSE
                while not self._cache.make_room() and (let_go := self.let_go) is not None:
                    let_go()
                    gc.collect()  # Operators of queries that have ended can hold segments in cycles.
                    if self._cache.make_room():
                        return
                    time.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            self._making_room.release()

    def _make(self, name: str, size: int | None) -> SparseFile:
        remote, link = f"maps/{name}", self._links / new_id()
        presence = self._cache.link_sparse(name, link, lambda: self._ranges.size(remote) if size is None else size)
        return SparseFile(
            link,
            presence,
            self._ranges.shown(remote),
            lambda start, stop: self._read(remote, start, stop),
            lambda chunk: self._cache.turn(f"{name} {chunk}"),
            self.when_whole,
        )


def _do_nothing() -> None:
    pass
