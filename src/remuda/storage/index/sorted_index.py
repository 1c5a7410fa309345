"""The SORTED index of a segment: its rows in order of one or several columns, NULLs first.

`order` lists the positions; beside it stands, for each column, something to bisect in:

- *direct*: the values as order-preserving 64-bit integers (`types.normalized_key`), in index order;
- *codes*: the codes of the column's sorted dictionary, in index order, -1 for NULL;
- *referenced*: nothing; the value is read from the row itself. For strings that are mostly distinct, long decimals, and
  the rare column in which the least BIGINT and NULL both occur.

Each kind translates a value into the range of keys [first, end) that its equals have, so one bisection serves all:

    SORTED(a, b), a = 1 AND b > 2      a: entries of 1 in the whole index      -> [lo, hi)
                                       b: end of the entries of 2 in [lo, hi)  -> [lo', hi)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.storage.index.index_condition import UNBOUNDED, Lookup, Range
from remuda.storage.index.interpolation_table import build_key_slots, searched_keys
from remuda.storage.row_source import FIRST_PIECE, LARGEST_PIECE
from remuda.storage.segment.block_guard import view_of
from remuda.storage.segment.column_reader import ColumnReader, bytes_reader
from remuda.storage.segment.row_memory import rows_of
from remuda.storage.segment.row_order import BLOCK, order_in_place, stable_order, taken
from remuda.types.arrow_arrays import code_values, is_dictionary, null_mask
from remuda.types.arrow_compute import pc
from remuda.types.normalized_key import GREATEST_KEY, NULL_KEY, comparable, normalized_key, nullable_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from remuda.storage.index.index_types import IndexedColumns
    from remuda.storage.segment.block_guard import Array
    from remuda.types import SqlType

POSITIONS = "order"
"""The array of positions: the one that `Segment` checks in a file that is not proven."""

_NULL_CODE = -1
_NEAR = 128
_FEW = 64
"""So many new entries of a memtable are inserted into a sorted list one by one; more are appended and sorted."""


@dataclass(frozen=True, slots=True)
class _SortedColumn:
    """A sequence in index order (within equal columns before it), and how values are translated to find them there.

    `begin` gives the first key that a value's equals can have, `end` the first one behind them. `keys` is the sequence
    as an array, where they are numbers: in a whole column numpy finds both ends faster than Python's bisection does.
    """

    sequence: Any
    keys: Array | None
    begin: Callable[[Any], Any]
    end: Callable[[Any], Any]
    after_null: Any

    def equal(self, value: Any, low: int, high: int) -> tuple[int, int]:
        return self._between(self.begin(value), self.end(value), low, high)

    def within(self, range_: Range, low: int, high: int) -> tuple[int, int]:
        least, most = range_.low, range_.high
        if least is None or most is None:
            return low, low
        begin = self.after_null
        if least is not UNBOUNDED:
            begin = (self.begin if range_.low_inclusive else self.end)(least)
        if most is not UNBOUNDED:
            return self._between(begin, (self.end if range_.high_inclusive else self.begin)(most), low, high)
        return (low if begin is None else bisect_left(self.sequence, begin, low, high)), high

    def _between(self, begin: Any, end: Any, low: int, high: int) -> tuple[int, int]:
        """Find where in [low, high) the keys from `begin` (None: the first) up to `end`, left out, stand.

        Crossed ends need no care: the end is looked for behind the beginning, and stands there at once.
        """
        if self.keys is not None and begin is not None and high - low == len(self.keys) and end <= GREATEST_KEY:
            low, high = self.keys.searchsorted(np.array((begin, end), self.keys.dtype)).tolist()
            return low, max(low, high)
        if begin is not None:
            low = bisect_left(self.sequence, begin, low, high)
        near = low + _NEAR  # few rows are what an index is asked for
        if near < high and self.sequence[near] >= end:
            high = near
        return low, bisect_left(self.sequence, end, low, high)


class SortedIndex:
    """Open: ready for lookups over the columns of its segment."""

    __slots__ = ("_columns", "_length", "direct_keys", "first_column", "key_slots", "numbers", "positions")

    def __init__(self, arrays: Mapping[str, Array], columns: IndexedColumns) -> None:
        self.first_column = columns.ordinals[0]
        """Its number in the definition."""
        self.positions = arrays[POSITIONS]
        self._length = len(self.positions)
        self._columns = tuple(
            _open_column(arrays.get(f"keys{number}"), self.positions, *parts, columns.hold)
            for number, parts in enumerate(zip(columns.arrays, columns.readers, columns.types, strict=True))
        )
        self.direct_keys = None if is_dictionary(columns.arrays[0]) else arrays.get("keys0")
        """The `normalized_key`s of the first column in index order; None where it has none."""
        self.numbers = _numbers(self.direct_keys, columns.types[0])
        """The first column's values in index order, where the keys are what is stored: numbers, none of them NULL."""
        self.key_slots = arrays.get("slots0")
        """The table for the keys (`key_slots`); None where it would not help, or the index is older than tables."""

    def span(self, lookup: Lookup) -> tuple[int, int]:
        """Return where in `positions` the matches stand, in index order."""
        low, high, number = 0, self._length, 0
        for value in lookup.prefix:
            low, high = self._columns[number].equal(value, low, high)
            if low == high:
                return low, high
            number += 1
        return (low, high) if lookup.range is None else self._columns[number].within(lookup.range, low, high)


