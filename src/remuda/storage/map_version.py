"""A version of a map: its segments, what is hidden in them, and the write log on top.

Segments change only by installing another version (checkpoint, load, new index); a snapshot keeps the version it was
taken from. Of all rows with one key, in all segments and the log, at most one is live at any length.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.storage.lookup.batch_lookup import make_batch_finder
from remuda.storage.lookup.dirty_keys import dirty_keys
from remuda.storage.lookup.generated_readers import row_reader
from remuda.storage.lookup.index_lookup import IndexLookup
from remuda.storage.lookup.point_lookup import make_finder, make_search
from remuda.storage.lookup.row_projection import row_projection
from remuda.storage.memtable.memtable import Memtable
from remuda.storage.memtable.memtable_columns import MemtableColumns
from remuda.storage.segment.deletion_vector import DeletionVector
from remuda.types.normalized_key import canonical_key
from remuda.types.partition_hash import partition_of, scalar_hasher, to_signed, unsigned_hasher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.lookup.batch_lookup import BatchFinder
    from remuda.storage.lookup.dirty_keys import DirtyKeys
    from remuda.storage.lookup.index_lookup import IndexRead
    from remuda.storage.lookup.row_projection import Row, RowProjection
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_file import SegmentInfo

MOST_FINDERS = 4096
"""Statements come and go while a version stays."""


class MapVersion:
    """`live` is the number of live rows at the committed length, `added` what uncommitted entries will add to it;
    `infos` describe segments that are in a folder; `hold` is whatever must live as long as the version does: the lease
    of a reader."""

    __slots__ = (
        "__weakref__",
        "_before",
        "_key_hash",
        "_touched",
        "added",
        "batch_finders",
        "columns",
        "covering",
        "definition",
        "finders",
        "hidden",
        "hold",
        "index_lookups",
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
        hidden: Sequence[DeletionVector] | None = None,
        columns: MemtableColumns | None = None,
        infos: Sequence[SegmentInfo] = (),
    ) -> None:
        self.definition = definition
        self.segments = tuple(segments)
        self.hidden = tuple(hidden) if hidden is not None else tuple(DeletionVector(each.rows) for each in segments)
        self.columns = columns or MemtableColumns(definition, Memtable())
        self.log = self.columns.log
        self.infos = tuple(infos)
        self.hold: object = None
        self.live = sum(each.rows - gone.deleted for each, gone in zip(self.segments, self.hidden, strict=True))
        self.added = 0
        self._key_hash = key_hasher(definition)
        self.partition_of_key = partition_finder(definition)
        self.covering = _covering(definition.partitions, self.segments)
        self.finders: dict[RowProjection, Callable[[Any], Any]] = {}
        self.batch_finders: dict[RowProjection, BatchFinder] = {}
        self.index_lookups: dict[IndexRead, IndexLookup] = {}
        self._before = _RowsBefore()
        self._touched: tuple[DirtyKeys | None] | None = None

    @property
    def key_hash(self) -> Callable[[Any], int]:
        return self._key_hash

    @property
    def dirty(self) -> DirtyKeys | None:
        """Of the keys in the segments; made when it is first asked for."""
        if self._touched is None:
            self._touched = (dirty_keys(self),)
        return self._touched[0]

    def write(self, key: Any, row: Row) -> bool:
        """Appends a row, uncommitted, and tells whether the key was there."""
        log = self.log
        previous = log.newest.get(key, -1)
        existed = log.rows[previous] is not None if previous >= 0 else self._hide(key) is not None
        log.append(key, row, previous)
        if not existed:
            self.added += 1
        return existed

    def exchange(self, key: Any, row: Row, columns: tuple[int, ...]) -> Row | None:
        """`write` for those who want to see these columns of what was there; None if nothing was."""
        log = self.log
        previous = log.newest.get(key, -1)
        old: Row | None = None
        if previous >= 0:
            held = log.rows[previous]
            if held is not None:
                old = tuple([held[column] for column in columns])
        else:
            place = self._hide(key)
            if place is not None:
                number, position = place
                readers = self._before.readers
                read = readers.get((number, columns))
                if read is None:
                    read = readers[number, columns] = row_reader(self.segments[number], row_projection(columns))
                old = read(position)
        log.append(key, row, previous)
        if old is None:
            self.added += 1
        return old

    def erase(self, key: Any) -> bool:
        """Appends a tombstone, uncommitted, if the key is there, and tells whether it was."""
        log = self.log
        previous = log.newest.get(key, -1)
        existed = log.rows[previous] is not None if previous >= 0 else self._hide(key) is not None
        if existed:
            log.append(key, None, previous)
            self.added -= 1
        return existed

    def commit(self) -> None:
        """Makes all that was appended visible at once."""
        self.live += self.added
        self.added = 0
        self.log.committed = len(self.log.keys)

    def roll_back(self) -> None:
        """Takes back all that was appended since the last commit."""
        for hidden in self.hidden:
            hidden.roll_back(self.log.committed)
        self.log.roll_back()
        self.added = 0

    def forget_finders(self) -> None:
        """Let go of all that was made to read the segments.

        A thread that makes a finder in this moment puts it where nobody looks any more.
        """
        self.finders = {}
        self.batch_finders = {}
        self.index_lookups = {}
        self._before = _RowsBefore()

    def finder(self, form: RowProjection) -> Callable[[Any], Any]:
        """The function from a key to its newest committed row in this form; made once, and then found in `finders`."""
        finders = self.finders
        found = finders.get(form)
        if found is None:
            _make_room(finders)
            found = finders[form] = make_finder(self, form)
        return found

    def batch_finder(self, form: RowProjection) -> BatchFinder:
        """The function from many keys to their rows at one snapshot; made once, and then found in `batch_finders`."""
        finders = self.batch_finders
        found = finders.get(form)
        if found is None:
            _make_room(finders)
            found = finders[form] = make_batch_finder(self, form)
        return found

    def index_lookup(self, read: IndexRead) -> IndexLookup:
        """What finds rows through an index; made once, and then found in `index_lookups`."""
        finders = self.index_lookups
        found = finders.get(read)
        if found is None:
            _make_room(finders)
            found = finders[read] = IndexLookup(self, read)
        return found

    def locate(self, key: Any) -> tuple[int, int] | None:
        """The segment and position that hold the key, whether or not the log hides it; deleted rows do not count."""
        if not self.segments:
            return None
        before = self._before
        if before.locate is None:
            before.locate = make_search(self, [_place_in(number) for number in range(len(self.segments))])
        return before.locate(key)

    def _hide(self, key: Any) -> tuple[int, int] | None:
        """Hides the row that a segment has under the key from now on, that is by the entry which is appended next."""
        if not self.segments:
            return None
        place = self.locate(key)
        if place is not None:
            number, position = place
            self.hidden[number].hide(position, len(self.log.keys))
        return place


class _RowsBefore:
    """How a write finds and reads the row that it replaces: made when first needed."""

    __slots__ = ("locate", "readers")

    def __init__(self) -> None:
        self.locate: Callable[[Any], tuple[int, int] | None] | None = None
        self.readers: dict[tuple[int, tuple[int, ...]], Callable[[int], Row]] = {}


def _make_room(finders: dict[Any, Any]) -> None:
    """All go where there are too many: those that are needed are made again sooner than the others are found."""
    if len(finders) >= MOST_FINDERS:
        finders.clear()


def _place_in(number: int) -> Callable[[int], tuple[int, int]]:
    return lambda position: (number, position)


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
