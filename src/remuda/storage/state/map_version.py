"""A version of a map: its segments, the deletion vector of each, and the memtable on top.

Segments change only by installing another version (checkpoint, load, new index); a snapshot keeps the version it was
taken from. Of all rows with one key, in all segments and the memtable, at most one is live at any length.
"""

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.errors import ConstraintError
from remuda.storage.lookup.batch_lookup import make_batch_lookup
from remuda.storage.lookup.dirty_keys import dirty_keys
from remuda.storage.lookup.generated_readers import row_reader
from remuda.storage.lookup.index_lookup import IndexLookup
from remuda.storage.lookup.point_lookup import make_point_lookup, make_search
from remuda.storage.lookup.row_projection import row_projection
from remuda.storage.memtable.memtable import Memtable
from remuda.storage.memtable.memtable_source import MemtableColumns
from remuda.storage.segment.deletion_vector import DeletionVector
from remuda.storage.segment.segment_builder import duplicate_key
from remuda.types.normalized_key import canonical_key
from remuda.types.partition_hash import partition_of, scalar_hasher, to_signed, unsigned_hasher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from remuda.catalog import MapDefinition
    from remuda.storage.lookup.batch_lookup import BatchLookup
    from remuda.storage.lookup.dirty_keys import DirtyKeys
    from remuda.storage.lookup.index_lookup import IndexRead
    from remuda.storage.lookup.row_projection import Row, RowProjection
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_file import SegmentInfo
    from remuda.storage.segment.summary.column_summary import ColumnSummary

MOST_LOOKUPS = 4096
"""Statements come and go while a version stays."""


