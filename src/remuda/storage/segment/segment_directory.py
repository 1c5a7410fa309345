"""Where a map keeps its segments: in a folder, or nowhere but in memory. The rest of the map need not know which."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from remuda.catalog import IndexDefinition, MapDefinition, new_id
from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.store_files import MAP_FILE, list_files
from remuda.storage.index.index_types import build_index
from remuda.storage.segment.array_file import array_file_damages, open_array_file, write_array_file
from remuda.storage.segment.checksum import no_pause
from remuda.storage.segment.lazy_segment import LazySegment
from remuda.storage.segment.segment_file import (
    LEVELS,
    SegmentFiles,
    SegmentInfo,
    index_path,
    open_segment,
    save_index,
    save_segment,
    segment_damages,
    segment_paths,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from remuda.storage.folder.disposal import Disposal
    from remuda.storage.remote.remote_location import RemoteLocation
    from remuda.storage.remote.remote_segments import RemoteSegments
    from remuda.storage.segment.segment import Segment


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment with the rows that are deleted for good. `info` and `deletion_file` are there if it is in a folder.

    `group` are the partitions, from and to before, of the partition group that it belongs to. None: of a map with one
    group, or a *run*, which has rows of several groups.
    """

    segment: Segment
    deleted: np.ndarray
    info: SegmentInfo | None = None
    deletion_file: str | None = None
    group: tuple[int, int] | None = None

    @property
    def live(self) -> int:
        return self.segment.rows - len(self.deleted)


