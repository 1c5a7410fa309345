"""A table in front of a SORTED index: where a key stands, to within a few dozen sequence, from its size alone.

The range from the least key to the greatest is cut into equally wide *slots*, and for each the table has the number of
keys below it. Binary search in millions of keys touches a score of entries, most of them in no cache; through the
table it is one entry and one or two lines of keys:

    keys 3 4 7 8 8 | 12 | 27 29      slots of width 10: 0, 5, 6, 8      16 is looked for in keys[5:6]

Building the table and searching by it must compute the same slot for a key, to the last bit: both take the distance
from the least key, exactly, as a double, times the same factor. The function never falls, so that all keys of lower
slots are less than a key, and all keys of higher ones greater, however it rounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.storage.segment.block_guard import Array, view_of
from remuda.storage.segment.row_order import BLOCK
from remuda.types.normalized_key import INFINITE_KEY, NULL_KEY

if TYPE_CHECKING:
    from remuda.types import SqlType

ROWS_IN_A_SLOT = 32
"""On average: an eighth of a byte for each row, and five comparisons."""

CROWD = 1024
"""Rows that share a slot with the average row. With more, as where one key is far from all others, numpy's search of
the whole is as fast, and there is no table."""

KeySearch = Callable[[Any, Any], tuple[int, int]]
"""From two ends to where the keys from the first one up to the second, left out, stand. Crossed ends find nothing."""


def searched_keys(keys: Array, sql_type: SqlType) -> Array:
    """Return the keys as what they are searched by: numbers above zero and below infinity by themselves, whose bits
    have their order, so that nothing is translated.

    Below zero the order of the bits is the other way round, zero has two signs, NULL and NaN are no numbers.
    """
    if sql_type.is_floating and len(keys) and int(keys[0]) > 0 and int(keys[-1]) < INFINITE_KEY:
        return keys.view(np.float64)
    return keys


def build_key_slots(keys: np.ndarray) -> np.ndarray | None:
    """Return the table for keys in order, `searched_keys`; None where it would not help. NULLs stand before its first
    slot."""
    nulls = 0 if keys.dtype.kind == "f" else int(keys.searchsorted(NULL_KEY + 1))
    rows = len(keys) - nulls
    count = rows // ROWS_IN_A_SLOT
    if count < 2 or keys[nulls] == keys[-1]:
        return None
    factor = _factor(keys, nulls, count)
    if factor == inf:
        return None
    counts = np.zeros(count + 1, np.int64)
    least = keys[nulls]
    for start in range(nulls, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        distances = block - least if keys.dtype.kind == "f" else (block.view(np.uint64) - least.view(np.uint64))
        slots = (distances.astype(np.float64, copy=False) * factor).astype(np.int64)
        first = int(slots[0])
        found = np.bincount(slots - first)
        counts[first : first + len(found)] += found
    if int(counts @ counts) > rows * CROWD:
        return None
    table = np.empty(count + 2, np.uint32)
    table[0] = nulls
    np.cumsum(counts, out=table[1:], dtype=np.uint32)
    table[1:] += np.uint32(nulls)
    return table


def key_search(keys: Array, table: Array | None) -> KeySearch:
    """Return the search in `searched_keys`, by the table where there is one; outside of it, and without, by numpy.

    The second end is looked for behind the first one: nearly always it is near.
    """
    search_both = keys.searchsorted

    def search(begin: Any, end: Any) -> tuple[int, int]:
        # numpy takes the pair as it is; an array made of it before takes longer.
        low, high = search_both((begin, end)).tolist()
        return low, max(low, high)

    if table is None:
        return search
    first, count = int(table[0]), len(keys)
    least, greatest, factor = keys[first].item(), keys[-1].item(), _factor(keys, first, len(table) - 2)
    sequence, below = view_of(keys), view_of(table)

    def search_slots(begin: Any, end: Any) -> tuple[int, int]:
        if not least < begin <= greatest:
            return search(begin, end)
        slot = int((begin - least) * factor)
        low = bisect_left(sequence, begin, below[slot], below[slot + 1])
        if end <= sequence[low]:
            return low, low
        if not end <= greatest:
            return low, count
        following = low + 1
        if end <= sequence[following]:
            return low, following
        return low, bisect_left(sequence, end, following, below[int((end - least) * factor) + 1])

    return search_slots


def _factor(keys: Array, first: int, slots: int) -> float:
    """Compute the factor from the distance of a key to its slot; the greatest key's may be one above the last."""
    distance: float = keys[-1].item() - keys[first].item()
    return slots / distance
