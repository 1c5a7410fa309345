"""A segment at a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.storage.encodable import naming_columns, unencodable
from remuda.storage.row_source import FIRST_PIECE, LARGEST_PIECE, coalesced, index_definition
from remuda.storage.segment.column_reader import FEW
from remuda.storage.segment.zone_map import common_ranges
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.index.index_condition import Lookup, Range
    from remuda.storage.segment.block_guard import Array
    from remuda.storage.segment.deletion_vector import DeletionVector
    from remuda.storage.segment.segment import Segment


class SegmentSource:
    __slots__ = ("_definition", "_deletions", "_hash", "_length", "segment")

    def __init__(
        self,
        definition: MapDefinition,
        segment: Segment,
        deletions: DeletionVector,
        length: int,
        hash_key: Callable[[Any], int],
    ) -> None:
        self._definition = definition
        self.segment = segment
        self._deletions = deletions
        self._length = length
        self._hash = hash_key

    @property
    def rows(self) -> int:
        return self.segment.rows - self._deletions.count(self._length)

    def covers(self, partitions: np.ndarray) -> bool:
        """Tell whether one of some partitions, in ascending order, lies between the first and the last with a row."""
        at = int(np.searchsorted(partitions, self.segment.first_partition))
        return at < len(partitions) and int(partitions[at]) <= self.segment.last_partition

    def ranges(self, partitions: np.ndarray | None) -> list[tuple[int, int]]:
        if partitions is None:
            return [(0, self.segment.rows)] if self.segment.rows else []
        return coalesced(self.segment.partition_offsets, partitions)

    def blocks(self, partitions: np.ndarray | None, column: str, range_: Range) -> list[tuple[int, int]]:
        ranges = self.ranges(partitions)
        zones = self.segment.zones(self._definition.position(column)) if ranges else None
        if zones is None:
            return ranges
        with naming_columns(self._definition, (column,)):
            return common_ranges(ranges, zones.runs(range_, self.segment.rows))

    def zone_maxima(self, column: str, *, descending: bool, nulls_first: bool) -> np.ndarray | None:
        number = self._definition.position(column)
        zones = self.segment.zones(number)
        if zones is None or (nulls_first and self.segment.batch.column(number).null_count):
            return None
        return zones.zone_maxima(descending=descending)

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        batch = self.segment.read(columns, start, stop)
        deleted_at = self._deletions.deleted_at
        if deleted_at is None:
            return batch
        live = deleted_at[start:stop] > self._length
        return batch if bool(live.all()) else batch.filter(pa.array(live))

    def count(self, index_id: str, lookup: Lookup) -> int:
        _, low, high = self._span(index_id, lookup)
        return high - low

    def positions(self, index_id: str, lookup: Lookup, partitions: np.ndarray | None = None) -> np.ndarray:
        positions, low, high = self._span(index_id, lookup)
        found = positions[low:high]
        return self._live(found, None if partitions is None else self._ends(partitions))

    def ordered_positions(
        self, index_id: str, lookup: Lookup, partitions: np.ndarray | None, *, descending: bool
    ) -> Iterator[np.ndarray]:
        positions, low, high = self._span(index_id, lookup)
        ends = None if partitions is None else self._ends(partitions)
        size = FIRST_PIECE
        if ends is None and self._deletions.deleted_at is None:
            size = high - low  # there is nothing to leave out, so nothing to be done for each
        while low < high:
            if descending:
                found = positions[max(low, high - size) : high][::-1]
                high -= len(found)
            else:
                found = positions[low : min(high, low + size)]
                low += len(found)
            size = min(size * 4, LARGEST_PIECE)
            live = self._live(found, ends)
            if len(live):
                yield live

    def take(self, columns: Sequence[str], positions: np.ndarray) -> pa.RecordBatch:
        return self.segment.take(columns, positions)

    def rows_at(self, columns: Sequence[int], positions: Sequence[int] | np.ndarray) -> list[tuple[Any, ...]]:
        if not columns:
            return [()] * len(positions)
        readers = [self.segment.reader(column) for column in columns]
        if len(positions) <= FEW:
            few = positions.tolist() if isinstance(positions, np.ndarray) else positions
            return list(zip(*[map(reader.value, few) for reader in readers], strict=True))
        many = np.asarray(positions, np.intp)
        return list(zip(*[reader.values(many) for reader in readers], strict=True))

    def key_positions(self, keys: Sequence[Any]) -> np.ndarray:
        probe, hash_key, deletions, length = self.segment.probe, self._hash, self._deletions, self._length
        with naming_columns(self._definition, self._definition.key):
            found = [probe(key, hash_key(key)) for key in map(canonical_key, keys)]
        return np.array([at for at in found if at >= 0 and not deletions.is_deleted_at(at, length)], np.int64)

    def _span(self, index_id: str, lookup: Lookup) -> tuple[Array, int, int]:
        """Return the positions of an index, and from where to where among them the matches stand."""
        index = self.segment.access.indexes.get(index_id)
        if index is None:
            index = self.segment.index(index_definition(self._definition, index_id))
        try:
            return index.positions, *index.span(lookup)
        except UnicodeEncodeError as error:
            columns = index_definition(self._definition, index_id).columns
            raise unencodable(self._definition, ", ".join(columns), error.object) from error

    def _live(self, positions: np.ndarray, ends: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
        """Return the live positions that lie between two of the ends (None: anywhere)."""
        if not self.segment.proven:
            self.segment.check_positions(positions)
        if ends is not None and len(positions):
            positions = positions[_inside(positions, *ends)]
        deleted_at = self._deletions.deleted_at
        return positions if deleted_at is None else positions[deleted_at.take(positions) > self._length]

    def _ends(self, partitions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where the ranges of the partitions start, and where they stop."""
        ranges = coalesced(self.segment.partition_offsets, partitions)
        return np.array([start for start, _ in ranges], np.int64), np.array([stop for _, stop in ranges], np.int64)


class RemoteSegmentSource(SegmentSource):
    """Fetches the rows that are read value by value before they are read: all columns at once."""

    __slots__ = ()

    def rows_at(self, columns: Sequence[int], positions: Sequence[int] | np.ndarray) -> list[tuple[Any, ...]]:
        fetch = self.segment.row_fetcher(columns)
        if fetch is not None:
            fetch(np.asarray(positions, np.int64))
        return super().rows_at(columns, positions)


def source_class(segment: Segment) -> type[SegmentSource]:
    return RemoteSegmentSource if segment.is_remote else SegmentSource


def _inside(positions: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Tell whether each position is in one of the ranges."""
    if len(starts) == 0:
        return np.zeros(len(positions), np.bool_)
    nearest = np.searchsorted(starts, positions, side="right") - 1
    inside: np.ndarray = (nearest >= 0) & (positions < stops.take(nearest, mode="clip"))
    return inside
