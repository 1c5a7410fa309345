"""The rows of a window in order: where each one's partition begins and ends, and which rows tie with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.batch import layout_of, positional
from remuda.exec.key_numbers import KeyNumbers
from remuda.exec.ordering import sort_positions
from remuda.plan.traits import SortKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.expr import Column
    from remuda.plan.traits import Collation

_PARTITION = SortKey(-1)


@dataclass(frozen=True, slots=True)
class WindowRows:
    """Sorted rows, by position. Every array has one entry for each row; a peer group is the rows that tie.

    partition_number  0 0 0 0 1      order values  5 7 7 9 5
    partition_start   0 0 0 0 4      peer_start    0 1 1 3 4
    partition_stop    4 4 4 4 5      peer_stop     1 3 3 4 5
                                     group_number  0 1 1 2 3
    """

    batch: pa.RecordBatch
    partition_number: np.ndarray
    partition_start: np.ndarray
    partition_stop: np.ndarray
    peer_start: np.ndarray
    peer_stop: np.ndarray
    group_number: np.ndarray
    group_starts: np.ndarray
    """Where each peer group begins, and the number of rows behind the last."""

    @property
    def count(self) -> int:
        return len(self.partition_start)


def arrange(
    batch: pa.RecordBatch, columns: Sequence[Column], partition: Sequence[Column], order: Collation
) -> WindowRows:
    """Sorts the rows by partition and order, and finds the bounds."""
    layout = layout_of(columns)
    by_id = {column.id: column for column in columns}
    rows = batch.num_rows
    partitions = _numbers(batch, [layout[column.id] for column in partition], partition)
    peers = _numbers(batch, [layout[key.column] for key in order], [by_id[key.column] for key in order])
    if rows and (partition or order):
        keys = [pa.array(partitions), *(batch.column(layout[key.column]) for key in order)]
        positions = sort_positions(positional(keys), range(len(keys)), (_PARTITION, *order))
        batch = batch.take(positions)
        taken = positions.to_numpy()
        partitions, peers = partitions[taken], peers[taken]
    starts = _changes(partitions)
    group_changes = starts | _changes(peers)
    partition_number = np.cumsum(starts) - 1
    group_number = np.cumsum(group_changes) - 1
    partition_bounds = np.append(np.flatnonzero(starts), rows)
    group_starts = np.append(np.flatnonzero(group_changes), rows)
    return WindowRows(
        batch,
        partition_number,
        partition_bounds[partition_number],
        partition_bounds[partition_number + 1],
        group_starts[group_number],
        group_starts[group_number + 1],
        group_number,
        group_starts,
    )


def _numbers(batch: pa.RecordBatch, places: list[int], columns: Sequence[Column]) -> np.ndarray:
    """Equal numbers for equal values, NULL being equal to NULL."""
    if not places:
        return np.zeros(batch.num_rows, np.int32)
    types = [column.type for column in columns]
    return KeyNumbers([batch.column(place) for place in places], types, [True] * len(places)).given


def _changes(numbers: np.ndarray) -> np.ndarray:
    changes = np.ones(len(numbers), np.bool_)
    changes[1:] = numbers[1:] != numbers[:-1]
    return changes
