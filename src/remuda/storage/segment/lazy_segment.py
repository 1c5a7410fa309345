"""A segment whose files are opened when it is first read.

A map of many segments is opened and planned by what its group files say. Each file that is mapped costs a tenth of a
millisecond and one of the mappings that the system gives a process.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from remuda.errors import damage_error
from remuda.storage.segment.segment import Segment
from remuda.storage.segment.segment_file import SegmentFiles, open_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.segment.block_guard import BlockGuard
    from remuda.storage.segment.segment_file import SegmentInfo

_OPENED = frozenset({"batch", "partition_offsets", "key_table", "index_arrays", "zone_arrays"})
"""What is not there before the files are opened."""

_adding = Lock()
"""Held while guards are added to those of a segment."""


class LazySegment(Segment):
    """Opens its files when it is first read. What the manifest says of it is known without them.

    `hold` guards the files; another segment over the same files may have it as well. `when_opened` is called when the
    files are open, and not verified.
    """

    __slots__ = ("_folder", "_info", "_opening", "_when_opened")

    def __init__(
        self,
        folder: Path,
        definition: MapDefinition,
        info: SegmentInfo,
        hold: SegmentFiles | None = None,
        when_opened: Callable[[], None] | None = None,
    ) -> None:
        self.begin(info.id, definition, info.summaries, hold or SegmentFiles(folder, info.id, (), verified=False))
        self._folder = folder
        self._info = info
        self._opening = Lock()
        self._when_opened = when_opened

    def __getattr__(self, name: str) -> Any:
        """Open the files at the first look at what is in them: a slot that is not set."""
        if name not in _OPENED:
            raise AttributeError(name)
        with self._opening:
            if not self.is_open:
                self._open_files()
        if self._when_opened is not None and not self.proven:
            self._when_opened()
        return object.__getattribute__(self, name)

    @property
    def is_open(self) -> bool:
        """Tell whether the files are open."""
        with suppress(AttributeError):
            object.__getattribute__(self, "batch")
            return True
        return False

    @property
    def rows(self) -> int:
        return self._info.rows

    @property
    def first_partition(self) -> int:
        return super().first_partition if self._info.partitions is None else self._info.partitions[0]

    @property
    def last_partition(self) -> int:
        return super().last_partition if self._info.partitions is None else self._info.partitions[1]

    def without_index(self, definition: IndexDefinition) -> Segment:
        if self.is_open:
            return super().without_index(definition)
        indexes = tuple(each for each in self._info.indexes if each != definition.id)
        hold = self.hold
        assert isinstance(hold, SegmentFiles), "it was made with them"
        return LazySegment(self._folder, self.definition, replace(self._info, indexes=indexes), hold, self._when_opened)

    def _open_files(self) -> None:
        """Map all files, the rows at last: they tell whether the segment is open."""
        try:
            opened = open_segment(self._folder, self.definition, self._info)
        except FileNotFoundError as error:
            missing = self._folder / str(error.filename)
            raise damage_error("a file named in the manifest is missing", missing) from error
        assert isinstance(self.hold, SegmentFiles), "it was made with them"
        assert isinstance(opened.hold, SegmentFiles), "it is in a folder"
        add_guards(self.hold, opened.hold.guards)
        self.partition_offsets = opened.partition_offsets
        self.key_table = opened.key_table
        self.zone_arrays = opened.zone_arrays
        self.index_arrays = opened.index_arrays
        self.batch = opened.batch


def add_guards(hold: SegmentFiles, guards: Iterable[BlockGuard | None]) -> None:
    """Verify what is read of further files by their guards."""
    with _adding:
        hold.guards += tuple(guard for guard in guards if guard is not None)
