"""A segment whose files are elsewhere: nothing is fetched before it is read.

Opening fetches the headers and what is as small, an index when it is first asked. From then on the guards of the files
fetch the blocks that they verify; what reads many blocks says so before, so that they come at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from remuda.errors import StorageError, is_damage
from remuda.storage.segment.array_file import open_array_file
from remuda.storage.segment.column_fetch import fetch_columns
from remuda.storage.segment.lazy_segment import LazySegment, add_guards
from remuda.storage.segment.read_ahead import ReadAhead
from remuda.storage.segment.segment_file import SegmentFiles, index_path, open_rows, segment_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.segment.block_guard import BlockSource
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_file import SegmentInfo

_ROW_BLOCK_SHIFT = 11
"""Values of eight bytes that lie in one block of checksums, as a power of two."""


Opened = TypeVar("Opened")


class SegmentSources(Protocol):
    """The files of the segments of a remote store, as far as they are on this machine."""

    def source_of(self, path: Path, size: int | None = None) -> BlockSource | None:
        """Return what fetches a file; None where the whole file is at that path."""

    def open_heads(self, paths: Sequence[tuple[Path, int | None]]) -> None:
        """Fetch where files begin and end, all at the same time."""

    def forget(self, paths: Iterable[Path]) -> None:
        """Give up what was fetched of files that were found to be damaged."""

    def temporary_folder(self, map_id: str) -> AbstractContextManager[Path]:
        """Make a folder that links to files of a map can be put into, and remove it."""


class RemoteSegment(LazySegment):
    """Opens its files when it is first read, and fetches what is read of them."""

    __slots__ = ("_ahead", "_sources")

    is_remote = True

    def __init__(self, folder: Path, definition: MapDefinition, info: SegmentInfo, sources: SegmentSources) -> None:
        super().__init__(folder, definition, info)
        self._sources = sources
        self._ahead: dict[tuple[str, ...], ReadAhead] = {}

    def _open_files(self) -> None:
        rows_path, keys_path, *_ = paths = segment_paths(self._folder, self._info)
        self._sources.open_heads([(rows_path, self._info.row_bytes), (keys_path, None)])
        rows = _opened_or_anew(
            self._sources,
            paths[:2],
            lambda: open_rows(self._folder, self.definition, self._info, self._source_of),
        )
        assert isinstance(self.hold, SegmentFiles), "it was made with them"
        add_guards(self.hold, rows.guards)
        self.partition_offsets = rows.keys["partition_offsets"]
        self.key_table = rows.keys["table"]
        self.zone_arrays = rows.zone_arrays
        self.index_arrays = _IndexFiles(self._folder, self._info, self._sources, self.hold)
        self.batch = rows.batch

    def _source_of(self, path: Path) -> BlockSource | None:
        return self._sources.source_of(path, self._info.row_bytes if path.suffix == ".arrow" else None)

    # Reading: what many blocks are needed for is fetched at once

    def expect(self, columns: Sequence[str], ranges: Sequence[tuple[int, int]]) -> None:
        self._ahead[tuple(columns)] = ReadAhead(ranges)

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        if not self.proven:
            ahead = self._ahead.get(tuple(columns))
            rows = [slice(start, stop)] if ahead is None else ahead.wanted(start, stop)
            if rows:
                self._fetch(self.definition.positions(tuple(columns)), rows, whole_dictionaries=True)
        return super().read(columns, start, stop)

    def take(self, columns: Sequence[str], positions: np.ndarray) -> pa.RecordBatch:
        if not self.proven and len(positions):
            self.check_positions(positions)
            self._fetch(self.definition.positions(tuple(columns)), [positions], whole_dictionaries=True)
        return super().take(columns, positions)

    def column(self, number: int) -> pa.Array:
        if not self.proven:
            self._fetch([number], [slice(0, self.rows)], whole_dictionaries=True)
        return super().column(number)

    def fetch_rows(self, numbers: Sequence[int], positions: np.ndarray) -> None:
        if not self.proven and len(positions):
            self.check_positions(positions)
            self._fetch(numbers, [positions], whole_dictionaries=False)

    def row_fetcher(self, numbers: Sequence[int]) -> Callable[[np.ndarray], None] | None:
        """Return what fetches rows before they are read value by value; asked for the same blocks it does nothing."""
        if self.proven:
            return None
        fetched = bytearray((self.rows >> _ROW_BLOCK_SHIFT) + 1)

        def fetch(positions: np.ndarray) -> None:
            blocks = [position >> _ROW_BLOCK_SHIFT for position in positions.tolist()]
            if not all(0 <= block < len(fetched) and fetched[block] for block in blocks):
                self.fetch_rows(numbers, positions)  # refuses positions that are no rows
                for block in blocks:
                    fetched[block] = 1

        return fetch

    def _fetch(self, numbers: Sequence[int], rows: Sequence[slice | np.ndarray], *, whole_dictionaries: bool) -> None:
        columns = [self.batch.column(number) for number in numbers]
        fetch_columns(columns, rows, self.hold, whole_dictionaries=whole_dictionaries)

    # With other indexes: a segment of its own over the same files

    def with_index(self, definition: IndexDefinition, arrays: Mapping[str, np.ndarray]) -> Segment:  # noqa: ARG002 - read from its file
        return self._with_index_ids((*self._info.indexes, definition.id))

    def without_index(self, definition: IndexDefinition) -> Segment:
        return self._with_index_ids(tuple(each for each in self._info.indexes if each != definition.id))

    def unopened(self) -> Segment:
        return RemoteSegment(self._folder, self.definition, self._info, self._sources)

    def _with_index_ids(self, indexes: tuple[str, ...]) -> Segment:
        return RemoteSegment(self._folder, self.definition, replace(self._info, indexes=indexes), self._sources)

    # All of it, for those who verify or copy it

    @property
    def is_whole(self) -> bool:
        """Tell whether all files are on this machine: then they can be verified without fetching anything."""
        if self.is_open:
            index_files = self.index_arrays
            if not isinstance(index_files, _IndexFiles) or index_files.all_open:
                return all(getattr(each, "is_whole", True) for each in self._all_sources())
        return False

    @contextmanager
    def whole_files(self, folder: Path) -> Iterator[Path]:
        """Fetch all files, blocks that are damaged here anew, and give a folder that has them meanwhile."""
        self._fetch_all()
        self._repair()
        sources = self._fetch_all()  # A file whose header was damaged has been given up.
        with self._sources.temporary_folder(self.definition.id) as whole:
            for path, source in zip(segment_paths(folder, self._info), sources, strict=True):
                os.link(path if source is None else source.path, whole / path.name)
            yield whole

    def _fetch_all(self) -> list[BlockSource | None]:
        sources = self._all_sources()
        for source in sources:
            if source is not None:
                source.fetch([(0, source.size)])
        return sources

    def _repair(self) -> None:
        """Read blocks again that differ from their checksums; damage that stays is told by those who look for it."""
        with suppress(StorageError):
            for index_id in self.index_arrays:
                self.index_arrays[index_id]
            for guard in getattr(self.hold, "guards", ()):
                guard.check_all()

    def _all_sources(self) -> list[BlockSource | None]:
        return [self._source_of(path) for path in segment_paths(self._folder, self._info)]


class _IndexFiles(Mapping[str, Mapping[str, np.ndarray]]):
    """The arrays of each index by its id, opened when they are first asked for.

    It does not hold the segment, which holds it: the cache waits for the last reference to go.
    """

    def __init__(self, folder: Path, info: SegmentInfo, sources: SegmentSources, hold: SegmentFiles) -> None:
        self._folder = folder
        self._info = info
        self._sources = sources
        self._hold = hold
        self._opened: dict[str, Mapping[str, np.ndarray]] = {}
        self._lock = Lock()

    @property
    def all_open(self) -> bool:
        return len(self._opened) == len(self)

    def __getitem__(self, index_id: str) -> Mapping[str, np.ndarray]:
        found = self._opened.get(index_id)
        if found is None:
            if index_id not in self._info.indexes:
                raise KeyError(index_id)
            with self._lock:
                found = self._opened.get(index_id) or self._open(index_id)
                self._opened[index_id] = found
        return found

    def _open(self, index_id: str) -> Mapping[str, np.ndarray]:
        path, sources = index_path(self._folder, self._info.id, index_id), self._sources
        sources.open_heads([(path, None)])
        opened = _opened_or_anew(sources, [path], lambda: open_array_file(path, (), sources.source_of(path)))
        add_guards(self._hold, [opened.guard])
        return opened.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._info.indexes)

    def __len__(self) -> int:
        return len(self._info.indexes)


def _opened_or_anew(sources: SegmentSources, paths: Sequence[Path], open_files: Callable[[], Opened]) -> Opened:
    """Open files; where that finds damage, which may be that of the copy on this machine, once more from afar."""
    try:
        return open_files()
    except StorageError as error:
        if not is_damage(error):
            raise
        sources.forget(paths)
        return open_files()
