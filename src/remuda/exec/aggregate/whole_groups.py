"""Aggregates of which no parts can be merged: computed once all rows of all groups are known.

Rows are held with the id of their group; each function orders or reduces them in one go.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.exec.aggregate.accumulators import lower_at
from remuda.exec.batch import positional
from remuda.exec.memory import bytes_of
from remuda.exec.sort.ordering import concatenate, order_codes, sort_positions
from remuda.expr.cast.cast_floating import nearest_doubles
from remuda.expr.evaluate.text_sizes import refuse_size
from remuda.plan.aggregates import AGGREGATES
from remuda.plan.traits import SortKey
from remuda.types.arrow_arrays import is_dictionary, null_mask
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.plan.aggregates import AggregateCall

Groups = np.ndarray


class WholeGroups:
    """One call: its argument, the second one where there is one, and the columns of its order."""

    def __init__(self, call: AggregateCall) -> None:
        self._call = call
        self._groups: list[np.ndarray] = []
        self._batches: list[pa.RecordBatch] = []
        self._measured = self._bytes = 0
        self._texts: Counter[int] = Counter()
        """By column, the bytes of its texts, which become one array."""

    def add(self, groups: np.ndarray | None, columns: list[pa.Array]) -> None:
        batch = positional(columns)
        for ordinal, array in enumerate(columns):
            if pa.types.is_string(array.type):
                self._texts[ordinal] += array.nbytes
                refuse_size(self._texts[ordinal])
        self._groups.append(np.zeros(batch.num_rows, np.int32) if groups is None else groups)
        self._batches.append(batch)

    @property
    def bytes(self) -> int:
        """Return what the rows take, as they came and together, and the texts that STRING_AGG makes of them."""
        for groups, batch in zip(self._groups[self._measured :], self._batches[self._measured :], strict=True):
            self._bytes += 2 * (bytes_of(batch) + groups.nbytes)
            if self._call.function == "string_agg":
                self._bytes += 2 * _text_bytes(batch.column(0)) + len(self._call.parameters[0]) * batch.num_rows
        self._measured = len(self._batches)
        return self._bytes

    def result(self, count: int) -> pa.Array:
        call = self._call
        if not self._batches:
            return pa.nulls(count, call.column.type.arrow)
        groups, batch = np.concatenate(self._groups), concatenate(self._batches)
        self._groups, self._batches, self._measured, self._bytes = [], [], 0, 0
        present = np.ones(len(groups), np.bool_)
        for array in batch.columns[int(AGGREGATES[call.function].keeps_nulls) : len(call.arguments)]:
            nulls = null_mask(array)
            if nulls is not None:
                present &= ~nulls
        if not present.all():
            groups, batch = groups[present], batch.filter(pa.array(present))
        return FUNCTIONS[call.function](call, groups, batch, count)


def _text_bytes(array: pa.Array) -> int:
    """Return what texts take when they are written out, whether or not they are codes of a dictionary."""
    lengths = (
        pc.binary_length(array.dictionary).take(array.indices) if is_dictionary(array) else pc.binary_length(array)
    )
    return int(pc.sum(lengths, min_count=0).as_py())


def _numbers(array: pa.Array) -> np.ndarray:
    """Return the nearest DOUBLEs: not every BIGINT is one."""
    doubles = nearest_doubles(array) if pa.types.is_decimal(array.type) else array.cast(pa.float64(), safe=False)
    numbers: np.ndarray = doubles.to_numpy(zero_copy_only=False)
    return numbers


def _spread(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    """Variance and standard deviation: the squares of distances from the mean, which is known first."""
    values = _numbers(batch.column(0))
    rows = np.bincount(groups, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.bincount(groups, values, count) / rows
        squares = np.bincount(groups, (values - mean[groups]) ** 2, count)
        divisor = rows - (call.function.endswith("_samp"))
        spread = squares / divisor
        if call.function.startswith("stddev"):
            spread = np.sqrt(spread)
    return pa.array(spread, mask=divisor <= 0)


def _covariance(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    first, second = _numbers(batch.column(0)), _numbers(batch.column(1))
    rows = np.bincount(groups, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        first = first - (np.bincount(groups, first, count) / rows)[groups]
        second = second - (np.bincount(groups, second, count) / rows)[groups]
        both = np.bincount(groups, first * second, count)
        if call.function == "corr":
            product = np.bincount(groups, first**2, count) * np.bincount(groups, second**2, count)
            return pa.array(both / np.sqrt(product), mask=(rows == 0) | (product == 0))
        divisor = rows - (call.function == "covar_samp")
        return pa.array(both / divisor, mask=divisor <= 0)


def _in_order(groups: Groups, array: pa.Array, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows by group and value, where each group begins, and how many rows it has."""
    order = np.lexsort((order_codes(array), groups))
    rows = np.bincount(groups, minlength=count)
    return order, np.cumsum(rows) - rows, rows


