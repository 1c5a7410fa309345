"""How often the values of a column come: exactly where that is cheap, else in a sample.

Codes of a dictionary and integers of a narrow range are counted all, which takes one pass. Of other columns a sample is
counted. Everything else that a segment remembers of a column is made of these counts (`column_summary`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.types import Kind, SqlType
from remuda.types.arrow_arrays import code_values, is_dictionary, null_mask, stored_list
from remuda.types.arrow_compute import pc
from remuda.types.arrow_texts import text_bytes
from remuda.types.normalized_key import normalized_key, normalized_keys, values_of_keys

SAMPLE_BYTES = 16 << 20
LEAST_SAMPLE = 256
SAMPLE_ROWS = 65_536
NARROW_RANGE = 131_072
"""Integers of which the greatest and the least differ by less are all counted."""
ORDERED_TEXTS = 4_096
"""Of more different texts than these, evenly spread ones are put in order: comparing texts takes long."""
_INTERVALS = {Kind.INTERVAL_MONTHS, Kind.INTERVAL_TIME}


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """Different values in ascending order, and how often each was seen.

    `distinct` values were seen in `seen` rows; `values` may leave out some of those that are not frequent. They are
    fixed-width columns' normalized keys, which become values when they are asked for.
    """

    values: pa.Array | np.ndarray
    counts: np.ndarray
    distinct: int
    seen: int
    exact: bool
    """Whether all rows were seen."""

    def stored(self, positions: np.ndarray, sql_type: SqlType) -> list[Any]:
        """Return the values at these positions in stored form."""
        if isinstance(self.values, np.ndarray):
            return stored_list(values_of_keys(self.values[positions], sql_type), sql_type)
        return stored_list(self.values.take(pa.array(positions)), sql_type)


def count_values(array: pa.Array, sql_type: SqlType, minimum: Any, maximum: Any) -> ValueCounts:
    """Count the values of a column that has one; `minimum` and `maximum` are None where they are not known."""
    if is_dictionary(array):
        if len(array.dictionary) <= len(array):
            return _of_codes(array)
        array = array.dictionary_decode()
    key_of = normalized_key(sql_type)
    if key_of is None or sql_type.kind in _INTERVALS:
        return _of_texts(array)
    if sql_type.kind is Kind.BOOLEAN:
        return _of_flags(array)
    if not sql_type.is_floating and minimum is not None:
        low, high = key_of(minimum), key_of(maximum)
        if high - low < min(NARROW_RANGE, max(len(array), 256)):
            return _of_narrow_range(array, sql_type, low, high)
    sample = _sampled(array).drop_null()
    keys = np.sort(normalized_keys(sample, sql_type))
    starts = np.concatenate([[0], np.flatnonzero(keys[1:] != keys[:-1]) + 1]) if len(keys) else np.empty(0, np.int64)
    counts = np.diff(np.append(starts, len(keys)))
    return ValueCounts(keys[starts], counts, len(starts), len(keys), exact=len(array) <= sample_rows(array))


def _of_codes(array: pa.DictionaryArray) -> ValueCounts:
    codes, nulls = code_values(array), null_mask(array)
    counts = np.bincount(codes if nulls is None else codes[~nulls], minlength=len(array.dictionary))
    used = np.flatnonzero(counts)
    values = array.dictionary if len(used) == len(counts) else array.dictionary.take(pa.array(used))
    counts = counts[used]
    return ValueCounts(values, counts, len(counts), int(counts.sum()), exact=True)


def _of_flags(array: pa.BooleanArray) -> ValueCounts:
    present = len(array) - array.null_count
    true = pc.sum(array).as_py() or 0
    counted = [(key, count) for key, count in ((0, present - true), (1, true)) if count]
    keys, counts = (np.array(each, np.int64) for each in zip(*counted, strict=True))
    return ValueCounts(keys, counts, len(counts), present, exact=True)


def _of_narrow_range(array: pa.Array, sql_type: SqlType, low: int, high: int) -> ValueCounts:
    """Count all integers, or what is stored as integers, of a narrow range."""
    keys, nulls = normalized_keys(array, sql_type), null_mask(array)
    if nulls is not None:
        keys = keys[~nulls]
    counts = np.bincount(keys - np.int64(low), minlength=high - low + 1)
    used = np.flatnonzero(counts)
    return ValueCounts(used + np.int64(low), counts[used], len(used), len(keys), exact=True)


def _of_texts(array: pa.Array) -> ValueCounts:
    counted = pc.value_counts(_sampled(array).drop_null())
    values, counts = counted.field("values"), counted.field("counts").to_numpy(zero_copy_only=False)
    distinct, seen = len(values), int(counts.sum())
    if distinct > ORDERED_TEXTS:
        kept = np.linspace(0, distinct - 1, ORDERED_TEXTS).astype(np.int64)
        frequent = np.argpartition(counts, -ORDERED_TEXTS // 16)[-ORDERED_TEXTS // 16 :]
        kept = np.union1d(kept, frequent[counts[frequent] > 1])
        values, counts = values.take(pa.array(kept)), counts[kept]
    order = pc.sort_indices(values)
    return ValueCounts(
        values.take(order), counts[order.to_numpy()], distinct, seen, exact=len(array) <= sample_rows(array)
    )


def sample_rows(column: pa.Array | pa.ChunkedArray) -> int:
    """Return how many rows are a sample of a column: fewer where its texts are long."""
    average = text_bytes(column) // max(1, len(column))
    return SAMPLE_ROWS if average <= SAMPLE_BYTES // SAMPLE_ROWS else max(LEAST_SAMPLE, SAMPLE_BYTES // average)


def _sampled(array: pa.Array) -> pa.Array:
    """Return random rows, the same ones each time.

    Not evenly spread ones: of the lines of an order, which lie side by side, every ninth row never shows two.
    """
    rows = sample_rows(array)
    if len(array) <= rows:
        return array
    return array.take(pa.array(np.unique(np.random.default_rng(len(array)).integers(0, len(array), rows))))
