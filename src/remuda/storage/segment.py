"""A segment: immutable rows of many partitions, ordered by partition id, with their key index and their indexes.

In memory or memory-mapped is all the same here: a segment is one Arrow record batch and a few numpy arrays. Nothing of
it ever changes; which of its rows are hidden by later writes is known to the map's version, not to the segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.catalog import IndexDefinition, IndexKind, MapDefinition
from remuda.storage.column_reader import ColumnReader
from remuda.storage.hash_index import HashIndex, build_hash_index
from remuda.storage.key_index import prober
from remuda.storage.sorted_index import SortedIndex, build_sorted_index
from remuda.storage.value_order import hashable
from remuda.storage.zone_map import ZoneMap, open_zones

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from remuda.storage.column_summary import ColumnSummary

Index = HashIndex | SortedIndex


class Segment:
    """`hold` is whatever must live as long as the segment does: the guard of its files."""

    __slots__ = (
        "_probe",
        "_readers",
        "batch",
        "definition",
        "hold",
        "id",
        "index_arrays",
        "key_table",
        "narrow_columns",
        "open_indexes",
        "partition_offsets",
        "summaries",
        "zone_arrays",
    )

    def __init__(
        self,
        segment_id: str,
        definition: MapDefinition,
        batch: pa.RecordBatch,
        partition_offsets: np.ndarray,
        key_table: np.ndarray,
        index_arrays: Mapping[str, dict[str, np.ndarray]],
        summaries: Mapping[str, ColumnSummary],
        zone_arrays: Mapping[str, np.ndarray],
        hold: object = None,
    ) -> None:
        self.id = segment_id
        self.definition = definition
        self.batch = batch
        self.partition_offsets = partition_offsets
        self.key_table = key_table
        self.index_arrays = index_arrays
        self.summaries = summaries
        self.zone_arrays = zone_arrays
        self.hold = hold
        self._readers: dict[int, ColumnReader] = {}
        self.open_indexes: dict[str, Index] = {}
        self._probe: Callable[[Any, int], int] | None = None
        self.narrow_columns: dict[str, Any] = {}
        """Kept here by scans, which filter by some columns again and again, as long as the segment is."""

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows)

    @property
    def first_partition(self) -> int:
        """The first partition with a row; the segment covers it to `last_partition`, both included."""
        return int(np.searchsorted(self.partition_offsets, 0, side="right")) - 1

    @property
    def last_partition(self) -> int:
        return int(np.searchsorted(self.partition_offsets, self.rows, side="left")) - 1

    def reader(self, column: int) -> ColumnReader:
        """The reader of a column by its number in the definition."""
        found = self._readers.get(column)
        if found is None:
            found = ColumnReader(self.batch.column(column), self.definition.columns[column].type)
            self._readers[column] = found
        return found

    @property
    def probe(self) -> Callable[[Any, int], int]:
        """The function from a key and its unsigned hash to the position, or -1."""
        if self._probe is None:
            self._probe = prober(self.key_table, self.rows, *key_access(self))
        return self._probe

    def key_at(self, position: int) -> Any:
        return key_access(self)[1](position)

    def index(self, definition: IndexDefinition) -> Index:
        """The open index. Built here and now only for segments that were made without any, which are small."""
        found = self.open_indexes.get(definition.id)
        if found is None:
            arrays = self.index_arrays.get(definition.id)
            if arrays is None:
                arrays = build_index(definition, self.definition, self.batch)
            found = self._open(definition, arrays)
            self.open_indexes[definition.id] = found
        return found

    def zones(self, column: int) -> ZoneMap | None:
        """The zone map of a column; None where its type has none."""
        return open_zones(self.zone_arrays, column, self.batch.column(column), self.definition.columns[column].type)

    def with_index(self, definition: IndexDefinition, arrays: dict[str, np.ndarray]) -> Segment:
        """The same segment with one more index; a snapshot that holds this one is not disturbed."""
        return self._with_indexes({**self.index_arrays, definition.id: arrays})

    def without_index(self, definition: IndexDefinition) -> Segment:
        return self._with_indexes({key: each for key, each in self.index_arrays.items() if key != definition.id})

    def _with_indexes(self, index_arrays: Mapping[str, dict[str, np.ndarray]]) -> Segment:
        return Segment(
            self.id,
            self.definition,
            self.batch,
            self.partition_offsets,
            self.key_table,
            index_arrays,
            self.summaries,
            self.zone_arrays,
            self.hold,
        )

    def _open(self, definition: IndexDefinition, arrays: dict[str, np.ndarray]) -> Index:
        numbers = self.definition.positions(definition.columns)
        readers = [self.reader(number) for number in numbers]
        types = [self.definition.columns[number].type for number in numbers]
        if definition.kind is IndexKind.HASH:
            return HashIndex(arrays, readers, types)
        return SortedIndex(arrays, numbers[0], [self.batch.column(number) for number in numbers], readers, types)


def build_index(index: IndexDefinition, definition: MapDefinition, batch: pa.RecordBatch) -> dict[str, np.ndarray]:
    """The arrays of one index over the rows of a segment."""
    numbers = definition.positions(index.columns)
    columns = [batch.column(number) for number in numbers]
    types = [definition.columns[number].type for number in numbers]
    build = build_hash_index if index.kind is IndexKind.HASH else build_sorted_index
    return build(columns, types)


def key_access(segment: Segment) -> tuple[memoryview | None, Callable[[int], Any]]:
    """The raw keys, where they are one column of whole numbers, and the function from a position to the key."""
    numbers = segment.definition.positions(segment.definition.key)
    readers = [segment.reader(number) for number in numbers]
    types = [segment.definition.columns[number].type for number in numbers]
    floating = any(sql_type.is_floating for sql_type in types)
    if len(readers) > 1:
        values = tuple(reader.value for reader in readers)
        return None, _tuple_reader(values, floating)
    value = readers[0].value
    if floating:
        return None, lambda position: hashable(value(position))
    return readers[0].numbers, value


def _tuple_reader(values: Sequence[Callable[[int], Any]], floating: bool) -> Callable[[int], tuple[Any, ...]]:
    if floating:
        return lambda position: tuple([hashable(value(position)) for value in values])
    return lambda position: tuple([value(position) for value in values])
