"""A memtable as Arrow columns with indexes over them, and as a source at a snapshot.

Columns and indexes are made when first asked for, then only extended by the new tail: turning a memtable of 100,000
rows into columns for each query costs nine times the scan, keeping them costs nothing.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.storage.index.index_types import open_memtable_index
from remuda.storage.row_source import coalesced, index_definition
from remuda.storage.segment.segment_builder import partition_ids
from remuda.types.arrow_arrays import stored_array
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.index.index_condition import Lookup, Range
    from remuda.storage.index.index_types import MemtableIndex
    from remuda.storage.memtable.memtable import Memtable


class MemtableColumns:
    """Holds the columns of all entries, tombstones as rows of NULLs, and the partition of each."""

    __slots__ = ("_batch", "_indexes", "_lock", "_partitions", "definition", "memtable")

    def __init__(self, definition: MapDefinition, memtable: Memtable) -> None:
        self.definition = definition
        self.memtable = memtable
        self._lock = Lock()
        self._batch: pa.RecordBatch | None = None
        self._partitions = np.empty(0, np.int64)
        self._indexes: dict[str, MemtableIndex] = {}

    def batch(self, length: int) -> pa.RecordBatch:
        """Return the first `length` entries."""
        return self._extended(length)[0].slice(0, length)

    def partitions(self, length: int) -> np.ndarray:
        return self._extended(length)[1][:length]

    def index(self, definition: IndexDefinition, length: int) -> MemtableIndex:
        """Return the index over at least the first `length` entries."""
        with self._lock:
            found = self._indexes.get(definition.id)
            if found is None:
                found = self._indexes[definition.id] = open_memtable_index(definition, self.definition)
        found.extend(self.memtable.rows, length)
        return found

    def in_order(
        self, definition: IndexDefinition, length: int, lookup: Lookup, *, descending: bool
    ) -> Iterator[list[int]]:
        """Return the entries that match, piece by piece in the order of an index that has one, or against it."""
        return self.index(definition, length).pieces(lookup, descending=descending)

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
        rows = [nothing if row is None else row for row in self.memtable.rows[start:stop]]
        arrays = [stored_array([row[number] for row in rows], column.type) for number, column in enumerate(columns)]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


class MemtableSource:
    """Reads a memtable at a snapshot.

    Positions below `length` are entries of the memtable. The memtable is not ordered by partition, so the ranges of
    some partitions lie behind that: position `length + k` is the k-th live entry in order of partitions.
    """

    __slots__ = ("_by_partition", "_columns", "_definition", "_length", "_live")

    def __init__(self, definition: MapDefinition, columns: MemtableColumns, length: int) -> None:
        self._definition = definition
        self._columns = columns
        self._length = length
        self._live: np.ndarray | None = None
        self._by_partition: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def rows(self) -> int:
        return int(np.count_nonzero(self._live_entries()))

    def ranges(self, partitions: np.ndarray | None) -> list[tuple[int, int]]:
        if partitions is None:
            return [(0, self._length)] if self._length else []
        _, offsets = self._partitioned()
        return [(self._length + start, self._length + stop) for start, stop in coalesced(offsets, partitions)]

    def blocks(self, partitions: np.ndarray | None, column: str, range_: Range) -> list[tuple[int, int]]:  # noqa: ARG002
        """Return all ranges: a memtable is short and in no order, so that none can be left out."""
        return self.ranges(partitions)

    def zone_maxima(self, column: str, *, descending: bool, nulls_first: bool) -> np.ndarray | None:  # noqa: ARG002
        return None

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        if start >= self._length:
            entries, _ = self._partitioned()
            return self.take(columns, entries[start - self._length : stop - self._length])
        batch = self._batch(columns).slice(start, stop - start)
        live = self._live_entries()[start:stop]
        return batch if bool(live.all()) else batch.filter(pa.array(live))

    def count(self, index_id: str, lookup: Lookup) -> int:
        return self._columns.index(index_definition(self._definition, index_id), self._length).count(lookup)

    def entries(self, index_id: str, lookup: Lookup) -> list[int]:
        """Return the live entries that match, in ascending index order where the index is SORTED."""
        index = self._columns.index(index_definition(self._definition, index_id), self._length)
        memtable, length = self._columns.memtable, self._length
        return [at for at in index.find(lookup) if at < length and memtable.is_live(at, length)]

    def positions(self, index_id: str, lookup: Lookup, partitions: np.ndarray | None = None) -> np.ndarray:
        return self._inside(np.array(self.entries(index_id, lookup), np.int64), partitions)

    def ordered_positions(
        self, index_id: str, lookup: Lookup, partitions: np.ndarray | None, *, descending: bool
    ) -> Iterator[np.ndarray]:
        memtable, length = self._columns.memtable, self._length
        definition = index_definition(self._definition, index_id)
        for piece in self._columns.in_order(definition, length, lookup, descending=descending):
            live = [at for at in piece if at < length and memtable.is_live(at, length)]
            found = self._inside(np.array(live, np.int64), partitions)
            if len(found):
                yield found

    def take(self, columns: Sequence[str], positions: np.ndarray) -> pa.RecordBatch:
        return self._batch(columns).take(pa.array(positions))

    def rows_at(self, columns: Sequence[int], positions: Sequence[int] | np.ndarray) -> list[tuple[Any, ...]]:
        rows = self._columns.memtable.rows
        chosen = positions.tolist() if isinstance(positions, np.ndarray) else positions
        return [tuple([row[column] for column in columns]) for at in chosen if (row := rows[at]) is not None]

    def key_positions(self, keys: Sequence[Any]) -> np.ndarray:
        memtable, length = self._columns.memtable, self._length
        found = [memtable.entry_at(canonical_key(key), length) for key in keys]
        return np.array([at for at in found if at >= 0 and memtable.rows[at] is not None], np.int64)

    def _inside(self, entries: np.ndarray, partitions: np.ndarray | None) -> np.ndarray:
        """Return those of the entries that are in one of the partitions."""
        if partitions is None or len(entries) == 0:
            return entries
        chosen = np.zeros(self._definition.partitions, np.bool_)
        chosen[partitions] = True
        inside: np.ndarray = entries[chosen[self._columns.partitions(self._length)[entries]]]
        return inside

    def _batch(self, columns: Sequence[str]) -> pa.RecordBatch:
        return self._columns.batch(self._length).select(list(columns))

    def _live_entries(self) -> np.ndarray:
        if self._live is None:
            self._live = self._columns.memtable.live(self._length)
        return self._live

    def _partitioned(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the live entries in order of partitions, and where each partition begins among them."""
        if self._by_partition is None:
            live = np.flatnonzero(self._live_entries())
            ids = self._columns.partitions(self._length)[live]
            counts = np.bincount(ids, minlength=self._definition.partitions)
            entries = live[np.argsort(ids, kind="stable")]
            self._by_partition = entries, np.concatenate([[0], np.cumsum(counts)])
        return self._by_partition
