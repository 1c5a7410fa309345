"""The hot path of indexes: from what an index is asked to some columns of the rows it finds, made once for a version.

As in `key_finder`, what does not depend on the question is bound when the function is made: the arrays of each
segment's index, how its columns are read, what the log hides in it. Rows come as an iterable, put together from columns
in one pass, so that whoever turns them into something else makes each row only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.storage.column_reader import FEW
from remuda.storage.conditions import Lookup, Range
from remuda.storage.encodable import unencodable
from remuda.storage.index_access import index_definition
from remuda.storage.key_finder import row_reader
from remuda.storage.log_source import LogSource
from remuda.storage.sorted_index import SortedIndex
from remuda.storage.value_order import GREATEST_KEY, NULL_KEY, direct_key

if TYPE_CHECKING:
    from remuda.storage.hidden_rows import HiddenRows
    from remuda.storage.map_version import MapVersion
    from remuda.storage.segment import Index, Segment

Rows = Iterable[tuple[Any, ...]]
EntryReader = Callable[[int, int, int], Rows]
"""From a span of an index and a length of the log to the rows that are live at it."""


class IndexFinder:
    """For one index and one choice of columns. `length` is the snapshot's length of the log; rows come segment by
    segment and then from the log; where there are more than `most` entries the answer is None."""

    __slots__ = ("_columns", "_definition", "_direct", "_index", "_key_of", "_log", "_spans")

    def __init__(self, version: MapVersion, index_id: str, columns: tuple[int, ...]) -> None:
        # Not the version itself, which keeps its finders: it goes, and its files with it, with the last who holds it.
        self._definition = version.definition
        self._log = version.columns
        self._columns = columns
        self._index = index_definition(version.definition, index_id)
        self._spans: list[tuple[Callable[[Lookup], tuple[int, int]], EntryReader]] = []
        self._direct: list[tuple[Callable[[np.ndarray], np.ndarray], EntryReader]] = []
        for segment, hidden in zip(version.segments, version.hidden, strict=True):
            opened = segment.index(self._index)
            read = _entry_reader(segment, opened, hidden, columns)
            self._spans.append((opened.span, read))
            if isinstance(opened, SortedIndex) and opened.direct_keys is not None:
                self._direct.append((opened.direct_keys.searchsorted, read))
        self._key_of = None
        if len(self._direct) == len(self._spans):
            self._key_of = direct_key(version.definition.column(self._index.columns[0]).type)

    def between(
        self, start: Any, start_inclusive: bool, stop: Any, stop_inclusive: bool, length: int, most: int
    ) -> Rows | None:
        """The rows between two values of the first column, neither of them NULL.

        `direct_key`s are the same in all segments, so the ends are translated once. Crossed ends find nothing.
        """
        ends = self._direct_ends(start, start_inclusive, stop, stop_inclusive)
        if ends is None:
            return self.find((Lookup((), Range(start, start_inclusive, stop, stop_inclusive)),), length, most)
        found: list[Rows] = []
        for search, read in self._direct:
            low, high = search(ends).tolist()
            if low < high:
                most -= high - low
                if most < 0:
                    return None
                found.append(read(low, high, length))
        if length:
            entries = self._in_log(Lookup((), Range(start, start_inclusive, stop, stop_inclusive)), length)
            if len(entries) > most:
                return None
            found.append(entries)
        return found[0] if len(found) == 1 else chain.from_iterable(found)

    def find(self, lookups: Sequence[Lookup], length: int, most: int) -> Rows | None:
        """The rows of disjoint lookups, one lookup after the other."""
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
                    entries = self._in_log(lookup, length)
                    most -= len(entries)
                    if most < 0:
                        return None
                    found.append(entries)
        except UnicodeEncodeError as error:
            raise unencodable(self._definition, ", ".join(self._index.columns), error.object) from error
        return found[0] if len(found) == 1 else chain.from_iterable(found)

    def _direct_ends(self, start: Any, start_inclusive: bool, stop: Any, stop_inclusive: bool) -> np.ndarray | None:
        """The first key of the range and the first one behind it; None where keys do not tell all.

        So at the ends of BIGINT: the key of the least value is NULL's elsewhere, and no key is above the greatest.
        """
        key_of = self._key_of
        if key_of is None:
            return None
        begin, end = key_of(start) + (not start_inclusive), key_of(stop) + stop_inclusive
        return None if begin == NULL_KEY or end > GREATEST_KEY else np.array((begin, end), np.int64)

    def _in_log(self, lookup: Lookup, length: int) -> list[tuple[Any, ...]]:
        log = LogSource(self._definition, self._log, length)
        return log.rows_at(self._columns, log.entries(self._index.id, lookup))


def _entry_reader(segment: Segment, index: Index, hidden: HiddenRows, columns: tuple[int, ...]) -> EntryReader:
    positions, places = index.positions, memoryview(index.positions)
    row_at, rows_at = row_reader(segment, columns), rows_reader(segment, columns)

    def read(low: int, high: int, length: int) -> Rows:
        marks = hidden.view
        if high - low == 1:
            position = places[low]
            return (row_at(position),) if marks is None or marks[position] > length else ()
        if high - low <= FEW:
            few = places[low:high].tolist()
            return rows_at(few if marks is None else [position for position in few if marks[position] > length])
        many = positions[low:high]
        return rows_at(many if marks is None else many[np.asarray(marks).take(many) > length])

    return read


def rows_reader(segment: Segment, columns: Sequence[int]) -> Callable[[Sequence[int] | np.ndarray], Rows]:
    """The function from positions to rows of these columns, put together as they are read."""
    if not columns:
        return lambda positions: [()] * len(positions)
    readers = [segment.reader(column) for column in columns]
    values = [reader.value for reader in readers]

    def read(positions: Sequence[int] | np.ndarray) -> Rows:
        if len(positions) <= FEW:
            few = positions.tolist() if isinstance(positions, np.ndarray) else positions
            return zip(*[map(value, few) for value in values], strict=True)
        many = np.asarray(positions, np.intp)
        return zip(*[reader.values(many) for reader in readers], strict=True)

    return read
