"""The segments of a map of many partition groups: a group's file is read when something first needs its partitions.

What planning needs of all groups is in the root: where they are cut, how many segments and rows they have, and the
statistics of the map. To look at each segment reads all groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

from remuda.errors import StorageError
from remuda.storage.segment.summary.saved_summaries import SavedSummaries, types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.group_file import GroupRef
    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.segment.summary.saved_statistics import SavedStatistics

    OpenGroup = Callable[[GroupRef, Sequence[StoredSegment]], tuple[StoredSegment, ...]]
    """Opens the segments of a group; given some of an earlier state, of which those that stay are used again."""


class StoredGroup:
    """The segments of one group, opened when they are first asked for."""

    __slots__ = ("_earlier", "_lock", "_open", "_stored", "ref")

    def __init__(self, ref: GroupRef, open_group: OpenGroup, earlier: Sequence[StoredSegment] = ()) -> None:
        self.ref = ref
        self._open = open_group
        self._earlier = earlier
        self._stored: tuple[StoredSegment, ...] | None = None
        self._lock = Lock()

    @property
    def is_read(self) -> bool:
        return self._stored is not None

    @property
    def stored(self) -> tuple[StoredSegment, ...]:
        if self._stored is None:
            with self._lock:
                if self._stored is None:
                    self._stored = self._open(self.ref, self._earlier)
                    self._earlier = ()
        return self._stored

    @property
    def known(self) -> Sequence[StoredSegment]:
        """Return the segments as far as they are there without reading anything, or those of an earlier state."""
        return self._earlier if self._stored is None else self._stored

    @property
    def live(self) -> int:
        return self.ref.rows - (self.ref.deleted or 0)

    def unopened(self) -> StoredGroup:
        return StoredGroup(self.ref, self._open)


class StoredGroups(Sequence["StoredSegment"]):
    """The segments of a map, group by group.

    `statistics` are those of all of them, as the root has them. `fetch` brings the files of several groups at once,
    where they are elsewhere.
    """

    def __init__(
        self,
        groups: Sequence[StoredGroup],
        definition: MapDefinition,
        statistics: SavedStatistics,
        fetch: Callable[[Sequence[GroupRef]], None],
    ) -> None:
        self.groups = tuple(groups)
        self.definition = definition
        self.partitions = partitions = definition.partitions
        self.statistics = statistics
        self.summaries = SavedSummaries(statistics.summaries, types_of(definition))
        self._fetch = fetch
        self.offsets = list(accumulate((each.ref.segments for each in self.groups), initial=0))
        first = self.groups[0].ref
        self._members = int((first.first, first.end) == (0, partitions))
        """The number of the first group that is not that of the runs."""
        self._firsts = [each.ref.first for each in self.groups[self._members :]]

    @property
    def refs(self) -> tuple[GroupRef, ...]:
        return tuple(each.ref for each in self.groups)

    @property
    def live(self) -> int:
        """Return the number of rows that are not deleted."""
        return sum(each.live for each in self.groups)

    @property
    def cuts(self) -> list[int]:
        """Return the partitions at which the groups are cut."""
        ends = {end for each in self.groups[self._members :] for end in (each.ref.first, each.ref.end)}
        return sorted(ends - {0, self.partitions})

    def of_partition(self, partition: int) -> list[int]:
        """Return the numbers of the groups that can have rows of a partition: the runs, and the group around it."""
        found = list(range(self._members))
        number = self._members + bisect_right(self._firsts, partition) - 1
        if number >= self._members and partition < self.groups[number].ref.end:
            found.append(number)
        return found

    def group_of(self, number: int) -> int:
        """Return the number of the group that has a segment."""
        return bisect_right(self.offsets, number) - 1

    def read(self, numbers: Iterable[int]) -> None:
        """Read several groups, if they are elsewhere by requests at the same time."""
        unread = [each for each in (self.groups[number] for number in numbers) if not each.is_read]
        if unread:
            self._fetch([each.ref for each in unread])
        for each in unread:
            each.stored  # noqa: B018 - reads it

    @property
    def read_segments(self) -> list[StoredSegment]:
        """Return the segments of the groups that were read."""
        return [stored for each in self.groups if each.is_read for stored in each.stored]

    def unopened(self) -> StoredGroups:
        """Return the same segments, none of them read."""
        groups = [each.unopened() for each in self.groups]
        return StoredGroups(groups, self.definition, self.statistics, self._fetch)

    def __len__(self) -> int:
        return self.offsets[-1]

    def __bool__(self) -> bool:
        return len(self) > 0

    @overload
    def __getitem__(self, number: int) -> StoredSegment: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[StoredSegment, ...]: ...

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return tuple(self)[number]
        number = range(len(self))[number]
        group = self.group_of(number)
        return self.groups[group].stored[number - self.offsets[group]]

    def __iter__(self) -> Iterator[StoredSegment]:
        self.read(range(len(self.groups)))
        for each in self.groups:
            yield from each.stored


def readable_segments(stored: Sequence[StoredSegment]) -> Iterator[StoredSegment]:
    """Yield the segments of a map, but for those of groups whose files are damaged: these are told by themselves."""
    if isinstance(stored, StoredGroups):
        for each in stored.groups:
            with suppress(StorageError):
                yield from each.stored
    else:
        yield from stored


def read_segments(stored: Sequence[StoredSegment]) -> Sequence[StoredSegment]:
    """Return the segments of a map whose group files were read; where all are read with the map, all of them."""
    return stored.read_segments if isinstance(stored, StoredGroups) else stored
