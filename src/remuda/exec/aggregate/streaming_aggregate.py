"""Aggregation of rows that come in the order of their groups: a group is finished when the next one begins.

Only the group that is open is held, the first groups come out while the input is still read, and they come out in its
order: LIMIT stops it early, and ORDER BY the keys needs no sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.aggregate.accumulators import Count
from remuda.exec.aggregate.aggregate_calls import SplitCall, WholeCall
from remuda.exec.batch import ArrowBatch, layout_of, positional
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.plan.aggregates import AGGREGATES
from remuda.types.arrow_arrays import code_values, fixed_values, is_dictionary, is_fixed_width, null_mask
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import StreamingAggregate
    from remuda.types import SqlType


class StreamingAggregateExec(UnaryExec):
    def __init__(self, node: StreamingAggregate, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        self._layout = layout_of(node.input.columns)
        self._types = [column.type for column in node.keys]
        self._ordinals = [self._layout[column.id] for column in node.keys]
        self._open = _OpenGroups(node, self._layout)
        self._last: list[pa.Array] | None = None
        """The keys of the row that came last, each an array of one."""

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is IterationResult.WAIT:
            return result
        batch = self.source.current_batch
        finished = self._add(batch.arrow()) if batch.row_count else []
        if result is IterationResult.FETCHED_DONE and self._open.count:
            finished.append(self._open.finish())
        self.current_batch = self._delivered(finished)
        return result

    def _add(self, batch: pa.RecordBatch) -> list[list[pa.Array]]:
        """Add the rows; return the keys and results of the groups that are finished by them."""
        keys = [batch.column(ordinal) for ordinal in self._ordinals]
        starts = np.flatnonzero(self._begins(keys))
        self._last = [_plain(key.slice(len(key) - 1, 1)) for key in keys]
        if not len(starts):
            self._open.add(batch, np.zeros(batch.num_rows, np.int64), [])
            self._hold()
            return []
        finished: list[list[pa.Array]] = []
        last = int(starts[-1])
        before = starts[:-1]
        if last:
            groups = np.zeros(last, np.int64)
            groups[before] = 1
            # What stands before the first start belongs to the group that was open.
            numbers = np.cumsum(groups) + (self._open.count - 1)
            self._open.add(batch.slice(0, last), numbers, [_plain(key.take(pa.array(before))) for key in keys])
        if self._open.count:
            finished.append(self._open.finish())
        self._open = _OpenGroups(self._node, self._layout)
        rest = batch.num_rows - last
        self._open.add(batch.slice(last), np.zeros(rest, np.int64), [_plain(key.slice(last, 1)) for key in keys])
        self._hold()
        return finished

    def _begins(self, keys: list[pa.Array]) -> np.ndarray:
        """Return where a row's keys are not those of the row before it."""
        begins = np.zeros(len(keys[0]), np.bool_)
        for key, type_ in zip(keys, self._types, strict=True):
            begins[1:] |= _differs_from_next(key, type_)
        if self._last is None:
            begins[0] = True
        else:
            for key, before, type_ in zip(keys, self._last, self._types, strict=True):
                pair = pa.concat_arrays([before, _plain(key.slice(0, 1))])
                begins[0] |= _differs_from_next(pair, type_)[0]
        return begins

    def _hold(self) -> None:
        if self._open.bytes:
            self._context.hold(self, "the aggregation", self._open.bytes)

    def _delivered(self, finished: list[list[pa.Array]]) -> RowBatch:
        columns = self._node.columns
        if not finished:
            empty = [pa.nulls(0, column.type.arrow) for column in columns]
            return ArrowBatch(columns, positional(empty, 0))
        arrays = [pa.concat_arrays(parts) for parts in zip(*finished, strict=True)]
        return ArrowBatch(columns, positional(arrays, len(arrays[0])))


class _OpenGroups:
    """The states of groups that are numbered as they come."""

    def __init__(self, node: StreamingAggregate, layout: Mapping[int, int]) -> None:
        self.count = 0
        self._rows = Count()
        self._keys: list[list[pa.Array]] = []
        self._calls = [
            SplitCall(call, layout, self._rows) if AGGREGATES[call.function].partials else WholeCall(call, layout)
            for call in node.calls
        ]

    @property
    def bytes(self) -> int:
        return sum(call.bytes for call in self._calls)

    def add(self, batch: pa.RecordBatch, groups: np.ndarray, new_keys: list[pa.Array]) -> None:
        if new_keys:
            self._keys.append(new_keys)
            self.count += len(new_keys[0])
        for call in self._calls:
            call.add(groups, batch, self.count)
        self._rows.add_rows(groups, batch.num_rows, self.count)

    def finish(self) -> list[pa.Array]:
        keys = [pa.concat_arrays(parts) for parts in zip(*self._keys, strict=True)]
        return [*keys, *(call.result(self.count) for call in self._calls)]


def _differs_from_next(array: pa.Array, sql_type: SqlType) -> np.ndarray:
    """Return for each row but the last whether the next one differs: NULL is equal to NULL, NaN to NaN."""
    nulls = null_mask(array)
    differs = _values_differ(array, sql_type)
    if nulls is not None:
        differs = np.where(nulls[1:] | nulls[:-1], nulls[1:] != nulls[:-1], differs)
    return differs


def _values_differ(array: pa.Array, sql_type: SqlType) -> np.ndarray:
    if is_dictionary(array):
        codes = code_values(array)
        differs: np.ndarray = codes[1:] != codes[:-1]
        rows = np.flatnonzero(differs)
        # Two codes may stand for one value.
        differs[rows] = _unequal(_plain(array.take(pa.array(rows))), _plain(array.take(pa.array(rows + 1))))
        return differs
    if is_fixed_width(sql_type):
        values = fixed_values(array, sql_type)
        differs = values[1:] != values[:-1]
        if sql_type.is_floating:
            missing = np.isnan(values)
            differs &= ~(missing[1:] & missing[:-1])
        return differs
    return _unequal(array.slice(0, max(0, len(array) - 1)), array.slice(1))


def _unequal(one: pa.Array, other: pa.Array) -> np.ndarray:
    unequal: np.ndarray = pc.fill_null(pc.not_equal(one, other), False).to_numpy(zero_copy_only=False)
    return unequal


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if is_dictionary(array) else array
