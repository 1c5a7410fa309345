"""The rows of a window in order: where each one's partition begins and ends, and which rows tie with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.batch import layout_of
from remuda.exec.keys.key_interner import KeyInterner
from remuda.exec.selection import computed_once, take_rows
from remuda.exec.sort.ordering import sort_positions
from remuda.exec.sort.sort_keys import Part, changes, sort_parts, sorted_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.expr import Column
    from remuda.plan.traits import Collation


class WindowRows:
    """Sorted rows, by position. Every array has one entry for each row; a peer group is the rows that tie.

    partition_ordinal  0 0 0 0 1      order values  5 7 7 9 5
    partition_start    0 0 0 0 4      peer_start    0 1 1 3 4
    partition_stop     4 4 4 4 5      peer_stop     1 3 3 4 5
                                      group_id      0 1 1 2 3

    An array is computed when it is first asked for.
    """

    def __init__(self, batch: pa.RecordBatch, starts: np.ndarray, group_changes: Callable[[], np.ndarray]) -> None:
        """`starts` are the rows that begin a partition, `group_changes` finds those that begin a peer group."""
        self.batch = batch
        self.count = len(starts)
        self._starts = starts
        self._group_changes = group_changes

    @computed_once
    def partition_ordinal(self) -> np.ndarray:
        number: np.ndarray = np.cumsum(self._starts) - 1
        return number

    @computed_once
    def _partition_bounds(self) -> np.ndarray:
        return np.append(np.flatnonzero(self._starts), self.count)

    @computed_once
    def partition_start(self) -> np.ndarray:
        start: np.ndarray = self._partition_bounds[self.partition_ordinal]
        return start

    @computed_once
    def partition_stop(self) -> np.ndarray:
        stop: np.ndarray = self._partition_bounds[self.partition_ordinal + 1]
        return stop

    @computed_once
    def _group_starts(self) -> np.ndarray:
        starts: np.ndarray = self._starts | self._group_changes()
        return starts

    @computed_once
    def group_id(self) -> np.ndarray:
        number: np.ndarray = np.cumsum(self._group_starts) - 1
        return number

    @computed_once
    def group_starts(self) -> np.ndarray:
        """Return where each peer group begins, and the number of rows behind the last."""
        return np.append(np.flatnonzero(self._group_starts), self.count)

    @computed_once
    def peer_start(self) -> np.ndarray:
        start: np.ndarray = self.group_starts[self.group_id]
        return start

    @computed_once
    def peer_stop(self) -> np.ndarray:
        stop: np.ndarray = self.group_starts[self.group_id + 1]
        return stop


def arrange(
    batch: pa.RecordBatch, columns: Sequence[Column], partition: Sequence[Column], order: Collation
) -> WindowRows:
    """Sort the rows by partition and order, and find the bounds. Which partition comes first does not matter."""
    layout = layout_of(columns)
    ordinals = [layout[column.id] for column in partition]
    numbers = Part(*_numbers([batch.column(ordinal) for ordinal in ordinals], partition, batch.num_rows))
    order_ordinals = [layout[key.column] for key in order]
    parts = sort_parts(batch, order_ordinals, order)
    if parts is None:
        # Strings that have no dictionary: in order of their own first, then by their ordinal in it.
        ordered = sort_positions(batch, order_ordinals, order).to_numpy()
        batch = batch.take(pa.array(ordered))
        by_id = {column.id: column for column in columns}
        ties = [by_id[key.column] for key in order]
        peers = [Part(*_numbers([batch.column(ordinal) for ordinal in order_ordinals], ties, batch.num_rows))]
        positions = sorted_by([Part(numbers.values[ordered], numbers.width)], batch.num_rows)
        numbers = Part(numbers.values[ordered], numbers.width)
    else:
        peers = parts
        positions = sorted_by([numbers, *parts], batch.num_rows)
    starts = changes([numbers], positions)
    return WindowRows(take_rows(batch, positions), starts, lambda: changes(peers, positions))


def _numbers(arrays: Sequence[pa.Array], columns: Sequence[Column], rows: int) -> tuple[np.ndarray, int]:
    """Return equal integers for equal values, NULL being equal to NULL, and how many bits they have."""
    if not arrays:
        return np.zeros(rows, np.uint64), 0
    groups = KeyInterner([column.type for column in columns])
    return groups.intern(arrays).astype(np.uint64), groups.count.bit_length()
