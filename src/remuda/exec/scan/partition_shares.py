"""The partitions of a map among those of a plan, where the map has another number of them.

A plan divides rows into as many partitions as the most finely divided of its maps has. Each partition of a map with
fewer of them lies whole in one of the plan's, so that every row is on one member; but rows with equal keys of two maps
with different numbers are not together, and no such map is said to be partitioned by columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.exec.context import ExecContext


def own_partitions(definition: MapDefinition, context: ExecContext) -> np.ndarray | None:
    """Return the partitions of the map that this fragment works on, ascending; None stands for all.

    A replicated map is whole wherever it is read.
    """
    partitions, count = context.partitions, context.partition_count
    if partitions is None or definition.replicated:
        return None
    return partitions if count is None else of_map(definition, partitions, count)


def of_map(definition: MapDefinition, partitions: np.ndarray, count: int) -> np.ndarray:
    """Return the partitions of the map that lie in some of the plan's partitions, `count` in all, ascending.

    >>> from types import SimpleNamespace
    >>> of_map(SimpleNamespace(partitions=3), np.array([0, 1, 5]), 8)
    array([0, 2])
    """
    if count == definition.partitions:
        return partitions
    chosen = np.zeros(count, np.bool_)
    chosen[partitions] = True
    own: np.ndarray = np.flatnonzero(chosen[_in_plan(definition.partitions, count)])
    return own


def in_plan(definition: MapDefinition, partitions: np.ndarray, count: int) -> np.ndarray:
    """Return those of the plan's partitions, `count` in all, in which partitions of the map lie, ascending.

    >>> from types import SimpleNamespace
    >>> in_plan(SimpleNamespace(partitions=3), np.array([0, 2]), 8)
    array([0, 5])
    """
    if count == definition.partitions:
        return partitions
    return np.unique(_in_plan(definition.partitions, count)[partitions])


@lru_cache(maxsize=16)
def _in_plan(partitions: int, count: int) -> np.ndarray:
    return np.arange(partitions, dtype=np.int64) * count // partitions
