"""A snapshot of a map: a version and a length of its memtable. It costs nothing to take and nothing disturbs it.

A snapshot can be described for readers in other processes, which memory-map the same segments (and keep them mapped
between calls) and get the few live rows of the memtable as Arrow bytes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import StorageError
from remuda.storage.memtable.memtable_source import MemtableSource
from remuda.storage.segment.deletion_vector import DeletionVector
from remuda.storage.segment.segment_builder import build_segment
from remuda.storage.segment.segment_directory import SegmentDirectory
from remuda.storage.segment.segment_file import SegmentInfo, open_segment
from remuda.storage.segment.segment_source import SegmentSource, source_class
from remuda.storage.state.map_version import MapVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.lookup.arrow_lookup import KeyedRows
    from remuda.storage.remote.remote_location import RemoteLocation
    from remuda.storage.row_source import Source
    from remuda.storage.segment.segment import Segment


MOST_ASKED = 16
"""Sources that are asked for the rows of some partitions whether or not they have any."""


MOST_REPEATED = 4
"""Tasks that are told each for itself of a segment that they read; of one that more of them read, all are."""


@dataclass(frozen=True, slots=True)
class DescribedSegments:
    """Describes segments as plain data that pickles; `deletions` has the deleted positions of each."""

    infos: tuple[SegmentInfo, ...] = ()
    deletions: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotDescription:
    """Describes a snapshot as plain data that pickles.

    `deletions` has the deleted positions of each segment; `remote` is where the segments come from that are in no
    folder which the other processes see.
    """

    folder: str
    definition: MapDefinition
    segments: tuple[SegmentInfo, ...]
    deletions: tuple[np.ndarray, ...]
    memtable_rows: bytes
    remote: RemoteLocation | None = None

    def with_segments(self, others: DescribedSegments) -> SnapshotDescription:
        """Return the description with further segments."""
        if not others.infos:
            return self
        segments, deletions = (*self.segments, *others.infos), (*self.deletions, *others.deletions)
        return replace(self, segments=segments, deletions=deletions)


class MapSnapshot:
    """Reads a map as it was at one moment.

    `version` and `length` say all; everything else is made when first asked for.
    """

    __slots__ = ("_directory", "_memtable", "_rows", "_sources", "keyed_memtable", "length", "version")

    def __init__(self, version: MapVersion, length: int, directory: SegmentDirectory | None = None) -> None:
        self.version = version
        self.length = length
        self._directory = directory
        self._sources: tuple[Source, ...] | None = None
        self._memtable: MemtableSource | None = None
        self._rows: int | None = None
        self.keyed_memtable: KeyedRows | None = None
        """The key table over the memtable, made by the first lookup of many keys."""

    @property
    def definition(self) -> MapDefinition:
        return self.version.definition

    @property
    def sources(self) -> tuple[Source, ...]:
        """Return a source for each segment, then one for the memtable if it has entries."""
        if self._sources is None:
            version = self.version
            self._sources = self._of(zip(version.segments, version.deletions, strict=True))
        return self._sources

    @property
    def memtable_source(self) -> MemtableSource | None:
        """Return the source of the memtable; None if it has no entries."""
        if self._memtable is None and self.length:
            self._memtable = MemtableSource(self.definition, self.version.columns, self.length)
        return self._memtable

    def _of(self, parts: Iterable[tuple[Segment, DeletionVector]]) -> tuple[Source, ...]:
        """Return the sources of some segments, and that of the memtable."""
        version, recent = self.version, self.memtable_source
        sources: list[Source] = [
            source_class(segment)(version.definition, segment, deletions, self.length, version.key_hash)
            for segment, deletions in parts
        ]
        return tuple(sources) if recent is None else (*sources, recent)

    def sources_of(self, partitions: np.ndarray | None) -> Sequence[Source]:
        """Return the sources that can have rows of these partitions (ascending ids; None: all).

        Of few sources all: each of them finds out by itself. Of many the others are not opened.
        """
        version = self.version
        if partitions is None or version.segment_count + bool(self.length) <= MOST_ASKED:
            return self.sources
        found = self._of(version.parts_of(partitions)) if version.by_group else self.sources
        return [each for each in found if not isinstance(each, SegmentSource) or each.covers(partitions)]

    @property
    def sampled_source(self) -> Source | None:
        """Return the largest of the sources of which a sample of rows may be taken."""
        return max(self._of(self.version.sampled_parts()), key=lambda each: each.rows, default=None)

    @property
    def rows(self) -> int:
        """Return the exact number of live rows."""
        if self._rows is None:
            recent = self.memtable_source
            self._rows = self.version.segment_rows(self.length) + (0 if recent is None else recent.rows)
        return self._rows

    def describe(self) -> SnapshotDescription:
        """Describe the snapshot for another process. The caller keeps this one, and so the files, meanwhile."""
        version = self.version
        parts = zip(version.infos, version.deletions, strict=True)
        return self._described_memtable().with_segments(self._described(parts))

    def describe_for(self, shares: Sequence[np.ndarray]) -> tuple[SnapshotDescription, list[DescribedSegments]]:
        """Describe the snapshot for tasks that each read some partitions: what all are told, and each for itself.

        The shares have disjoint partitions in ascending order.
        """
        parts = list(self.version.described_parts(np.concatenate([np.empty(0, np.int64), *shares])))
        shared, own = _divided([(segment.first_partition, segment.last_partition) for _, segment, _ in parts], shares)
        described = [(info, deletions) for info, _, deletions in parts]
        header = self._described_memtable().with_segments(self._described(described[number] for number in shared))
        return header, [self._described(described[number] for number in numbers) for numbers in own]

    def _described_memtable(self) -> SnapshotDescription:
        """Describe the snapshot without its segments."""
        if self._directory is None or self._directory.folder is None:
            raise StorageError(
                f"{self.definition.name} is in the memory of this process: open a folder to read it from others",
                sqlstate="55000",
            )
        names = [column.name for column in self.definition.columns]
        memtable_rows = b""
        if (recent := self.memtable_source) is not None:
            batch = recent.read(names, 0, self.length)
            memtable_rows = batch_to_bytes(batch) if batch.num_rows else b""
        folder, remote = str(self._directory.folder), self._directory.remote
        return SnapshotDescription(folder, self.definition, (), (), memtable_rows, remote)

    def _described(self, parts: Iterable[tuple[SegmentInfo, DeletionVector]]) -> DescribedSegments:
        """Describe segments without statistics, which planning has used: they are nearly all that is known of one."""
        parts = list(parts)
        return DescribedSegments(
            tuple(replace(info, summaries={}) for info, _ in parts),
            tuple(deletions.positions(self.length).astype(np.uint32) for _, deletions in parts),
        )


def _divided(spans: Sequence[tuple[int, int]], shares: Sequence[np.ndarray]) -> tuple[list[int], list[list[int]]]:
    """Return the numbers of the segments that many tasks read, and those that each task reads beside them.

    >>> _divided([(0, 9), (0, 1), (5, 9)], [np.array([0, 1]), np.array([2, 3]), np.array([6, 7, 8])])
    ([0], [[1], [], [2]])
    """
    own: list[list[int]] = [[] for _ in shares]
    busy = [task for task, share in enumerate(shares) if len(share)]
    first = np.array([shares[task][0] for task in busy], np.int64)
    last = np.array([shares[task][-1] for task in busy], np.int64)
    ends = np.array(spans, np.int64).reshape(-1, 2)
    starts, stops = np.searchsorted(last, ends[:, 0]), np.searchsorted(first, ends[:, 1], side="right")
    shared: list[int] = []
    for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        if stop - start > min(MOST_REPEATED, len(busy) // 2):
            shared.append(number)
        else:
            for task in busy[start:stop]:
                own[task].append(number)
    return shared, own


def open_snapshot(description: SnapshotDescription) -> MapSnapshot:
    """Return the described snapshot, in any process that sees the folder, or the remote one."""
    definition, folder = description.definition, Path(description.folder)
    opened: Callable[[Path, MapDefinition, SegmentInfo], Segment] = open_segment
    if description.remote is not None:
        fetched = description.remote.segments()
        folder, opened = fetched.folder / definition.id, fetched.open
        fetched.let_go = partial(_forget_all, fetched.folder)
        _forget_others(folder, description)
    segments = [_cached_segment(folder, definition, info, opened) for info in description.segments]
    deletions = [
        DeletionVector(segment.rows, positions)
        for segment, positions in zip(segments, description.deletions, strict=True)
    ]
    if description.memtable_rows:
        recent = build_segment(definition, batch_from_bytes(description.memtable_rows), indexes=False)
        segments.append(recent)
        deletions.append(DeletionVector(recent.rows))
    version = MapVersion(definition, segments, deletions, infos=description.segments)
    return MapSnapshot(version, 0, SegmentDirectory(folder, remote=description.remote))


def batch_to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def batch_from_bytes(raw: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(raw).read_next_batch()


_MAPPED: dict[tuple[str, str, str], tuple[frozenset[str], Segment]] = {}
"""Segments that this process has mapped, by folder, map and segment, each with the indexes it was opened with."""

_MOST_MAPPED = 1024


def _forget_others(folder: Path, description: SnapshotDescription) -> None:
    """Let go of the segments of a map that were asked for before: the cache may need their room."""
    wanted = {info.id for info in description.segments}
    for key in [key for key in _MAPPED if key[:2] == (str(folder), description.definition.id)]:
        if key[2] not in wanted:
            _MAPPED.pop(key, None)


def _forget_all(mirror: Path) -> None:
    """Let go of all segments that are not read just now."""
    for key in [key for key in _MAPPED if Path(key[0]).is_relative_to(mirror)]:
        _MAPPED.pop(key, None)


def _cached_segment(
    folder: Path,
    definition: MapDefinition,
    info: SegmentInfo,
    opened: Callable[[Path, MapDefinition, SegmentInfo], Segment],
) -> Segment:
    key = (str(folder), definition.id, info.id)
    found = _MAPPED.get(key)
    if found is None or not found[0] >= set(info.indexes):
        while len(_MAPPED) >= _MOST_MAPPED:
            _MAPPED.pop(next(iter(_MAPPED)))
        found = _MAPPED[key] = (frozenset(info.indexes), opened(folder, definition, info))
    return found[1]
