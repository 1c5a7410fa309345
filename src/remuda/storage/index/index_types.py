"""How an index of each type is built and opened: the one table of index types that storage has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from remuda.catalog import IndexType
from remuda.dataclass import dataclass
from remuda.storage.index import hash_index, sorted_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.index.index_condition import Lookup
    from remuda.storage.segment.block_guard import Array
    from remuda.storage.segment.column_reader import ColumnReader
    from remuda.types import SqlType


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns of an index in a segment, in index order. `ordinals` are their numbers in the map's definition;
    `hold` guards the files that they are mapped from."""

    ordinals: tuple[int, ...]
    arrays: Sequence[pa.Array]
    readers: Sequence[ColumnReader]
    types: Sequence[SqlType]
    hold: object


class SegmentIndex(Protocol):
    """An open index over the rows of a segment."""

    positions: Array
    """The positions of all rows, those of equal values side by side."""

    def span(self, lookup: Lookup) -> tuple[int, int]:
        """Find where in `positions` the matches stand, in index order if the index has one."""


class MemtableIndex(Protocol):
    """An index over the entries of a memtable, which grow while it is read."""

    def extend(self, rows: Sequence[tuple[Any, ...] | None], length: int) -> None:
        """Take up entries until the first `length` are known."""

    def count(self, lookup: Lookup) -> int:
        """Count the entries that match, live or not."""

    def find(self, lookup: Lookup) -> list[int]:
        """List the entries that match, live or not, in index order if the index has one."""

    def pieces(self, lookup: Lookup, *, descending: bool) -> Iterator[list[int]]:
        """Yield the same piece by piece, in index order or against it; only of types that serve order."""


@dataclass(frozen=True, slots=True)
class IndexStorage:
    """Builds and opens the indexes of one type.

    `positions` names the array that holds positions of rows.
    """

    build: Callable[[Sequence[pa.Array], Sequence[SqlType]], dict[str, np.ndarray]]
    open: Callable[[Mapping[str, Array], IndexedColumns], SegmentIndex]
    open_memtable: Callable[[tuple[int, ...]], MemtableIndex]
    positions: str


STORAGE = {
    IndexType.SORTED: IndexStorage(
        sorted_index.build_sorted_index,
        sorted_index.SortedIndex,
        sorted_index.MemtableSortedIndex,
        sorted_index.POSITIONS,
    ),
    IndexType.HASH: IndexStorage(
        hash_index.build_hash_index, hash_index.HashIndex, hash_index.MemtableHashIndex, hash_index.POSITIONS
    ),
}
POSITION_ARRAYS = frozenset(each.positions for each in STORAGE.values())


def build_index(index: IndexDefinition, definition: MapDefinition, batch: pa.RecordBatch) -> dict[str, np.ndarray]:
    """Build the arrays of one index over the rows of a segment."""
    ordinals = definition.positions(index.columns)
    columns = [batch.column(ordinal) for ordinal in ordinals]
    return STORAGE[index.type].build(columns, [definition.columns[ordinal].type for ordinal in ordinals])


def open_memtable_index(index: IndexDefinition, definition: MapDefinition) -> MemtableIndex:
    """Make an index over a memtable, without entries."""
    return STORAGE[index.type].open_memtable(definition.positions(index.columns))
