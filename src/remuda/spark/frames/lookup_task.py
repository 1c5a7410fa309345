"""The tasks of a lookup: Arrow batches of a frame come, and go on with columns of a map at their right."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.spark.driver.tasks import freeze_garbage
from remuda.spark.source.planned_map import PlannedMap, made_anew
from remuda.storage.lookup.arrow_lookup import lookup_by_index, lookup_by_key
from remuda.storage.lookup.exact_keys import exact_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage import MapSnapshot

Matches = tuple[np.ndarray | None, list[pa.Array]]
"""Rows of the result: the position of the key of each, None where each key has one row, and the columns of the map."""
_MOST_ROWS = 65_536
"""How many rows an index should give at once: keys are asked for in slices of about so many rows."""
_FIRST_KEYS = 1_024
_GROWTH = 2
"""How much larger a slice may be than the one before, whose keys may have had no rows."""


@dataclass(frozen=True, slots=True)
class LookupTask:
    """What each task does, as a value that pickles.

    `keys` are the positions of the key columns in the frame, in the order of `key`, the columns of the map that they
    are compared with.
    """

    planned: PlannedMap
    key: tuple[str, ...]
    keys: tuple[int, ...]
    columns: tuple[str, ...]
    index: str | None
    inner: bool

    @property
    def __name__(self) -> str:
        """Return what Spark's EXPLAIN and UI call the lookup: its access path."""
        way = "key" if self.index is None else f"index {self.index}"
        return f"remuda_lookup {self.planned.definition.name} by {way} ({', '.join(self.key)})"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the columns of the map to each batch. A task without rows opens nothing."""
        rest = iter(batches)
        first = next(rest, None)
        if first is None:
            return
        with self.planned.snapshot() as snapshot:
            for batch in chain((first,), rest):
                for positions, found in self._matches(snapshot, [batch.column(position) for position in self.keys]):
                    ours = batch if positions is None else batch.take(pa.array(positions))
                    yield _beside(ours, found)
        freeze_garbage()

    def find(self, keys: Sequence[pa.Array]) -> Iterator[Matches]:
        """Look up keys, with an array for each key column."""
        with self.planned.snapshot() as snapshot:
            yield from self._matches(snapshot, keys)

    def _matches(self, snapshot: MapSnapshot, keys: Sequence[pa.Array]) -> Iterator[Matches]:
        index = self._same_index(snapshot.definition)
        types = [snapshot.definition.column(name).type for name in self.key]
        exact = [exact_keys(*each) for each in zip(keys, types, self.key, strict=True)]
        if index is None:
            yield self._by_key(snapshot, exact)
        else:
            yield from self._by_index(snapshot, index, exact)

    def _same_index(self, definition: MapDefinition) -> IndexDefinition | None:
        """Return the index to ask. Raise if the map is no longer the one that the frame was planned for."""
        planned = self.planned.definition
        for name in (*self.key, *self.columns):
            column, before = definition.find_column(name), planned.column(name)
            if column is None or column.type != before.type or (column.nullable and not before.nullable):
                raise made_anew(definition)
        if self.index is None:
            if definition.key != planned.key:
                raise made_anew(definition)
            return None
        index = definition.find_index(self.index)
        if index is None or index.columns != self.key:
            raise made_anew(definition)
        return index

    def _by_key(self, snapshot: MapSnapshot, keys: Sequence[pa.Array]) -> Matches:
        rows = lookup_by_key(snapshot, keys, self.columns)
        found = rows.column(rows.num_columns - 1)
        if not self.inner or found.true_count == len(found):
            return None, rows.columns[:-1]
        positions = np.flatnonzero(found.to_numpy(zero_copy_only=False))
        return positions, rows.take(pa.array(positions)).columns[:-1]

    def _by_index(self, snapshot: MapSnapshot, index: IndexDefinition, keys: Sequence[pa.Array]) -> Iterator[Matches]:
        start, size, count = 0, _FIRST_KEYS, len(keys[0])
        while start < count:
            asked = min(size, count - start)
            rows = lookup_by_index(snapshot, index, [array.slice(start, asked) for array in keys], self.columns)
            positions, found = rows.column(0).to_numpy(), rows.columns[1:-1]
            if not self.inner:
                positions, found = _with_unmatched(positions, found, asked)
            if len(positions):
                yield positions + start, found
            start += asked
            size = max(1, min(size * _GROWTH, _MOST_ROWS * asked // max(len(positions), 1)))


def _with_unmatched(positions: np.ndarray, columns: list[pa.Array], count: int) -> tuple[np.ndarray, list[pa.Array]]:
    """Add a row of NULLs for each key that has no row, at the place of the key."""
    matched = np.zeros(count, np.bool_)
    matched[positions] = True
    unmatched = np.flatnonzero(~matched)
    if not len(unmatched):
        return positions, columns
    every = np.concatenate([positions, unmatched])
    order = np.argsort(every, kind="stable")
    absent = order >= len(positions)
    indices = pa.array(np.where(absent, 0, order), pa.int64(), mask=absent)
    return every[order], [column.take(indices) for column in columns]


def _beside(batch: pa.RecordBatch, columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Spark takes the columns by position, and names them itself. It cannot read two columns of one name.

    It counts the time of a day in nanoseconds alone.
    """
    arrays = [
        *batch.columns,
        *(each.cast(pa.time64("ns")) if pa.types.is_time(each.type) else each for each in columns),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])
