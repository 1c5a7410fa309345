"""Histograms of equal depth: the ends of ranges that have about equally many rows each.

A segment's is made from a sample; those of several segments are put together by weight:

    segment 1, 20 rows      0 ... 10 ... 20          10 rows up to 10, 10 more up to 20
    segment 2, 20 rows      15 ... 30 ... 40         10 rows up to 30, 10 more up to 40
    both, in two            0 ... 20 ... 40          20 rows up to 20, 20 more up to 40
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.types.arrow_arrays import is_dictionary, stored_list
from remuda.types.normalized_key import comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.types import SqlType

SEGMENT_BUCKETS = 16
MAP_BUCKETS = 32
SAMPLE_ROWS = 4096
LONGEST_END = 200
"""A longer string would only fill the manifest."""


def histogram_of(array: pa.Array, sql_type: SqlType, minimum: Any, maximum: Any) -> tuple[Any, ...]:
    """Return the ends of a column that has a value; `minimum` and `maximum` are exact, the rest comes from a sample."""
    if len(array) > SAMPLE_ROWS:
        array = array.take(pa.array(np.linspace(0, len(array) - 1, SAMPLE_ROWS).astype(np.int64)))
    array = array.drop_null()
    if is_dictionary(array):
        array = array.dictionary_decode()
    if len(array) == 0:
        return ()
    order = pc.sort_indices(array).to_numpy()
    ordinals = np.linspace(0, len(order) - 1, SEGMENT_BUCKETS + 1).round().astype(np.int64)
    inner = stored_list(array.take(pa.array(order[ordinals[1:-1]])), sql_type)
    if any(isinstance(end, str | bytes) and len(end) > LONGEST_END for end in inner):
        return ()
    return (minimum, *inner, maximum)


def combined_histogram(parts: Sequence[tuple[int, tuple[Any, ...]]], buckets: int) -> tuple[Any, ...]:
    """Return the ends over disjoint sets of rows, each given by their number and their ends."""
    if not parts or not all(ends for _, ends in parts):
        return ()
    if len(parts) == 1:
        return parts[0][1]
    weighted = [(comparable(end), end, rows / (len(ends) - 1)) for rows, ends in parts for end in ends[1:]]
    weighted.sort(key=lambda each: each[0])
    below = np.cumsum([weight for _, _, weight in weighted])
    ordinals = np.searchsorted(below, np.linspace(0, below[-1], buckets + 1)[1:-1])
    least = min((ends[0] for _, ends in parts), key=comparable)
    return (least, *(weighted[min(ordinal, len(weighted) - 1)][1] for ordinal in ordinals.tolist()), weighted[-1][1])
