"""A segment: immutable rows of many partitions, ordered by partition id, with their key index and their indexes.

In memory or memory-mapped is all the same here: a segment is one Arrow record batch and a few numpy arrays. Nothing of
it ever changes; which of its rows are hidden by later writes is known to the map's version, not to the segment.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import StorageError, damage_error
from remuda.storage.index.index_types import POSITION_ARRAYS, STORAGE, IndexedColumns, build_index
from remuda.storage.index.key_index import prober
from remuda.storage.segment.block_guard import (
    Array,
    Values,
    check_array,
    check_column,
    check_fixed,
    guarded,
    guards_of,
    is_proven,
    view_of,
)
from remuda.storage.segment.column_reader import ColumnReader
from remuda.storage.segment.zone_map import ZoneMap, open_zones, zone_names
from remuda.types.arrow_arrays import arrow_of
from remuda.types.arrow_compute import pc
from remuda.types.normalized_key import hashable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.index.index_types import SegmentIndex
    from remuda.storage.segment.summary.column_summary import ColumnSummary

CHECKED_ROWS = 1 << 16
"""Rows of a block that is checked at its first use: a millisecond where they are texts."""


class Segment:
    """Reads immutable rows by position, key or index.

    `hold` is whatever must live as long as the segment does: the guard of its files.
    """

    __slots__ = (
        "_checked_blocks",
        "access",
        "batch",
        "definition",
        "encoded_columns",
        "hold",
        "id",
        "index_arrays",
        "key_table",
        "partition_offsets",
        "summaries",
        "zone_arrays",
    )

    is_remote = False
    """Whether what is read may have to be fetched."""

    @property
    def is_open(self) -> bool:
        """Tell whether the files, if there are any, are open."""
        return True

    def __init__(
        self,
        segment_id: str,
        definition: MapDefinition,
        batch: pa.RecordBatch,
        partition_offsets: np.ndarray,
        key_table: np.ndarray,
        index_arrays: Mapping[str, Mapping[str, np.ndarray]],
        summaries: Mapping[str, ColumnSummary],
        zone_arrays: Mapping[str, np.ndarray],
        hold: object = None,
    ) -> None:
        self.begin(segment_id, definition, summaries, hold)
        self.batch = batch
        self.partition_offsets = partition_offsets
        self.key_table = key_table
        self.index_arrays = index_arrays
        self.zone_arrays = zone_arrays

    def begin(
        self, segment_id: str, definition: MapDefinition, summaries: Mapping[str, ColumnSummary], hold: object
    ) -> None:
        """Set what is known without the files."""
        self.id = segment_id
        self.definition = definition
        self.summaries = summaries
        self.hold = hold
        self.access = _Access()
        self._checked_blocks: dict[int, np.ndarray] = {}
        self.encoded_columns: dict[str, Any] = {}
        """Kept here by scans, which filter by some columns again and again, as long as the segment is."""

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows)

    @property
    def proven(self) -> bool:
        """Tell whether the files are known to be as they were written, and every offset, code and position in them to
        lie inside: see `SegmentFiles.verified`.

        As long as it is not, blocks are compared with their checksums before anything is read of them, and Arrow, which
        checks no offset, gets only those that were checked before. Python and numpy check each by themselves.
        """
        return is_proven(self.hold)

    @property
    def is_guarded(self) -> bool:
        """Tell whether what is read is verified: by the block, unless the segment is proven. Files of earlier versions
        have no checksums of blocks."""
        return self.proven or guards_of(self.batch, self.hold)

    def use_proven(self) -> None:
        """Read without verifying from now on: what was made to read this segment before is made anew.

        A thread that makes a reader in this moment puts it into a dictionary that is not read any more.
        """
        self.access = _Access()

    def expect(self, columns: Sequence[str], ranges: Sequence[tuple[int, int]]) -> None:
        """Take note of a scan that is about to begin: what has to be fetched comes in larger pieces then."""

    @property
    def is_whole(self) -> bool:
        """Tell whether all files are on this machine."""
        return True

    def whole_files(self, folder: Path) -> AbstractContextManager[Path]:
        """Have all files in a folder meanwhile: this one, where they are."""
        return nullcontext(folder)

    def unopened(self) -> Segment:
        """Return the same segment with nothing opened, where its files can be opened again."""
        return self

    def row_fetcher(self, numbers: Sequence[int]) -> Callable[[np.ndarray], None] | None:  # noqa: ARG002
        """Return what fetches rows at positions before they are read value by value; None where nothing is fetched."""
        return None

    def column(self, number: int) -> pa.Array:
        """Return a column that is safe to read by Arrow, as a whole."""
        if not self.proven:
            self._check_blocks(number, slice(0, self.rows))
        return self.batch.column(number)

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        """Return rows that are safe to read by Arrow."""
        if not self.proven:
            for name in columns:
                self._check_blocks(self.definition.position(name), slice(start, stop))
        return self.batch.select(list(columns)).slice(start, stop - start)

    def take(self, columns: Sequence[str], positions: np.ndarray) -> pa.RecordBatch:
        """Return rows at positions, in their order."""
        if not self.proven and len(positions):
            self.check_positions(positions)
            for name in columns:
                self._check_blocks(self.definition.position(name), positions)
        return self.batch.select(list(columns)).take(arrow_of(positions))

    def _check_blocks(self, number: int, rows: slice | np.ndarray) -> None:
        """Verify rows of a column, and check its offsets or codes, at their first use, before Arrow follows them.

        By blocks, as a small read of a large segment must stay small.
        """
        array = self.batch.column(number)
        is_encoded = pa.types.is_dictionary(array.type)
        if not is_encoded and array.type not in (pa.string(), pa.binary()):
            check_fixed(array, rows, self.hold)
            return
        checked = self._checked_blocks.get(number)
        if checked is None:
            if is_encoded:
                self._check_dictionary(array.dictionary)
            checked = self._checked_blocks[number] = np.zeros(-(-self.rows // CHECKED_ROWS), np.bool_)
        dirty = np.zeros_like(checked)
        if isinstance(rows, slice):
            dirty[rows.start // CHECKED_ROWS : -(-rows.stop // CHECKED_ROWS)] = True
        else:
            dirty[rows // CHECKED_ROWS] = True
        for block in np.flatnonzero(dirty & ~checked).tolist():
            piece = array.slice(block * CHECKED_ROWS, CHECKED_ROWS)
            check_column(piece, self.hold)
            self._check_codes(piece) if is_encoded else self._validate(piece)
            checked[block] = True

    def _check_dictionary(self, dictionary: pa.Array) -> None:
        check_column(dictionary, self.hold)
        self._validate(dictionary)

    def _check_codes(self, piece: pa.DictionaryArray) -> None:
        ends = pc.min_max(piece.indices).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < len(piece.dictionary):
            raise self._damaged("a value has a code that its dictionary does not have")

    def check_positions(self, positions: np.ndarray) -> None:
        """Raise where a position that was read from a file is not one of this segment's rows."""
        if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < self.rows:
            raise damage_error("an index of a segment is damaged", getattr(self.hold, "path", None))

    def prove(self) -> None:
        """Check all that other code relies on, in a segment whose checksums are right: an attacker can make those."""
        self._validate(self.batch)
        offsets = self.partition_offsets
        if len(offsets) != self.definition.partitions + 1 or offsets[0] != 0 or offsets[-1] != self.rows:
            raise self._damaged("its partitions do not cover its rows")
        if bool(np.any(np.diff(offsets.astype(np.int64)) < 0)):
            raise self._damaged("its partitions overlap")
        if len(self.key_table) and not 0 <= int(self.key_table.min()) <= int(self.key_table.max()) <= self.rows:
            raise self._damaged("its key table names rows that it does not have")
        for arrays in self.index_arrays.values():
            for name in POSITION_ARRAYS & arrays.keys():
                self.check_positions(arrays[name])

    def _validate(self, rows: pa.Array | pa.RecordBatch) -> None:
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, what: str) -> StorageError:
        return damage_error(f"the rows of a segment are damaged: {what}", getattr(self.hold, "path", None))

    @property
    def first_partition(self) -> int:
        """Return the first partition with a row; the segment covers it to `last_partition`, both included."""
        return partitions_with_rows(self.partition_offsets)[0]

    @property
    def last_partition(self) -> int:
        return partitions_with_rows(self.partition_offsets)[1]

    def reader(self, column: int) -> ColumnReader:
        """Return the reader of a column by its number in the definition."""
        readers = self.access.readers
        found = readers.get(column)
        if found is None:
            # The reader must not hold the segment, which holds it: obsolete files wait for the last reference to go.
            found = ColumnReader(self.batch.column(column), self.definition.columns[column].type, self.hold)
            readers[column] = found
        return found

    @property
    def probe(self) -> Callable[[Any, int], int]:
        """Return the function from a key and its unsigned hash to the position, or -1."""
        access = self.access
        if access.probe is None:
            access.probe = prober(guarded(self.key_table, self.hold), self.rows, *key_access(self))
        return access.probe

    @property
    def key_array(self) -> Array:
        """The key table for those who probe it by some keys at a time."""
        return guarded(self.key_table, self.hold)

    @property
    def key_slots(self) -> Values:
        """Return the key table for those who probe it by themselves."""
        return view_of(guarded(self.key_table, self.hold))

    def whole_key_table(self) -> np.ndarray:
        """Return the key table, verified, for those who probe it by many keys at a time."""
        check_array(self.key_table, self.hold)
        return self.key_table

    def key_at(self, position: int) -> Any:
        return key_access(self)[1](position)

    def index(self, definition: IndexDefinition) -> SegmentIndex:
        """Return the open index. Built here and now only for segments that were made without any, which are small."""
        indexes = self.access.indexes
        found = indexes.get(definition.id)
        if found is None:
            arrays = self.index_arrays.get(definition.id)
            if arrays is None:
                for number in self.definition.positions(definition.columns):
                    self.column(number)
                arrays = build_index(definition, self.definition, self.batch)
            found = self._open(definition, {name: guarded(array, self.hold) for name, array in arrays.items()})
            indexes[definition.id] = found
        return found

    def zones(self, column: int) -> ZoneMap | None:
        """Return the zone map of a column; None where its type has none."""
        array = self.batch.column(column)
        if not self.proven:
            if pa.types.is_dictionary(array.type):
                self._check_dictionary(array.dictionary)
            for name in zone_names(column):
                if name in self.zone_arrays:
                    check_array(self.zone_arrays[name], self.hold)
        return open_zones(self.zone_arrays, column, array, self.definition.columns[column].type)

    def with_index(self, definition: IndexDefinition, arrays: Mapping[str, np.ndarray]) -> Segment:
        """Return the same segment with one more index; a snapshot that holds this one is not disturbed."""
        return self._with_indexes({**self.index_arrays, definition.id: arrays})

    def without_index(self, definition: IndexDefinition) -> Segment:
        return self._with_indexes({key: each for key, each in self.index_arrays.items() if key != definition.id})

    def _with_indexes(self, index_arrays: Mapping[str, Mapping[str, np.ndarray]]) -> Segment:
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

    def _open(self, definition: IndexDefinition, arrays: Mapping[str, Array]) -> SegmentIndex:
        ordinals = self.definition.positions(definition.columns)
        columns = IndexedColumns(
            ordinals,
            [self.batch.column(ordinal) for ordinal in ordinals],
            [self.reader(ordinal) for ordinal in ordinals],
            [self.definition.columns[ordinal].type for ordinal in ordinals],
            self.hold,
        )
        return STORAGE[definition.type].open(arrays, columns)


class _Access:
    """What was made to read a segment, when it was first asked for."""

    __slots__ = ("indexes", "probe", "readers")

    def __init__(self) -> None:
        self.readers: dict[int, ColumnReader] = {}
        self.indexes: dict[str, SegmentIndex] = {}
        self.probe: Callable[[Any, int], int] | None = None


def key_access(segment: Segment) -> tuple[Values | None, Callable[[int], Any]]:
    """Return the raw keys, where they are one column of whole numbers, and the function from a position to the key."""
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


def partitions_with_rows(offsets: np.ndarray) -> tuple[int, int]:
    """Return the first and the last partition that has a row, given where the rows of each begin."""
    first = int(np.searchsorted(offsets, 0, side="right")) - 1
    return first, int(np.searchsorted(offsets, offsets[-1], side="left")) - 1
