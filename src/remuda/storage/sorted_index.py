"""The SORTED index of a segment: its rows in order of one or several columns, NULLs first.

`order` lists the positions; beside it stands, for each column, something to bisect in:

- *direct*: the values as order-preserving 64-bit integers (`value_order`), in index order;
- *codes*: the codes of the column's sorted dictionary, in index order, -1 for NULL;
- *referenced*: nothing; the value is read from the row itself. For strings that are mostly distinct, long decimals, and
  the rare column in which the least BIGINT and NULL both occur.

Each kind translates a value into the range of places [first, end) that its equals take, so one bisection serves all:

    SORTED(a, b), a = 1 AND b > 2      a: places of 1 in the whole index       -> [lo, hi)
                                       b: end of the places of 2 in [lo, hi)   -> [lo', hi)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.storage.arrow_arrays import code_values, is_dictionary, null_mask
from remuda.storage.column_reader import ColumnReader, bytes_reader
from remuda.storage.conditions import UNBOUNDED, Lookup, Range
from remuda.storage.row_order import stable_order
from remuda.storage.value_order import NULL_KEY, comparable, direct_key, direct_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.types import SqlType

_NULL_CODE = -1
_STRIDE = 1024
_NEAR = 128


@dataclass(frozen=True, slots=True)
class _SortedColumn:
    """A sequence in index order (within equal columns before it), and how values are translated to find them there.

    `landmarks` are every `_STRIDE`-th place of a first column, as a list: bisecting that first keeps nearly all steps
    out of the large array, where each one waits for memory.
    """

    places: Any
    place: Callable[[Any], tuple[Any, Any]]
    after_null: Any
    landmarks: list[Any]

    def equal(self, value: Any, low: int, high: int) -> tuple[int, int]:
        first, end = self.place(value)
        low = self._first_from(first, low, high)
        return low, self._first_near(end, low, high)

    def within(self, wanted: Range, low: int, high: int) -> tuple[int, int]:
        if wanted.low is None or wanted.high is None:
            return low, low
        start = self.after_null if wanted.low is UNBOUNDED else self.place(wanted.low)[0 if wanted.low_inclusive else 1]
        if start is not None:
            low = self._first_from(start, low, high)
        if wanted.high is not UNBOUNDED:
            high = self._first_near(self.place(wanted.high)[1 if wanted.high_inclusive else 0], low, high)
        return low, high

    def _first_from(self, place: Any, low: int, high: int) -> int:
        """Where in [low, high) the first one not below `place` stands."""
        if self.landmarks and low == 0 and high == len(self.places):
            mark = bisect_left(self.landmarks, place)
            low, high = max(0, (mark - 1) * _STRIDE), min(high, mark * _STRIDE)
        return bisect_left(self.places, place, low, high)

    def _first_near(self, place: Any, low: int, high: int) -> int:
        """The same where the answer is probably not far: few rows are what an index is asked for."""
        near = low + _NEAR
        if near < high:
            if self.places[near] >= place:
                return bisect_left(self.places, place, low, near)
            mark = bisect_left(self.landmarks, place)
            if self.landmarks:
                low, high = max(near, (mark - 1) * _STRIDE), max(near, min(high, mark * _STRIDE))
        return bisect_left(self.places, place, low, high)


class SortedIndex:
    """Open: ready for lookups over the columns of its segment."""

    __slots__ = ("_columns", "positions")

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        columns: Sequence[pa.Array],
        readers: Sequence[ColumnReader],
        types: Sequence[SqlType],
    ) -> None:
        self.positions = arrays["order"]
        self._columns = tuple(
            _open_column(number == 0, arrays.get(f"keys{number}"), self.positions, *parts)
            for number, parts in enumerate(zip(columns, readers, types, strict=True))
        )

    def span(self, lookup: Lookup) -> tuple[int, int]:
        """Where in `positions` the matches stand, in index order."""
        low, high = 0, len(self.positions)
        for column, value in zip(self._columns, lookup.prefix, strict=False):
            low, high = column.equal(value, low, high)
            if low == high:
                return low, high
        if lookup.range is not None:
            low, high = self._columns[len(lookup.prefix)].within(lookup.range, low, high)
        return low, high


def build_sorted_index(columns: Sequence[pa.Array], types: Sequence[SqlType]) -> dict[str, np.ndarray]:
    """The arrays of the index, from flat columns of one segment."""
    stored = [_stored_keys(column, sql_type) for column, sql_type in zip(columns, types, strict=True)]
    keys = [
        _ranks(column) if stored_key is None else stored_key for column, stored_key in zip(columns, stored, strict=True)
    ]
    order = stable_order(keys[0]) if len(keys) == 1 else np.lexsort(tuple(reversed(keys)))
    arrays = {"order": order.astype(np.uint32)}
    for number, stored_key in enumerate(stored):
        if stored_key is not None:
            arrays[f"keys{number}"] = stored_key.take(order)
    return arrays


def sort_keys(column: pa.Array, sql_type: SqlType) -> np.ndarray:
    """Integers that order the rows of this column as its values do, NULLs first."""
    stored = _stored_keys(column, sql_type)
    return _ranks(column) if stored is None else stored


def _stored_keys(column: pa.Array, sql_type: SqlType) -> np.ndarray | None:
    """The keys of a *direct* or *codes* column; None for a *referenced* one."""
    if is_dictionary(column):
        codes = code_values(column).astype(np.int32, copy=False)
        nulls = null_mask(column)
        return codes if nulls is None else np.where(nulls, np.int32(_NULL_CODE), codes)
    return direct_keys(column, sql_type) if direct_key(sql_type) is not None else None


def _ranks(column: pa.Array) -> np.ndarray:
    ranks: np.ndarray = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    nulls = null_mask(column)
    # Ranks begin with 1.
    return ranks if nulls is None else np.where(nulls, 0, ranks)


def _open_column(
    first: bool, keys: np.ndarray | None, order: np.ndarray, column: pa.Array, reader: ColumnReader, sql_type: SqlType
) -> _SortedColumn:
    nullable = column.null_count > 0
    if keys is None:
        return _referenced(order, reader)
    landmarks = keys[::_STRIDE].tolist() if first else []
    if is_dictionary(column):
        return _SortedColumn(memoryview(keys), code_place(column.dictionary), 0, landmarks)
    key_of = direct_key(sql_type)
    assert key_of is not None, f"values of {sql_type} have direct keys"
    after_null = NULL_KEY + 1 if nullable else None
    return _SortedColumn(memoryview(keys), _direct_place(key_of, nullable), after_null, landmarks)


def _direct_place(key_of: Callable[[Any], int], nullable: bool) -> Callable[[Any], tuple[int, int]]:
    # Where NULLs stand, the least BIGINT does not occur: it must not find them.
    least = NULL_KEY + 1 if nullable else NULL_KEY

    def place(value: Any) -> tuple[int, int]:
        if value is None:
            return (NULL_KEY, NULL_KEY + 1) if nullable else (NULL_KEY, NULL_KEY)
        key = key_of(value)
        return max(key, least), key + 1

    return place


def code_place(dictionary: pa.Array) -> Callable[[Any], tuple[int, int]]:
    """The function from a string to the range of codes that equal it: empty, but in its place, where there is none."""
    entries = _Sequence(len(dictionary), bytes_reader(dictionary))

    def place(value: Any) -> tuple[int, int]:
        if value is None:
            return _NULL_CODE, 0
        raw = value.encode() if isinstance(value, str) else value
        return bisect_left(entries, raw), bisect_right(entries, raw)

    return place


def _referenced(order: np.ndarray, reader: ColumnReader) -> _SortedColumn:
    positions, value = memoryview(order), reader.value
    places = _Sequence(len(order), lambda index: comparable(value(positions[index])))
    # A longer tuple is above the shorter one that begins it: (1, v, 0) is behind every (1, v).
    return _SortedColumn(places, lambda value: (comparable(value), (*comparable(value), 0)), (1,), [])


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