class MapVersion:
    """Holds the segments and the memtable of a map, and writes into the memtable.

    `live` is the number of live rows at the committed length, `added` what uncommitted entries will add to it;
    `infos` describe segments that are in a folder; `hold` is whatever must live as long as the version does: the lease
    of a reader.
    """

    __slots__ = (
        "__weakref__",
        "_covering",
        "_dirty",
        "added",
        "batch_lookups",
        "before",
        "columns",
        "definition",
        "deletions",
        "hold",
        "index_lookups",
        "infos",
        "key_hash",
        "live",
        "memtable",
        "partition_of_key",
        "point_lookups",
        "segments",
    )

    def __init__(
        self,
        definition: MapDefinition,
        segments: Sequence[Segment] = (),
        deletions: Sequence[DeletionVector] | None = None,
        columns: MemtableColumns | None = None,
        infos: Sequence[SegmentInfo] = (),
    ) -> None:
        self.begin(definition, columns)
        self.segments = tuple(segments)
        self.deletions = (
            tuple(deletions) if deletions is not None else tuple(DeletionVector(each.rows) for each in segments)
        )
        self.infos = tuple(infos)
        self.live = sum(
            each.rows - deletions.deleted for each, deletions in zip(self.segments, self.deletions, strict=True)
        )

    by_group = False
    """Whether the segments of some partitions are known without those of all."""

    def begin(self, definition: MapDefinition, columns: MemtableColumns | None) -> None:
        """Set all but the segments, and what is known by them."""
        self.definition = definition
        self.columns = columns or MemtableColumns(definition, Memtable())
        self.memtable = self.columns.memtable
        self.hold: object = None
        self.added = 0
        self.key_hash = key_hasher(definition)
        self.partition_of_key = key_partitioner(definition)
        self._covering: list[tuple[int, ...]] | None = None
        self.point_lookups: dict[RowProjection, Callable[[Any], Any]] = {}
        self.batch_lookups: dict[RowProjection, BatchLookup] = {}
        self.index_lookups: dict[IndexRead, IndexLookup] = {}
        self.before = RowsBefore()
        self._dirty: tuple[DirtyKeys | None] | None = None

    @property
    def covering(self) -> list[tuple[int, ...]]:
        """List for each partition the segments to search, newest first; one entry where there is no choice.

        Made when it is first asked for: it looks into the files of the segments.
        """
        if self._covering is None:
            self._covering = _covering(self.definition.partitions, self.segments)
        return self._covering

    @property
    def dirty(self) -> DirtyKeys | None:
        """Return the dirty-key filter of the segments, made when it is first asked for."""
        if self._dirty is None:
            self._dirty = (dirty_keys(self),)
        return self._dirty[0]

    @property
    def segment_count(self) -> int:
        """Return the number of segments, none of which is read for that."""
        return len(self.segments)

    @property
    def is_open(self) -> bool:
        """Tell whether all segments are open."""
        return all(segment.is_open for segment in self.segments)

    @property
    def summaries(self) -> Sequence[Mapping[str, ColumnSummary]]:
        """Return summaries of columns that together tell of all segments."""
        return [segment.summaries for segment in self.segments]

    def parts_of(self, partitions: np.ndarray) -> Iterable[tuple[Segment, DeletionVector]]:  # noqa: ARG002
        """Return the segments that can have rows of partitions, and maybe others, with their deletion vectors."""
        return zip(self.segments, self.deletions, strict=True)

    def described_parts(self, partitions: np.ndarray) -> Iterable[tuple[SegmentInfo, Segment, DeletionVector]]:  # noqa: ARG002
        """Do as `parts_of` for segments in a folder, with what is known of each."""
        return zip(self.infos, self.segments, self.deletions, strict=True)

    def sampled_parts(self) -> Iterable[tuple[Segment, DeletionVector]]:
        """Return the segments of which a sample of rows may be taken."""
        return zip(self.segments, self.deletions, strict=True)

    def segment_rows(self, length: int) -> int:
        """Return the number of rows of segments that are live at a length of the memtable."""
        return sum(
            each.rows - deletions.count(length) for each, deletions in zip(self.segments, self.deletions, strict=True)
        )

    def restriction(self) -> Restriction:
        """Return what makes versions of some of the segments. It does not hold this version."""
        covering, parts = self.covering, list(zip(self.segments, self.deletions, strict=True))
        return Restriction(self.definition, self.columns, covering.__getitem__, parts.__getitem__)

    def segment_at(self, number: int) -> Segment:
        """Return a segment by its number."""
        return self.segments[number]

    def write(self, key: Any, row: Row) -> bool:
        """Appends a row, uncommitted, and tells whether the key was there."""
        memtable = self.memtable
        previous = memtable.newest.get(key, -1)
        existed = memtable.rows[previous] is not None if previous >= 0 else self.delete_in_segments(key) is not None
        memtable.append(key, row, previous)
        if not existed:
            self.added += 1
        return existed

    def exchange(self, key: Any, row: Row, columns: tuple[int, ...]) -> Row | None:
        """Write rows like `write`, and return these columns of the replaced row; None without one."""
        memtable = self.memtable
        previous = memtable.newest.get(key, -1)
        old: Row | None = None
        if previous >= 0:
            held = memtable.rows[previous]
            if held is not None:
                old = tuple([held[column] for column in columns])
        else:
            location = self.delete_in_segments(key)
            if location is not None:
                number, position = location
                readers = self.before.readers
                read = readers.get((number, columns))
                if read is None:
                    read = readers[number, columns] = row_reader(self.segment_at(number), row_projection(columns))
                old = read(position)
        memtable.append(key, row, previous)
        if old is None:
            self.added += 1
        return old

    def erase(self, key: Any) -> bool:
        """Appends a tombstone, uncommitted, if the key is there, and tells whether it was."""
        memtable = self.memtable
        previous = memtable.newest.get(key, -1)
        existed = memtable.rows[previous] is not None if previous >= 0 else self.delete_in_segments(key) is not None
        if existed:
            memtable.append(key, None, previous)
            self.added -= 1
        return existed

    def commit(self) -> None:
        """Makes all that was appended visible at once."""
        self.live += self.added
        self.added = 0
        self.memtable.committed = len(self.memtable.keys)

    def roll_back(self) -> None:
        """Takes back all that was appended since the last commit."""
        for deletions in self.deletions:
            deletions.roll_back(self.memtable.committed)
        self.memtable.roll_back()
        self.added = 0

    def forget_lookups(self) -> None:
        """Let go of all that was made to read the segments.

        A thread that makes a lookup in this moment puts it into a dictionary that is not read any more.
        """
        self.point_lookups = {}
        self.batch_lookups = {}
        self.index_lookups = {}
        self.before = RowsBefore()

    def point_lookup(self, projection: RowProjection) -> Callable[[Any], Any]:
        """Return the function from a key to its newest committed row; made once, and then kept in `point_lookups`."""
        lookups = self.point_lookups
        found = lookups.get(projection)
        if found is None:
            _make_room(lookups)
            found = lookups[projection] = make_point_lookup(self, projection)
        return found

    def batch_lookup(self, projection: RowProjection) -> BatchLookup:
        """Return the function from many keys to their rows at one snapshot; made once, then kept in `batch_lookups`."""
        lookups = self.batch_lookups
        found = lookups.get(projection)
        if found is None:
            _make_room(lookups)
            found = lookups[projection] = make_batch_lookup(self, projection)
        return found

    def index_lookup(self, read: IndexRead) -> IndexLookup:
        """Return what finds rows through an index; made once, and then kept in `index_lookups`."""
        lookups = self.index_lookups
        found = lookups.get(read)
        if found is None:
            _make_room(lookups)
            found = lookups[read] = IndexLookup(self, read)
        return found

    def locate(self, key: Any) -> tuple[int, int] | None:
        """Find the segment and position of a key, also if the memtable has a newer row; deleted rows do not count."""
        if not self.segments:
            return None
        before = self.before
        if before.locate is None:
            before.locate = make_search(self, [location_in(number) for number in range(len(self.segments))])
        return before.locate(key)

    def delete_in_segments(self, key: Any) -> tuple[int, int] | None:
        """Delete the row that a segment has under the key, from the entry on which is appended next."""
        if not self.segments:
            return None
        location = self.locate(key)
        if location is not None:
            number, position = location
            self.deletions[number].delete(position, len(self.memtable.keys))
        return location