class SegmentDirectory:
    """Adds, opens, verifies and discards the segments of a map.

    `folder` is None in memory; `disposal` takes what is not needed any more, and is there for the writer alone;
    `remote` is what the folder mirrors, if anything, and `fetched` opens the segments that are fetched from there;
    `when_opened` is called when a segment is opened after the map was.
    """

    __slots__ = ("_fetched", "_when_opened", "disposal", "folder", "remote")

    def __init__(
        self,
        folder: Path | None,
        disposal: Disposal | None = None,
        remote: RemoteLocation | None = None,
        fetched: RemoteSegments | None = None,
        when_opened: Callable[[], None] | None = None,
    ) -> None:
        self._fetched = fetched
        self._when_opened = when_opened
        self.folder = folder
        self.disposal = disposal
        self.remote = remote

    @property
    def committed_version(self) -> int | None:
        """Return the version of the manifest that was committed last; None where nothing is."""
        return None if self.disposal is None else self.disposal.version

    def add(self, segment: Segment) -> StoredSegment:
        """Keeps a new segment. In a folder it is used memory-mapped at once: the memory it was built in is freed."""
        if self.folder is None:
            return StoredSegment(segment, _nothing())
        return self.open(segment.definition, save_segment(self.folder, segment), verified=True)

    def add_all(self, segments: Iterable[Segment]) -> list[StoredSegment]:
        """Add all segments or none. No segment is held here while the next one is built."""
        added: list[StoredSegment] = []
        try:
            for segment in segments:
                added.append(self.add(segment))
                del segment
        except BaseException:
            self.discard(added, (), named=False)
            raise
        return added

    def open(
        self,
        definition: MapDefinition,
        info: SegmentInfo,
        deletion_file: str | None = None,
        *,
        verified: bool = False,
        lazily: bool = False,
    ) -> StoredSegment:
        """Open a segment; `lazily` its files are opened when it is first read."""
        assert self.folder is not None, "segments are opened from a folder"
        deleted = _nothing()
        if deletion_file is not None:
            deleted = open_array_file(self.folder / deletion_file, ("positions",)).arrays["positions"]
        if self._fetched is not None and not verified:
            segment: Segment = self._fetched.open(self.folder, definition, info)
        elif lazily:
            segment = LazySegment(self.folder, definition, info, when_opened=self._when_opened)
        else:
            segment = open_segment(self.folder, definition, info, verified=verified)
        return StoredSegment(segment, deleted, info, deletion_file)

    def take_over(self, definition: MapDefinition, info: SegmentInfo) -> StoredSegment:
        """Opens a segment that others wrote, with just the indexes that the map has by now."""
        present = {index.id for index in definition.indexes}
        stored = self.open(definition, replace(info, indexes=tuple(each for each in info.indexes if each in present)))
        for index in definition.indexes:
            if index.id not in info.indexes:
                stored = self.with_index(stored, index)
        return stored

    def restore(self, past: StoredSegment, definition: MapDefinition) -> StoredSegment:
        """Add a segment of a version again, with the indexes that the map has now.

        Its files get new names: what a root has stopped to name is never named again. They are hard links.
        """
        assert self.folder is not None, "versions are in a folder"
        info = past.info
        assert info is not None, "a segment of a version is in a folder"
        present = tuple(each.id for each in definition.indexes if each.id in info.indexes)
        fresh = replace(info, id=new_id(), indexes=present)
        old = segment_paths(self.folder, replace(info, indexes=present))
        names = list(zip(old, segment_paths(self.folder, fresh), strict=True))
        deletion_file = None
        if past.deletion_file is not None:
            deletion_file = f"{fresh.id}.{new_id()}.deleted"
            names.append((self.folder / past.deletion_file, self.folder / deletion_file))
        made: list[Path] = []
        try:
            for source, target in names:
                os.link(source, target, follow_symlinks=False)
                made.append(target)
            stored = replace(self.open(definition, fresh, deletion_file), group=past.group)
            for index in definition.indexes:
                if index.id not in present:
                    stored = self.with_index(stored, index)
        except BaseException:
            if self.disposal is not None:
                self.disposal.retire(made, 0)
            raise
        return stored

    def restore_all(self, past: Iterable[StoredSegment], definition: MapDefinition) -> list[StoredSegment]:
        """Add segments of a version again, all or none."""
        restored: list[StoredSegment] = []
        try:
            for each in past:
                stored = self.restore(each, definition)
                restored.append(stored)
        except BaseException:
            self.discard(restored, (), named=False)
            raise
        return restored

    def with_deleted(self, stored: StoredSegment, deleted: np.ndarray) -> StoredSegment:
        """Return the same segment with more rows deleted. The list is a file of its own, never changed."""
        if len(deleted) == len(stored.deleted):
            return stored
        name = None
        if self.folder is not None:
            name = f"{stored.segment.id}.{new_id()}.deleted"
            write_array_file(self.folder / name, {"positions": deleted.astype(np.uint32)})
        return replace(stored, deleted=deleted, deletion_file=name)

    def with_index(self, stored: StoredSegment, index: IndexDefinition) -> StoredSegment:
        self.verify_once(stored)
        arrays: Mapping[str, np.ndarray] = build_index(index, stored.segment.definition, stored.segment.batch)
        info = stored.info
        if self.folder is not None and info is not None:
            info = save_index(self.folder, info, index, arrays)
            arrays = open_array_file(index_path(self.folder, info.id, index.id)).arrays
        return replace(stored, segment=stored.segment.with_index(index, arrays), info=info)

    def with_index_everywhere(
        self, stored: Iterable[StoredSegment], index: IndexDefinition
    ) -> tuple[StoredSegment, ...]:
        """Build an index in all segments or in none."""
        made: list[StoredSegment] = []
        try:
            made.extend(self.with_index(each, index) for each in stored)
        except BaseException:
            for each in made:
                if self.folder is not None and self.disposal is not None:
                    self.disposal.retire([index_path(self.folder, each.segment.id, index.id)], 0)
            raise
        return tuple(made)

    def without_index(self, stored: StoredSegment, index: IndexDefinition) -> StoredSegment:
        """Leave an index out of a segment.

        Its file stays as long as the segment: a snapshot that others have been told of may still want it.
        """
        info = stored.info
        if info is not None:
            info = replace(info, indexes=tuple(each for each in info.indexes if each != index.id))
        return replace(stored, segment=stored.segment.without_index(index), info=info)

    def discard(self, before: Iterable[StoredSegment], after: Iterable[StoredSegment], *, named: bool = True) -> None:
        """Discard what the committed state no longer names: files are removed when no reader and no version has them.

        With `named=False` no state has named it, so that only this process can still use it.
        """
        before = list(before)
        if self.folder is None or self.disposal is None or not before:
            return
        version = self.disposal.version if named else 0
        needed = {each.segment.id: each for each in after}
        for old in before:
            kept = needed.get(old.segment.id)
            if kept is None:
                if isinstance(old.segment.hold, SegmentFiles):
                    old.segment.hold.mark_obsolete(self.disposal, version)
            elif old.deletion_file not in (None, kept.deletion_file):
                self.disposal.retire([self.folder / str(old.deletion_file)], version)

    def discard_deletions(self, before: Iterable[StoredSegment], after: Iterable[StoredSegment]) -> None:
        """Discard the files of deletions that no segment in `after` has, and that no state has named."""
        if self.folder is None or self.disposal is None:
            return
        needed = {None, *(each.deletion_file for each in after)}
        names = [each.deletion_file for each in before if each.deletion_file not in needed]
        self.disposal.retire((self.folder / str(name) for name in names), 0)

    def remove_orphans(self, known: Iterable[StoredSegment], others: Iterable[str], version: int) -> None:
        """Remove files that are not known to the manifest of this version: neither of these segments nor `others`."""
        if self.folder is None or self.disposal is None:
            return
        needed = {
            name for each in known if each.info is not None for name in _file_names(each.info, each.deletion_file)
        }.union(others)
        present = list_files(self.folder, levels=LEVELS, form=MAP_FILE)
        self.disposal.retire((self.folder / name for name in present if name not in needed), version, are_orphans=True)

    def verify(self, stored: StoredSegment, pause: Callable[[], None] = no_pause) -> None:
        """Compares every byte with its checksum."""
        for damage in self.damages(stored, pause):
            raise damage

    def damages(self, stored: StoredSegment, pause: Callable[[], None] = no_pause) -> Iterator[StorageError]:
        """Compare every byte with its checksum and yield what is damaged. A segment without damage is proven."""
        if self.folder is None or stored.info is None:
            return
        sound = True
        try:
            with stored.segment.whole_files(self.folder) as folder:
                deletions = None if stored.deletion_file is None else self.folder / stored.deletion_file
                for damage in _file_damages(folder, stored.info, deletions, pause):
                    sound = False
                    yield damage
        except FileNotFoundError as error:
            sound = False
            yield damage_error("a file of a segment is missing", error.filename)
        if sound:
            try:
                stored.segment.prove()
                stored.segment.check_positions(stored.deleted)
            except StorageError as error:
                yield error
                return
            if isinstance(stored.segment.hold, SegmentFiles):
                stored.segment.hold.verified = True
                stored.segment.use_proven()

    def verify_once(self, stored: StoredSegment) -> None:
        """Verify a segment unless that was done.

        Before rows are copied into other files: the checksums made there would vouch for damaged ones.
        """
        if not is_verified(stored):
            self.verify(stored)


def is_verified(stored: StoredSegment) -> bool:
    hold = stored.segment.hold
    return not isinstance(hold, SegmentFiles) or hold.verified


def _file_damages(
    folder: Path, info: SegmentInfo, deletions: Path | None, pause: Callable[[], None]
) -> Iterator[StorageError]:
    yield from segment_damages(folder, info, pause)
    if deletions is not None:
        yield from array_file_damages(deletions, pause)


def _file_names(info: SegmentInfo, deletion_file: str | None) -> set[str]:
    names = {path.name for path in segment_paths(Path(), info)}
    return names if deletion_file is None else names | {deletion_file}


def _nothing() -> np.ndarray:
    return np.empty(0, np.uint32)
