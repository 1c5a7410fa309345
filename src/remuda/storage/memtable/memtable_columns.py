"""The memtable as Arrow columns, and the indexes over it: made when first asked, then only extended by the new tail.

Turning a memtable of 100,000 rows into columns for each query costs nine times the scan; keeping them costs nothing.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.storage.index.index_types import open_memtable_index
from remuda.storage.segment.segment_builder import partition_ids
from remuda.types.arrow_arrays import stored_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.index.index_condition import Lookup
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