class Restriction:
    """Makes versions of some segments of a version, with the same memtable. They are only read, and count no rows.

    `numbers_of` gives the numbers of the segments of a partition, `part` a segment by its number.
    """

    __slots__ = ("_columns", "_definition", "_part", "numbers_of")

    def __init__(
        self,
        definition: MapDefinition,
        columns: MemtableColumns,
        numbers_of: Callable[[int], tuple[int, ...]],
        part: Callable[[int], tuple[Segment, DeletionVector]],
    ) -> None:
        self._definition = definition
        self._columns = columns
        self.numbers_of = numbers_of
        self._part = part

    def version_of(self, numbers: Sequence[int]) -> MapVersion:
        """Return the version of these segments."""
        parts = [self._part(number) for number in numbers]
        segments, deletions = [segment for segment, _ in parts], [deletions for _, deletions in parts]
        return MapVersion(self._definition, segments, deletions, self._columns)


class RowsBefore:
    """How a write finds and reads the row that it replaces: made when first needed."""

    __slots__ = ("locate", "readers")

    def __init__(self) -> None:
        self.locate: Callable[[Any], tuple[int, int] | None] | None = None
        self.readers: dict[tuple[int, tuple[int, ...]], Callable[[int], Row]] = {}


# What statements do to a version: each appends all its entries, and commits none of them.


def insert_row(version: MapVersion, key: Any, row: Row) -> None:
    """Append a row; raise if the key is there. The caller rolls the version back then."""
    if version.write(key, row):
        raise duplicate_key(version.definition, key)


def insert_rows(version: MapVersion, keys: Sequence[Any], rows: Sequence[Row]) -> int:
    try:
        for key, row in zip(keys, rows, strict=True):
            insert_row(version, key, row)
    except ConstraintError as error:
        # The row that met another one has been appended like those before it.
        error.row = len(version.memtable.keys) - version.memtable.committed - 1
        raise
    return len(keys)


def put_rows(version: MapVersion, keys: Sequence[Any], rows: Sequence[Row]) -> None:
    for key, row in zip(keys, rows, strict=True):
        version.write(key, row)


def erase_keys(version: MapVersion, keys: Sequence[Any]) -> int:
    """Append tombstones, and return how many of the keys were there."""
    return sum([version.erase(key) for key in keys])


def write_again(version: MapVersion, entries: Iterable[tuple[Any, Row | None]]) -> None:
    """Append entries of another memtable: rows, and None for what was erased."""
    for key, row in entries:
        if row is None:
            version.erase(key)
        else:
            version.write(key, row)


def _make_room(lookups: dict[Any, Any]) -> None:
    """Drop all where there are too many: those that are needed are made again sooner than the others are found."""
    if len(lookups) >= MOST_LOOKUPS:
        lookups.clear()


def location_in(number: int) -> Callable[[int], tuple[int, int]]:
    return lambda position: (number, position)


def key_hasher(definition: MapDefinition) -> Callable[[Any], int]:
    """Return the unsigned hash of a whole key."""
    return unsigned_hasher([definition.column(name).type for name in definition.key])


def key_maker(definition: MapDefinition) -> Callable[[Row], Any]:
    """Return the function from a row to its key."""
    pick = itemgetter(*definition.positions(definition.key))
    if any(definition.column(name).type.is_floating for name in definition.key):
        return lambda row: canonical_key(pick(row))
    return pick


def key_partitioner(definition: MapDefinition) -> Callable[[Any, int], int]:
    """Return the function from a key and its unsigned hash to its partition."""
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
    if len(segments) <= 1:
        return [tuple(range(len(segments)))]
    spans = [(number, each.first_partition, each.last_partition) for number, each in enumerate(segments)]
    # The segments change where one begins or ends, which is seldom.
    cuts = sorted({0, partitions} | {first for _, first, _ in spans} | {last + 1 for *_, last in spans})
    found: list[tuple[int, ...]] = []
    for start, stop in itertools.pairwise(cuts):
        found += [tuple(number for number, first, last in reversed(spans) if first <= start <= last)] * (stop - start)
    return found
