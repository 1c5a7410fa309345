"""A remote folder as other processes are told of it, a Spark task for one: they fetch the segments of a snapshot alone.

What is fetched goes through the cache of the machine that fetches. A process keeps one mirror for each cache, with
links to the segments that it was asked for last; names of segments are never given twice, so stores can share it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.remote.file_cache import FileCache, cache_folder
from remuda.storage.remote.remote_files import TRANSFERS, RemoteFiles
from remuda.storage.segment.segment_file import SegmentInfo, segment_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage.folder.process_folder import ProcessFolder

_fetching = Lock()


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """Plain data that pickles. `cache` is None where each machine has its own idea of it: see `cache_folder`."""

    files: RemoteFiles
    cache: str | None
    cache_bytes: int

    def open_cache(self) -> FileCache:
        return FileCache(cache_folder(self.cache), self.cache_bytes)

    def fetch_segments(self, map_id: str, infos: Sequence[SegmentInfo]) -> Path:
        """A folder with these segments of a map. Links to others go: the cache may need their room."""
        held = self.open_cache()
        with _fetching:
            folder = _mirror(cache_folder(self.cache), self.cache_bytes).path / map_id
            folder.mkdir(exist_ok=True)
            wanted = {
                path.name: info if path.suffix == ".arrow" else None
                for info in infos
                for path in segment_paths(Path(), info)
            }
            present = {path.name for path in folder.iterdir()}
            for name in present - wanted.keys():
                (folder / name).unlink()
            missing = wanted.keys() - present
            if missing:
                with ThreadPoolExecutor(TRANSFERS) as pool:
                    list(pool.map(lambda name: self._bring(held, folder, map_id, name, wanted[name]), missing))
                held.make_room()
        return folder

    def _bring(self, held: FileCache, folder: Path, map_id: str, name: str, rows: SegmentInfo | None) -> None:
        remote = f"maps/{map_id}/{name}"
        try:
            held.link(f"{map_id}/{name}", folder / name, lambda path: self.files.fetch(remote, path, rows))
        except FileNotFoundError as error:
            raise StorageError(
                "the store has been changed since the query began, and a file it needs is gone: refresh, and ask again",
                f"{self.files.name}/{remote}",
            ) from error


@cache
def _mirror(folder: Path, cache_bytes: int) -> ProcessFolder:
    return FileCache(folder, cache_bytes).new_mirror()
