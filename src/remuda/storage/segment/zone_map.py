"""Zone maps: the least and the greatest value of each block of rows in a segment, so that a scan can leave blocks out.

They pay where neighbours are alike. Rows of one partition keep the order in which they came, so a column that grows
with time has narrow zones. Values are kept as normalized keys, or as codes of the column's sorted dictionary; columns
of other kinds have no zones. A block of NULLs alone matches nothing: its least key is above its greatest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.storage.index.index_condition import UNBOUNDED, Range
from remuda.storage.index.sorted_index import code_bounds
from remuda.types import Kind
from remuda.types.arrow_arrays import code_values, is_dictionary, null_mask, stored_numbers
from remuda.types.normalized_key import float_keys, normalized_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import pyarrow as pa

    from remuda.types import SqlType

ZONE_ROWS = 8192
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class ZoneMap:
    """The zones of one column."""

    __slots__ = ("_bounds_of", "_highs", "_is_direct", "_lows")

    def __init__(
        self, lows: np.ndarray, highs: np.ndarray, bounds_of: Callable[[Any], tuple[int, int]], *, is_direct: bool
    ) -> None:
        self._is_direct = is_direct
        self._lows = lows
        self._highs = highs
        self._bounds_of = bounds_of

    def runs(self, range_: Range, rows: int) -> list[tuple[int, int]]:
        """Return the ranges of positions outside of which no row has a value within the range."""
        if range_.low is None or range_.high is None:
            return []
        matching = self._lows <= self._highs
        if range_.low is not UNBOUNDED:
            matching &= self._highs >= self._bounds_of(range_.low)[0 if range_.low_inclusive else 1]
        if range_.high is not UNBOUNDED:
            matching &= self._lows < self._bounds_of(range_.high)[1 if range_.high_inclusive else 0]
        edges = np.flatnonzero(np.diff(matching, prepend=False, append=False)) * ZONE_ROWS
        return [
            (start, min(stop, rows)) for start, stop in zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True)
        ]

    def zone_maxima(self, *, descending: bool) -> np.ndarray | None:
        """See `Source.zone_maxima`. A code is worth something only within its own dictionary."""
        if not self._is_direct:
            return None
        return self._highs if descending else ~self._lows


def build_zones(columns: Sequence[pa.Array], types: Sequence[SqlType]) -> dict[str, np.ndarray]:
    """Return the arrays of all columns that have zones, by names that `open_zones` knows."""
    arrays = {}
    for number, (column, sql_type) in enumerate(zip(columns, types, strict=True)):
        if len(column) and _has_zones(column, sql_type):
            low, high = zone_names(number)
            arrays[low], arrays[high] = _ends(column, sql_type)
    return arrays


def zone_names(number: int) -> tuple[str, str]:
    """Return the names of the two arrays of a column."""
    return f"low{number}", f"high{number}"


def open_zones(arrays: Mapping[str, np.ndarray], number: int, column: pa.Array, sql_type: SqlType) -> ZoneMap | None:
    low, high = zone_names(number)
    lows = arrays.get(low)
    if lows is None:
        return None
    key_of = normalized_key(sql_type)
    if is_dictionary(column):
        begin, end = code_bounds(column.dictionary)
        return ZoneMap(lows, arrays[high], lambda value: (begin(value), end(value)), is_direct=False)
    assert key_of is not None, f"values of {sql_type} have direct keys"
    return ZoneMap(lows, arrays[high], _key_place(key_of), is_direct=True)


def common_ranges(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the positions that are in both of two ascending lists of ranges.

    >>> common_ranges([(0, 10), (20, 30)], [(5, 25)])
    [(5, 10), (20, 25)]
    """
    found = []
    one = other = 0
    while one < len(left) and other < len(right):
        start, stop = max(left[one][0], right[other][0]), min(left[one][1], right[other][1])
        if start < stop:
            found.append((start, stop))
        if left[one][1] < right[other][1]:
            one += 1
        else:
            other += 1
    return found


def _has_zones(column: pa.Array, sql_type: SqlType) -> bool:
    if is_dictionary(column):
        return True
    return sql_type.kind is not Kind.BOOLEAN and normalized_key(sql_type) is not None


def _ends(column: pa.Array, sql_type: SqlType) -> tuple[np.ndarray, np.ndarray]:
    values = code_values(column) if is_dictionary(column) else stored_numbers(column, sql_type)
    starts = np.arange(0, len(values), ZONE_ROWS)
    nulls = null_mask(column)
    if sql_type.is_floating:
        # NaN is above all numbers: the greatest of a block that has one, and the least only of a block of nothing else.
        above, below = values if nulls is None else np.where(nulls, np.nan, values), values
        if nulls is not None:
            below = np.where(nulls, -np.inf, values)
        lows, highs = float_keys(np.fmin.reduceat(above, starts)), float_keys(np.maximum.reduceat(below, starts))
    else:
        wide = np.iinfo(values.dtype)
        lows = np.minimum.reduceat(values if nulls is None else np.where(nulls, wide.max, values), starts)
        highs = np.maximum.reduceat(values if nulls is None else np.where(nulls, wide.min, values), starts)
    lows, highs = lows.astype(np.int64), highs.astype(np.int64)
    if nulls is not None:
        empty = np.logical_and.reduceat(nulls, starts)
        lows[empty], highs[empty] = _GREATEST, _LEAST
    return lows, highs


def _key_place(key_of: Callable[[Any], int]) -> Callable[[Any], tuple[int, int]]:
    def bounds_of(value: Any) -> tuple[int, int]:
        key = key_of(value)
        return key, key + 1

    return bounds_of
