"""The one face by which rows are read: a segment at a snapshot, or the memtable at a snapshot.

Positions are the source's own. A position from `positions` or `key_positions` goes into `take` and `rows_at`; a range
from `ranges` goes into `read`, whole or cut into pieces. A VARCHAR column may come as a dictionary array with a sorted
dictionary, and may be so in one source and plain in the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pyarrow as pa

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.index.index_condition import Lookup, Range

# Finding an index of a map by its identity.


def index_definition(definition: MapDefinition, index_id: str) -> IndexDefinition:
    for index in definition.indexes:
        if index.id == index_id:
            return index
    raise SqlError(ErrorCode.INDEX_INVALID, f"an index of {definition.name} is gone")


FIRST_PIECE = 64
LARGEST_PIECE = 65_536
"""Positions in order come in pieces of so many entries, each four times as long as the one before."""


class Source(Protocol):
    @property
    def rows(self) -> int:
        """Return how many rows there are at most."""

    def ranges(self, partitions: np.ndarray | None) -> list[tuple[int, int]]:
        """Return the ranges [start, stop) of these partitions (ascending ids; None: all), neighbours joined."""

    def blocks(self, partitions: np.ndarray | None, column: str, range_: Range) -> list[tuple[int, int]]:
        """Return those parts of `ranges` in which a value of the column may be within this range."""

    def zone_maxima(self, column: str, *, descending: bool, nulls_first: bool) -> np.ndarray | None:
        """Return how far ahead in an order the rows of each block of `ZONE_ROWS` positions can be: integers, greater
        first, which are `normalized_key`s of a descending order, their complements of an ascending one. None: not
        known."""

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        """Return the live rows of a range, without a copy where nothing in it is deleted."""

    def count(self, index_id: str, lookup: Lookup) -> int:
        """Return how many entries match, without reading rows; deleted ones may be counted."""

    def positions(self, index_id: str, lookup: Lookup, partitions: np.ndarray | None = None) -> np.ndarray:
        """Return the live positions that match, in ascending index order where the index is SORTED."""

    def ordered_positions(
        self, index_id: str, lookup: Lookup, partitions: np.ndarray | None, *, descending: bool
    ) -> Iterator[np.ndarray]:
        """Return the same of a SORTED index, piece by piece in its order or against it: who needs the first ones has
        nothing to do with the rest."""

    def take(self, columns: Sequence[str], positions: np.ndarray) -> pa.RecordBatch:
        """Return the rows at these positions, in this order."""

    def rows_at(self, columns: Sequence[int], positions: Sequence[int] | np.ndarray) -> list[tuple[Any, ...]]:
        """Return the same as tuples in stored form, columns by number: for few rows much faster."""

    def key_positions(self, keys: Sequence[Any]) -> np.ndarray:
        """Return the live positions of those keys that are here, in the order of the keys."""


def coalesced(offsets: np.ndarray, partitions: np.ndarray) -> list[tuple[int, int]]:
    """Return the position ranges of some partitions, those that touch joined, empty ones left out.

    >>> import numpy as np
    >>> coalesced(np.array([0, 2, 5, 5, 9]), np.array([0, 1, 3]))
    [(0, 9)]
    >>> coalesced(np.array([0, 2, 5, 6, 9]), np.array([0, 1, 3]))
    [(0, 5), (6, 9)]
    """
    ranges: list[tuple[int, int]] = []
    for start, stop in zip(offsets[partitions].tolist(), offsets[partitions + 1].tolist(), strict=True):
        if start == stop:
            continue
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], stop)
        else:
            ranges.append((start, stop))
    return ranges