def _numbers(keys: Array | None, sql_type: SqlType) -> Array | None:
    if keys is None or not len(keys) or keys[0] == NULL_KEY:
        return None
    searched = searched_keys(keys, sql_type)
    return searched if sql_type.is_integer or searched.dtype.kind == "f" else None


class MemtableSortedIndex:
    """Finds entries of a memtable by sorted tuples of comparable values that end in the entry; see `comparable`."""

    __slots__ = ("_columns", "_length", "_lock", "_order")

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._columns = columns
        self._order: list[tuple[Any, ...]] = []
        self._length = 0
        self._lock = Lock()

    def extend(self, rows: Sequence[tuple[Any, ...] | None], length: int) -> None:
        with self._lock:
            fresh = []
            for entry in range(self._length, length):
                row = rows[entry]
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
        """Yield the entries in order or against it. Others are added meanwhile: a piece begins where the last one
        ended, by the item that stood there, not by its number."""
        size, last = FIRST_PIECE, None
        while True:
            with self._lock:
                low, high = self._span(lookup)
                if last is not None:
                    begin = bisect_left(self._order, last)
                    low, high = (low, begin) if descending else (begin + 1, high)
                low, high = (max(low, high - size), high) if descending else (low, min(high, low + size))
                items = self._order[low:high]
            if not items:
                return
            last = items[0 if descending else -1]
            entries = [item[-1] for item in items]
            yield entries[::-1] if descending else entries
            size = min(size * 4, LARGEST_PIECE)

    def _span(self, lookup: Lookup) -> tuple[int, int]:
        """Find the entries of a lookup.

        A prefix of a tuple is below the tuple; with infinity behind it, above all that begin with it.
        """
        prefix = _parts(lookup.prefix)
        low: tuple[Any, ...] = prefix
        high: tuple[Any, ...] = (*prefix, inf)
        range_ = lookup.range
        if range_ is not None:
            if range_.low is None or range_.high is None:
                return 0, 0
            # Flag 1 begins the values: NULLs, flag 0, stay outside of every range.
            low = (*prefix, 1)
            if range_.low is not UNBOUNDED:
                low = (*prefix, *comparable(range_.low)) + (() if range_.low_inclusive else (inf,))
            if range_.high is not UNBOUNDED:
                high = (*prefix, *comparable(range_.high)) + ((inf,) if range_.high_inclusive else ())
        start = bisect_left(self._order, low)
        return start, max(start, bisect_left(self._order, high))


def _parts(values: Any) -> tuple[Any, ...]:
    return tuple(part for value in values for part in comparable(value))


def build_sorted_index(columns: Sequence[pa.Array], types: Sequence[SqlType]) -> dict[str, np.ndarray]:
    """Return the arrays of the index, from flat columns of one segment."""
    if len(columns) == 1 and not is_dictionary(columns[0]) and normalized_key(types[0]) is not None:
        index = _index_of_numbers(columns[0], types[0])
        if index is not None:
            return index
    stored = [_stored_keys(column, sql_type) for column, sql_type in zip(columns, types, strict=True)]
    keys = [
        _ranks(column) if stored_key is None else stored_key for column, stored_key in zip(columns, stored, strict=True)
    ]
    order = stable_order(keys[0]) if len(keys) == 1 else np.lexsort(tuple(reversed(keys)))
    order = order.astype(np.uint32)
    arrays = {POSITIONS: order}
    for number, stored_key in enumerate(stored):
        if stored_key is not None:
            arrays[f"keys{number}"] = taken(stored_key, order)
    if "keys0" in arrays and not is_dictionary(columns[0]):
        arrays |= _slots(arrays["keys0"], types[0])
    return arrays


