"""The hot path of indexes: from what an index is asked to the rows it finds, made once for a version.

As in `point_lookup`, what does not depend on the question is bound when the function is made: the arrays of each
segment's index, how rows are read, which of its rows are deleted. Rows come as an iterable, put together from columns
while it is read, so that each row is made only once, as what the caller asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from math import inf, nextafter
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.storage.encodable import unencodable
from remuda.storage.index.index_condition import Lookup, Range
from remuda.storage.index.interpolation_table import KeySearch, key_search, searched_keys
from remuda.storage.index.sorted_index import SortedIndex
from remuda.storage.lookup.generated_readers import row_finisher, row_reader, rows_reader
from remuda.storage.lookup.ordered_rows import Order, first_of, first_rows, merged, order_of
from remuda.storage.lookup.row_projection import MOST_PROJECTIONS, RowProjection, row_projection
from remuda.storage.memtable.memtable_source import MemtableSource
from remuda.storage.row_source import index_definition
from remuda.storage.segment.block_guard import view_of
from remuda.types.normalized_key import GREATEST_KEY, NULL_KEY, normalized_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage.index.index_types import SegmentIndex
    from remuda.storage.segment.block_guard import Array
    from remuda.storage.segment.deletion_vector import DeletionVector
    from remuda.storage.segment.segment import Segment
    from remuda.storage.state.map_version import MapVersion
    from remuda.types import SqlType

# From entries of an index, which stand side by side, to their rows, which lie anywhere.
#
# Rows are in no cache, so what counts is how often memory is waited for: few rows are read one by one, the columns of
# more by numpy, which waits for many places at once; and a column that the index itself holds is read there, in
# order.


FEW_ENTRIES = 6
"""Up to so many rows are read one by one (measured, at ten million rows of which few are in a cache)."""

Rows = Iterable[Any]
EntryReader = Callable[[int, int, int], Rows]
"""From a span of an index and a length of the memtable to the rows that are live at it."""


def entry_reader(
    segment: Segment, index: SegmentIndex, deletions: DeletionVector, projection: RowProjection
) -> EntryReader:
    if isinstance(index, SortedIndex) and index.numbers is not None and index.first_column in projection.columns:
        return _reader_with_numbers(segment, index, index.numbers, deletions, projection)
    positions, positions_view = index.positions, view_of(index.positions)
    row_at, rows_at = row_reader(segment, projection), rows_reader(segment, projection)

    def read(low: int, high: int, length: int) -> Rows:
        deleted_at = deletions.view
        if high - low == 1:
            position = positions_view[low]
            return (row_at(position),) if deleted_at is None or deleted_at[position] > length else ()
        if high - low <= FEW_ENTRIES:
            few = positions_view[low:high]
            return map(
                row_at, few if deleted_at is None else [position for position in few if deleted_at[position] > length]
            )
        # numpy would convert any other kind of number anew for each column.
        many = positions[low:high].astype(np.intp)
        return rows_at(many if deleted_at is None else many[np.asarray(deleted_at).take(many) > length])

    return read


def _reader_with_numbers(
    segment: Segment, index: SortedIndex, numbers: Array, deletions: DeletionVector, projection: RowProjection
) -> EntryReader:
    """Do as `entry_reader` where the index has the values of a column of the projection."""
    positions, positions_view, values = index.positions, view_of(index.positions), view_of(numbers)
    row_at = row_reader(segment, projection, index.first_column)
    rows_at = rows_reader(segment, projection, index.first_column)

    def read(low: int, high: int, length: int) -> Rows:
        deleted_at = deletions.view
        if high - low == 1:
            position = positions_view[low]
            return (row_at(position, values[low]),) if deleted_at is None or deleted_at[position] > length else ()
        if high - low <= FEW_ENTRIES:
            few = positions_view[low:high]
            if deleted_at is None:
                return map(row_at, few, values[low:high])
            live = [entry for entry, position in enumerate(few, low) if deleted_at[position] > length]
            return [row_at(positions_view[entry], values[entry]) for entry in live]
        many, found = positions[low:high].astype(np.intp), numbers[low:high]
        if deleted_at is None:
            return rows_at(many, found)
        shown = np.asarray(deleted_at).take(many) > length
        return rows_at(many[shown], found[shown])

    return read


class IndexRead:
    """An index and a projection of its rows: the key under which an `IndexLookup` is kept, compared by identity."""

    __slots__ = ("index", "projection")

    def __init__(self, index: str, projection: RowProjection) -> None:
        self.index = index
        self.projection = projection


@lru_cache(maxsize=MOST_PROJECTIONS)
def index_read(index: str, projection: RowProjection) -> IndexRead:
    """Return the `IndexRead` of an index and a projection.

    The same one each time: what was made for it is found again.
    """
    return IndexRead(index, projection)


class IndexLookup:
    """Finds rows by one index, in one projection.

    `length` is the snapshot's length of the memtable. Rows come segment by segment and then from the memtable; where
    there are more than `most` entries the answer is None.
    """

    __slots__ = (
        "_definition",
        "_finish",
        "_floats",
        "_index",
        "_key_of",
        "_memtable",
        "_order_readers",
        "_parts",
        "_searches",
        "_spans",
    )

    def __init__(self, version: MapVersion, read: IndexRead) -> None:
        # Not the version itself, which keeps its lookups: it goes, and its files with it, with the last who holds it.
        self._definition = version.definition
        self._memtable = version.columns
        self._finish = row_finisher(version.definition, read.projection)
        self._index = index_definition(version.definition, read.index)
        self._spans: list[tuple[Callable[[Lookup], tuple[int, int]], EntryReader]] = []
        self._parts: list[tuple[Segment, SegmentIndex, DeletionVector]] = []
        self._order_readers: list[EntryReader] | None = None
        """Read the index's columns of the same entries; made when rows of several sources are merged."""
        indexes: list[SegmentIndex] = []
        for segment, deletions in zip(version.segments, version.deletions, strict=True):
            opened = segment.index(self._index)
            self._spans.append((opened.span, entry_reader(segment, opened, deletions, read.projection)))
            self._parts.append((segment, opened, deletions))
            indexes.append(opened)
        sql_type = version.definition.column(self._index.columns[0]).type
        self._key_of: Callable[[Any], int] | None = None
        self._floats = False
        self._searches: list[tuple[KeySearch, EntryReader]] = []
        direct = [each for each in indexes if isinstance(each, SortedIndex) and each.direct_keys is not None]
        if len(direct) == len(indexes):
            self._key_of = normalized_key(sql_type)
            self._floats, searches = _searches(direct, sql_type)
            self._searches = [(search, reader) for search, (_, reader) in zip(searches, self._spans, strict=True)]

    def between(
        self, start: Any, start_inclusive: bool, stop: Any, stop_inclusive: bool, length: int, most: int
    ) -> Rows | None:
        """Return the rows between two values of the first column, neither of them NULL. Crossed ends find nothing.

        Keys are the same in all segments, so the ends are translated once: into the first key of the range and the
        first one behind it.
        """
        if self._floats:
            begin = start if start_inclusive else nextafter(start, inf)
            end = nextafter(stop, inf) if stop_inclusive else stop
        else:
            key_of = self._key_of
            if key_of is None:
                return self.find((Lookup((), Range(start, start_inclusive, stop, stop_inclusive)),), length, most)
            begin, end = key_of(start) + (not start_inclusive), key_of(stop) + stop_inclusive
            if begin == NULL_KEY or end > GREATEST_KEY:
                # The ends of BIGINT: the key of the least value is NULL's elsewhere, and no key is above the greatest.
                return self.find((Lookup((), Range(start, start_inclusive, stop, stop_inclusive)),), length, most)
        found: list[Rows] = []
        for search, read in self._searches:
            low, high = search(begin, end)
            if low < high:
                most -= high - low
                if most < 0:
                    return None
                found.append(read(low, high, length))
        if length:
            entries = self._in_memtable(Lookup((), Range(start, start_inclusive, stop, stop_inclusive)), length)
            if len(entries) > most:
                return None
            found.append(entries)
        return found[0] if len(found) == 1 else chain.from_iterable(found)

    def find(self, lookups: Sequence[Lookup], length: int, most: int) -> Rows | None:
        """Return the rows of disjoint lookups, one lookup after the other."""
        found: list[Rows] = []
        try:
            for lookup in lookups:
                for span, read in self._spans:
                    low, high = span(lookup)
                    if low < high:
                        most -= high - low
                        if most < 0:
                            return None
                        found.append(read(low, high, length))
                if length:
                    entries = self._in_memtable(lookup, length)
                    most -= len(entries)
                    if most < 0:
                        return None
                    found.append(entries)
        except UnicodeEncodeError as error:
            raise unencodable(self._definition, ", ".join(self._index.columns), error.object) from error
        return found[0] if len(found) == 1 else chain.from_iterable(found)

    def first(self, lookups: Sequence[Lookup], length: int, wanted: int, *, descending: bool) -> list[Any] | None:
        """Return the first rows of disjoint lookups in the order of a SORTED index, or against it.

        None where there are many entries of deleted rows before them. Lookups stand in the order of the index.
        """
        is_single = len(self._spans) == 1 and not length
        found: list[Any] = []
        try:
            for lookup in reversed(lookups) if descending else lookups:
                missing = wanted - len(found)
                if missing <= 0:
                    break
                if is_single:
                    span, read = self._spans[0]
                    part = first_rows(read, span(lookup), length, missing, descending=descending)
                else:
                    part = self._merged(lookup, length, missing, descending=descending)
                if part is None:
                    return None
                found += part
        except UnicodeEncodeError as error:
            raise unencodable(self._definition, ", ".join(self._index.columns), error.object) from error
        return found

    def _merged(self, lookup: Lookup, length: int, wanted: int, *, descending: bool) -> list[Any] | None:
        """Return the first rows of a lookup in all segments and the memtable."""
        ordinals = [self._definition.position(name) for name in self._index.columns]
        if self._order_readers is None:
            by_order = row_projection(tuple(ordinals), None)
            self._order_readers = [entry_reader(*part, by_order) for part in self._parts]
        sources: list[Iterable[tuple[Order, Any]]] = []
        for (span_of, read), read_order in zip(self._spans, self._order_readers, strict=True):
            span = span_of(lookup)
            rows = first_rows(read, span, length, wanted, descending=descending)
            orders = first_rows(read_order, span, length, wanted, descending=descending)
            if rows is None or orders is None:
                return None
            sources.append(zip(map(order_of, orders), rows, strict=True))
        if length:
            source, finish = MemtableSource(self._definition, self._memtable, length), self._finish
            entries = self._memtable.memtable.rows
            pieces = source.ordered_positions(self._index.id, lookup, None, descending=descending)
            sources.append(
                (order_of([row[ordinal] for ordinal in ordinals]), finish(row))
                for at in first_of(pieces, wanted)
                if (row := entries[at]) is not None
            )
        return merged(sources, wanted, descending=descending)

    def _in_memtable(self, lookup: Lookup, length: int) -> list[Any]:
        source, finish = MemtableSource(self._definition, self._memtable, length), self._finish
        rows = self._memtable.memtable.rows
        return [finish(row) for at in source.entries(self._index.id, lookup) if (row := rows[at]) is not None]


def _searches(indexes: Sequence[SortedIndex], sql_type: SqlType) -> tuple[bool, list[KeySearch]]:
    """Tell whether all indexes are searched by floating-point numbers, and how each is searched.

    Where only some could be, all are searched by keys, and the tables of numbers are of no use.
    """
    keys = [each.direct_keys for each in indexes if each.direct_keys is not None]
    searched = [searched_keys(each, sql_type) for each in keys]
    kinds = {each.dtype.kind for each in searched if len(each)}
    if len(kinds) > 1:
        return False, [key_search(each, None) for each in keys]
    tables = [each.key_slots for each in indexes]
    return kinds == {"f"}, [key_search(*parts) for parts in zip(searched, tables, strict=True)]
