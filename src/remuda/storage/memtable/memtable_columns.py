"""The write log as Arrow columns, and the indexes over it: made when first asked, then only extended by the new tail.

A scan over a log of 100,000 rows that are turned into columns for each query costs nine times the scan; kept, nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.catalog import IndexDefinition, IndexKind, MapDefinition
from remuda.storage.index.index_condition import UNBOUNDED, Lookup
from remuda.storage.segment.segment_builder import partition_ids
from remuda.storage.source import FIRST_PIECE, LARGEST_PIECE
from remuda.types.arrow_arrays import stored_array
from remuda.types.normalized_key import comparable, hashable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.storage.memtable.memtable import Memtable

_FEW = 64
"""So many new entries are inserted into a sorted list one by one; more are appended and sorted."""


class MemtableColumns:
    """The columns of all entries, tombstones as rows of NULLs, and the partition of each."""

    __slots__ = ("_batch", "_indexes", "_lock", "_partitions", "definition", "log")

    def __init__(self, definition: MapDefinition, log: Memtable) -> None:
        self.definition = definition
        self.log = log
        self._lock = Lock()
        self._batch: pa.RecordBatch | None = None
        self._partitions = np.empty(0, np.int64)
        self._indexes: dict[str, _LogHashIndex | _LogSortedIndex] = {}

    def batch(self, length: int) -> pa.RecordBatch:
        """The first `length` entries."""
        return self._extended(length)[0].slice(0, length)

    def partitions(self, length: int) -> np.ndarray:
        return self._extended(length)[1][:length]

    def index(self, definition: IndexDefinition, length: int) -> _LogHashIndex | _LogSortedIndex:
        """The index over at least the first `length` entries."""
        with self._lock:
            found = self._indexes.get(definition.id)
            if found is None:
                kind = _LogHashIndex if definition.kind is IndexKind.HASH else _LogSortedIndex
                found = self._indexes[definition.id] = kind(self.definition.positions(definition.columns))
        found.extend(self.log, length)
        return found

    def in_order(
        self, definition: IndexDefinition, length: int, lookup: Lookup, *, descending: bool
    ) -> Iterator[list[int]]:
        """The entries that match, piece by piece in the order of a SORTED index or against it."""
        index = self.index(definition, length)
        assert isinstance(index, _LogSortedIndex), "a HASH index has no order"
        return index.pieces(lookup, descending=descending)

    def _extended(self, length: int) -> tuple[pa.RecordBatch, np.ndarray]:
        with self._lock:
            batch = self._batch
            known = 0 if batch is None else batch.num_rows
            if batch is None or known < length:
                tail = self._columns(known, length)
                ids = partition_ids(self.definition, tail.columns)
                self._batch = batch = pa.concat_batches([batch, tail]) if known else tail
                self._partitions = np.concatenate([self._partitions, ids])
            return batch, self._partitions

    def _columns(self, start: int, stop: int) -> pa.RecordBatch:
        columns = self.definition.columns
        nothing = (None,) * len(columns)
        rows = [nothing if row is None else row for row in self.log.rows[start:stop]]
        arrays = [stored_array([row[number] for row in rows], column.type) for number, column in enumerate(columns)]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


class _LogHashIndex:
    """From a value to the entries that have it, live or not."""

    __slots__ = ("_columns", "_entries", "_length", "_lock")

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._columns = columns
        self._entries: dict[tuple[Any, ...], list[int]] = {}
        self._length = 0
        self._lock = Lock()

    def extend(self, log: Memtable, length: int) -> None:
        with self._lock:
            for entry in range(self._length, length):
                row = log.rows[entry]
                if row is not None:
                    value = tuple([hashable(row[column]) for column in self._columns])
                    self._entries.setdefault(value, []).append(entry)
            self._length = max(self._length, length)

    def count(self, lookup: Lookup) -> int:
        return len(self._matches(lookup))

    def find(self, lookup: Lookup) -> list[int]:
        return list(self._matches(lookup))

    def _matches(self, lookup: Lookup) -> list[int]:
        assert lookup.range is None, "a HASH index serves equalities"
        return self._entries.get(tuple([hashable(value) for value in lookup.prefix]), [])


class _LogSortedIndex:
    """Tuples of comparable values that end in the entry, sorted; see `comparable` for NULL and NaN."""

    __slots__ = ("_columns", "_length", "_lock", "_order")

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._columns = columns
        self._order: list[tuple[Any, ...]] = []
        self._length = 0
        self._lock = Lock()

    def extend(self, log: Memtable, length: int) -> None:
        with self._lock:
            fresh = []
            for entry in range(self._length, length):
                row = log.rows[entry]
                if row is not None:
                    fresh.append((*_parts(row[column] for column in self._columns), entry))
            self._length = max(self._length, length)
            if len(fresh) <= _FEW:
                for item in fresh:
                    insort(self._order, item)
            else:
                self._order += fresh
                self._order.sort()

    def count(self, lookup: Lookup) -> int:
        with self._lock:
            low, high = self._span(lookup)
            return high - low

    def find(self, lookup: Lookup) -> list[int]:
        with self._lock:
            low, high = self._span(lookup)
            return [item[-1] for item in self._order[low:high]]

    def pieces(self, lookup: Lookup, *, descending: bool) -> Iterator[list[int]]:
        """The entries in order or against it. Others are added meanwhile: a piece begins where the last one ended, by
        the item that stood there, not by its number."""
        size, last = FIRST_PIECE, None
        while True:
            with self._lock:
                low, high = self._span(lookup)
                if last is not None:
                    place = bisect_left(self._order, last)
                    low, high = (low, place) if descending else (place + 1, high)
                low, high = (max(low, high - size), high) if descending else (low, min(high, low + size))
                items = self._order[low:high]
            if not items:
                return
            last = items[0 if descending else -1]
            entries = [item[-1] for item in items]
            yield entries[::-1] if descending else entries
            size = min(size * 4, LARGEST_PIECE)

    def _span(self, lookup: Lookup) -> tuple[int, int]:
        """A prefix of a tuple is below the tuple; with infinity behind it, above all that begin with it."""
        prefix = _parts(lookup.prefix)
        low: tuple[Any, ...] = prefix
        high: tuple[Any, ...] = (*prefix, inf)
        wanted = lookup.range
        if wanted is not None:
            if wanted.low is None or wanted.high is None:
                return 0, 0
            # Flag 1 begins the values: NULLs, flag 0, stay outside of every range.
            low = (*prefix, 1)
            if wanted.low is not UNBOUNDED:
                low = (*prefix, *comparable(wanted.low)) + (() if wanted.low_inclusive else (inf,))
            if wanted.high is not UNBOUNDED:
                high = (*prefix, *comparable(wanted.high)) + ((inf,) if wanted.high_inclusive else ())
        start = bisect_left(self._order, low)
        return start, max(start, bisect_left(self._order, high))


def _parts(values: Any) -> tuple[Any, ...]:
    return tuple(part for value in values for part in comparable(value))