def _quantile_disc(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    """Return the first value at or behind the fraction of the rows."""
    order, starts, rows = _in_order(groups, batch.column(0), count)
    fraction, descending = _fraction(call)

    def place_among(values: int) -> int:
        rank = max(math.ceil(fraction * values), 1) - 1
        return values - 1 - rank if descending else rank

    return _values_at(batch.column(0), order, starts + _by_count(rows, place_among, np.int64), rows == 0)


def _quantile_cont(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    """Interpolate between the two values around the fraction."""
    order, starts, rows = _in_order(groups, batch.column(0), count)
    values = np.append(_numbers(batch.column(0))[order], 0.0)
    fraction, descending = _fraction(call)

    def place_among(values: int) -> Fraction:
        return fraction * max(values - 1, 0)

    below = _by_count(rows, lambda values: math.floor(place_among(values)), np.int64)
    above = _by_count(rows, lambda values: math.ceil(place_among(values)), np.int64)
    share = _by_count(rows, lambda values: float(place_among(values) % 1), np.float64)
    if descending:
        last = np.maximum(rows - 1, 0)
        below, above = last - below, last - above
    low, high = values[starts + below], values[starts + above]
    with np.errstate(invalid="ignore"):
        between = np.where(low == high, low, low + (high - low) * share)
    return pa.array(between, mask=rows == 0)


def _fraction(call: AggregateCall) -> tuple[Fraction, bool]:
    """Return the fraction as its digits are written (0.07 of 100 rows are 7), and whether it counts from the end."""
    fraction, descending = (*call.parameters, False)[:2]
    return Fraction(str(fraction)), descending


def _by_count(rows: np.ndarray, compute: Callable[[int], float], dtype: type) -> np.ndarray:
    """Compute once for each number of rows: exact arithmetic is slow, and many groups have as many rows."""
    counts, numbers = np.unique(rows, return_inverse=True)
    return np.array([compute(int(values)) for values in counts], dtype)[numbers]


def _mode(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    """Return the most frequent value; of several the first in the order of the call, without one the lowest."""
    array = batch.column(0)
    codes = order_codes(array)
    order = np.lexsort((codes, groups))
    if not len(order):
        return pa.nulls(count, array.type)
    ordered_groups, ordered_codes = groups[order], codes[order]
    changes = np.append(True, (ordered_groups[1:] != ordered_groups[:-1]) | (ordered_codes[1:] != ordered_codes[:-1]))
    starts = np.flatnonzero(changes)
    lengths = np.diff(np.append(starts, len(order)))
    owners = ordered_groups[starts]
    # By group, longest first, earliest first: the first of each group is it.
    first_ranks = np.minimum.reduceat(_row_ranks(call, groups, batch)[order], starts) if call.order else starts
    best = np.lexsort((first_ranks, -lengths, owners))
    firsts = best[np.append(True, owners[best][1:] != owners[best][:-1])]
    row_of = np.full(count, -1, np.int64)
    row_of[owners[firsts]] = order[starts[firsts]]
    return array.take(pa.array(row_of, mask=row_of < 0))


def _argument_of_extreme(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    """Compute ARG_MIN and ARG_MAX: the argument of the row whose second one is lowest or highest."""
    codes = order_codes(batch.column(1))
    if call.function == "arg_max":
        codes = -codes
    best = np.full(count, np.iinfo(np.int64).max)
    lower_at(best, groups, codes)
    chosen = np.flatnonzero(best[groups] == codes)
    # Of several such rows the first in the order of the call; without one that with the lowest argument, so that the
    # order in which rows come does not matter.
    ranks = (
        _row_ranks(call, groups, batch)[chosen] if call.order else order_codes(batch.column(0).take(pa.array(chosen)))
    )
    chosen = chosen[np.argsort(-ranks, kind="stable")]
    row_of = np.full(count, -1, np.int64)
    row_of[groups[chosen]] = chosen
    return batch.column(0).take(pa.array(row_of, mask=row_of < 0))


def _joined_text(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    """Compute STRING_AGG: as lists, one for each group, that Arrow joins."""
    texts = _plain(batch.column(0)).take(_as_ordered(call, groups, batch))
    rows = np.bincount(groups, minlength=count)
    offsets = np.append(0, np.cumsum(rows)).astype(np.int32)
    refuse_size(_text_bytes(texts) + len(call.parameters[0].encode()) * len(texts))
    lists = pa.ListArray.from_arrays(pa.array(offsets, mask=np.append(rows == 0, False)), texts)
    return pc.binary_join(lists, call.parameters[0])


def _end_of_order(call: AggregateCall, groups: Groups, batch: pa.RecordBatch, count: int) -> pa.Array:
    """FIRST and LAST: the value, or NULL, of the row at one end of the order."""
    order = _as_ordered(call, groups, batch).to_numpy().astype(np.int64)
    rows = np.bincount(groups, minlength=count)
    ends = np.cumsum(rows)
    positions = ends - rows if call.function == "first" else np.maximum(ends - 1, 0)
    return _values_at(batch.column(0), order, positions, rows == 0)


def _as_ordered(call: AggregateCall, groups: Groups, batch: pa.RecordBatch) -> pa.Array:
    """Return the positions of the rows by group, and within each in the order of the call."""
    keyed = positional([pa.array(groups), *batch.columns[len(call.arguments) :]])
    collation = (SortKey(-1), *call.order)
    return sort_positions(keyed, range(len(collation)), collation)


def _row_ranks(call: AggregateCall, groups: Groups, batch: pa.RecordBatch) -> np.ndarray:
    """Return the rank of each row in that order."""
    ordered = _as_ordered(call, groups, batch).to_numpy()
    ranks = np.empty(len(ordered), np.int64)
    ranks[ordered] = np.arange(len(ordered))
    return ranks


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _values_at(array: pa.Array, order: np.ndarray, positions: np.ndarray, missing: np.ndarray) -> pa.Array:
    padded = np.append(order, 0)
    return array.take(pa.array(padded[np.minimum(positions, len(order))], mask=missing))


FUNCTIONS: dict[str, Callable[[Any, Groups, pa.RecordBatch, int], pa.Array]] = {
    "stddev_samp": _spread,
    "stddev_pop": _spread,
    "var_samp": _spread,
    "var_pop": _spread,
    "corr": _covariance,
    "covar_pop": _covariance,
    "covar_samp": _covariance,
    "quantile_cont": _quantile_cont,
    "quantile_disc": _quantile_disc,
    "mode": _mode,
    "arg_min": _argument_of_extreme,
    "arg_max": _argument_of_extreme,
    "string_agg": _joined_text,
    "first": _end_of_order,
    "last": _end_of_order,
}