def _index_of_numbers(column: pa.Array, sql_type: SqlType) -> dict[str, np.ndarray] | None:
    """Build the index of one *direct* column.

    For one *direct* column: its keys are sorted in their own memory, and made again in the order that was found.
    """

    def keys_at(positions: np.ndarray) -> np.ndarray:
        made = nullable_keys(rows_of(column, pa.array(positions)), sql_type)
        assert made is not None, "what the whole column has, a part of it has as well"
        return made

    keys = nullable_keys(column, sql_type)
    if keys is None:
        return None
    if len(keys) == 0 or np.may_share_memory(keys, np.frombuffer(column.buffers()[1], np.uint8)):
        keys = keys.astype(np.int64)
    order = order_in_place(keys, keys_at).astype(np.uint32)
    del keys
    ordered = np.empty(len(order), np.int64)
    for start in range(0, len(order), BLOCK):
        ordered[start : start + BLOCK] = keys_at(order[start : start + BLOCK])
    return {POSITIONS: order, "keys0": ordered, **_slots(ordered, sql_type)}


def _slots(keys: np.ndarray, sql_type: SqlType) -> dict[str, np.ndarray]:
    searched = searched_keys(keys, sql_type)
    assert isinstance(searched, np.ndarray), "an index is built in memory"
    slots = build_key_slots(searched)
    return {} if slots is None else {"slots0": slots}


def sort_keys(column: pa.Array, sql_type: SqlType) -> np.ndarray:
    """Return integers that order the rows of this column as its values do, NULLs first."""
    stored = _stored_keys(column, sql_type)
    return _ranks(column) if stored is None else stored


def _stored_keys(column: pa.Array, sql_type: SqlType) -> np.ndarray | None:
    """Return the keys of a *direct* or *codes* column; None for a *referenced* one."""
    if is_dictionary(column):
        codes = code_values(column).astype(np.int32, copy=False)
        nulls = null_mask(column)
        return codes if nulls is None else np.where(nulls, np.int32(_NULL_CODE), codes)
    return nullable_keys(column, sql_type) if normalized_key(sql_type) is not None else None


def _ranks(column: pa.Array) -> np.ndarray:
    ranks: np.ndarray = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    nulls = null_mask(column)
    # Ranks begin with 1.
    return ranks if nulls is None else np.where(nulls, 0, ranks)


def _open_column(
    keys: Array | None, order: Array, column: pa.Array, reader: ColumnReader, sql_type: SqlType, hold: object
) -> _SortedColumn:
    nullable = column.null_count > 0
    if keys is None:
        return _referenced(order, reader)
    if is_dictionary(column):
        return _SortedColumn(view_of(keys), keys, *code_bounds(column.dictionary, hold), 0)
    key_of = normalized_key(sql_type)
    assert key_of is not None, f"values of {sql_type} have direct keys"
    return _SortedColumn(view_of(keys), keys, *_direct_bounds(key_of, nullable), NULL_KEY + 1 if nullable else None)


Bound = Callable[[Any], Any]


def _direct_bounds(key_of: Callable[[Any], int], nullable: bool) -> tuple[Bound, Bound]:
    if not nullable:
        return (
            lambda value: NULL_KEY if value is None else key_of(value),
            lambda value: NULL_KEY if value is None else key_of(value) + 1,
        )
    # Where NULLs stand, the least BIGINT does not occur: it must not find them.
    return (
        lambda value: NULL_KEY if value is None else max(key_of(value), NULL_KEY + 1),
        lambda value: NULL_KEY + 1 if value is None else key_of(value) + 1,
    )


def code_bounds(dictionary: pa.Array, hold: object = None) -> tuple[Bound, Bound]:
    """Return the functions from a string to the ends of the range of codes that equal it: empty where there is none."""
    entries = _Sequence(len(dictionary), bytes_reader(dictionary, hold))
    return (
        lambda value: _NULL_CODE if value is None else bisect_left(entries, _raw(value)),
        lambda value: _NULL_CODE + 1 if value is None else bisect_right(entries, _raw(value)),
    )


def _raw(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _referenced(order: Array, reader: ColumnReader) -> _SortedColumn:
    positions, value = view_of(order), reader.value
    sequence = _Sequence(len(order), lambda index: comparable(value(positions[index])))
    # A longer tuple is above the shorter one that begins it: (1, v, 0) is behind every (1, v).
    return _SortedColumn(sequence, None, comparable, lambda value: (*comparable(value), 0), (1,))


class _Sequence:
    """A function of an index, as a sequence for `bisect`."""

    __slots__ = ("_length", "_read")

    def __init__(self, length: int, read: Callable[[int], Any]) -> None:
        self._length = length
        self._read = read

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return self._read(index)
