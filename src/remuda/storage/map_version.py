"""A version of a map: its segments, what is hidden in them, and the write log on top.

Segments change only by installing another version (checkpoint, load, new index); a snapshot keeps the version it was
taken from. Of all rows with one key, in all segments and the log, at most one is live at any length.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.storage.hidden_rows import HiddenRows
from remuda.storage.key_finder import Row, make_finder
from remuda.storage.log_columns import LogColumns
from remuda.storage.partition_hash import partition_of, scalar_hasher, to_signed, unsigned_hasher
from remuda.storage.value_order import canonical_key
from remuda.storage.write_log import WriteLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.segment import Segment
    from remuda.storage.segment_file import SegmentInfo


class MapVersion:
    """`live` is the number of live rows at the committed length; `infos` describe segments that are in a folder;
    `hold` is whatever must live as long as the version does: the lease of a reader."""

    __slots__ = (
        "__weakref__",
        "_finders",
        "_key_hash",
        "columns",
        "covering",
        "definition",
        "hidden",
        "hold",
        "infos",
        "live",
        "log",
        "partition_of_key",
        "segments",
    )

    def __init__(
        self,
        definition: MapDefinition,
        segments: Sequence[Segment] = (),
        hidden: Sequence[HiddenRows] | None = None,
        columns: LogColumns | None = None,
        infos: Sequence[SegmentInfo] = (),
    ) -> None:
        self.definition = definition
        self.segments = tuple(segments)
        self.hidden = tuple(hidden) if hidden is not None else tuple(HiddenRows(each.rows) for each in segments)
        self.columns = columns or LogColumns(definition, WriteLog())
        self.log = self.columns.log
        self.infos = tuple(infos)
        self.hold: object = None
        self.live = sum(each.rows - gone.deleted for each, gone in zip(self.segments, self.hidden, strict=True))
        self._key_hash = key_hasher(definition)
        self.partition_of_key = partition_finder(definition)
        self.covering = _covering(definition.partitions, self.segments)
        self._finders: dict[tuple[int, ...], Callable[[Any], Row | None]] = {}

    @property
    def key_hash(self) -> Callable[[Any], int]:
        return self._key_hash

    def write(self, key: Any, row: Row) -> bool:
        """Appends a row, uncommitted, and tells whether the key was there."""
        log = self.log
        previous = log.newest.get(key, -1)
        existed = log.rows[previous] is not None if previous >= 0 else self._hide(key, len(log.keys))
        log.append(key, row, previous)
        return existed

    def erase(self, key: Any) -> bool:
        """Appends a tombstone, uncommitted, if the key is there, and tells whether it was."""
        log = self.log
        previous = log.newest.get(key, -1)
        existed = log.rows[previous] is not None if previous >= 0 else self._hide(key, len(log.keys))
        if existed:
            log.append(key, None, previous)
        return existed

    def commit(self, added: int) -> None:
        """Makes all that was appended visible at once; `added` is by how much the number of live rows grew."""
        self.live += added
        self.log.committed = len(self.log.keys)

    def roll_back(self) -> None:
        """Takes back all that was appended since the last commit."""
        for hidden in self.hidden:
            hidden.roll_back(self.log.committed)
        self.log.roll_back()

    def finder(self, columns: tuple[int, ...]) -> Callable[[Any], Row | None]:
        """The function from a key to those columns of its newest committed row; made once for each choice."""
        found = self._finders.get(columns)
        if found is None:
            found = self._finders[columns] = make_finder(self, columns)
        return found

    def locate(self, key: Any) -> tuple[int, int] | None:
        """The segment and position that hold the key, whether or not the log hides it; deleted rows do not count."""
        if not self.segments:
            return None
        hashed = self._key_hash(key)
        for number in self.segments_of(key, hashed):
            position = self.segments[number].probe(key, hashed)
            if position >= 0 and not self.hidden[number].is_deleted(position):
                return number, position
        return None

    def segments_of(self, key: Any, hashed: int) -> tuple[int, ...]:
        """The numbers of the segments that may hold the key, newest first."""
        if len(self.covering) == 1:
            return self.covering[0]
        return self.covering[self.partition_of_key(key, hashed)]

    def _hide(self, key: Any, entry: int) -> bool:
        place = self.locate(key)
        if place is None:
            return False
        number, position = place
        self.hidden[number].hide(position, entry)
        return True


def key_hasher(definition: MapDefinition) -> Callable[[Any], int]:
    """The unsigned hash of a whole key."""
    return unsigned_hasher([definition.column(name).type for name in definition.key])


def key_maker(definition: MapDefinition) -> Callable[[Row], Any]:
    """The function from a row to its key."""
    pick = itemgetter(*definition.positions(definition.key))
    if any(definition.column(name).type.is_floating for name in definition.key):
        return lambda row: canonical_key(pick(row))
    return pick


def partition_finder(definition: MapDefinition) -> Callable[[Any, int], int]:
    """The function from a key and its unsigned hash to its partition."""
    partitions = definition.partitions
    if definition.partitioned_by == definition.key:
        return lambda _key, hashed: partition_of(to_signed(hashed), partitions)
    chosen = [definition.key.index(name) for name in definition.partitioned_by]
    hash_part = scalar_hasher([definition.column(name).type for name in definition.partitioned_by])
    if len(chosen) == 1:
        (only,) = chosen
        return lambda key, _hashed: partition_of(hash_part(key[only]), partitions)
    return lambda key, _hashed: partition_of(hash_part(tuple([key[number] for number in chosen])), partitions)


def _covering(partitions: int, segments: Sequence[Segment]) -> list[tuple[int, ...]]:
    """For each partition the numbers of the segments to search, newest first; one entry where there is no choice."""
    if len(segments) <= 1:
        return [tuple(range(len(segments)))]
    spans = [(number, each.first_partition, each.last_partition) for number, each in enumerate(segments)]
    return [
        tuple(number for number, first, last in reversed(spans) if first <= partition <= last)
        for partition in range(partitions)
    ]
