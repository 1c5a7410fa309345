"""What the tasks of a query are told of a map: each of the segments that it reads, all of those that many read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remuda
from remuda.storage import open_snapshot
from tests.storage.maps import contents, in_order
from tests.storage.test_groups_read import groups_read
from tests.storage.test_lazy_segments import PARTITIONS, made, numbered, path, store_of

__all__ = ["made", "path"]


def shares_of(tasks: int, partitions: np.ndarray | None = None) -> list[np.ndarray]:
    chosen = np.arange(PARTITIONS) if partitions is None else partitions
    return list(np.array_split(chosen, tasks))


def told(grid: Any, shares: list[np.ndarray]) -> list[tuple[Any, ...]]:
    """Return the rows that tasks find in their shares, given no more than what they are told."""
    shared, own = store_of(grid).snapshot().describe_for(shares)
    rows: list[tuple[Any, ...]] = []
    for share, segments in zip(shares, own, strict=True):
        packed = pickle.dumps((shared, segments))
        description, described = pickle.loads(packed)
        rows += contents(open_snapshot(description.with_segments(described)), share)
    return in_order(rows)


@pytest.mark.parametrize("tasks", [1, 2, 3, 8, PARTITIONS])
@pytest.mark.parametrize("read_only", [True, False])
def test_tasks_find_all_rows_once(path: Path, tasks: int, read_only: bool) -> None:
    with remuda.open(path) as grid:
        grid.load("t", numbered(20_000, 20_300))  # a run
        grid.sql("DELETE FROM t WHERE id < 500")
        grid.checkpoint()
        grid.sql("UPDATE t SET v = -1 WHERE id = 700")
        with remuda.open(path, read_only=True) as reader:
            chosen = reader if read_only else grid
            whole = contents(store_of(chosen).snapshot())
            assert len(whole) == 20_300 - 500
            assert told(chosen, shares_of(tasks)) == whole


def test_each_task_is_told_of_its_own_segments(path: Path) -> None:
    """By bytes: what all are told has no member of a group, and a share is as large as its segments."""
    with remuda.open(path, read_only=True) as grid:
        snapshot = store_of(grid).snapshot()
        shared, own = snapshot.describe_for(shares_of(PARTITIONS))
        whole = len(pickle.dumps(snapshot.describe()))
        assert shared.segments == ()
        assert [len(each.infos) for each in own] == [1] * PARTITIONS
        assert len(pickle.dumps(shared)) < 2_000
        assert max(len(pickle.dumps(each)) for each in own) < 600 < whole / 7
        assert sum(len(pickle.dumps(each.infos)) for each in own) < 300 * PARTITIONS


def test_what_a_task_is_told_does_not_grow_with_the_map(path: Path) -> None:
    with remuda.open(path) as grid:
        few = store_of(grid).snapshot().describe_for(shares_of(4, np.arange(8)))
        all_of_it = store_of(grid).snapshot().describe_for(shares_of(16))
    sizes = [[len(pickle.dumps(each)) for each in own] for _, own in (few, all_of_it)]
    assert max(sizes[1]) <= max(sizes[0])
    assert len(pickle.dumps(all_of_it[0])) == len(pickle.dumps(few[0]))


def test_a_deleted_row_takes_four_bytes(path: Path) -> None:
    sizes = []
    with remuda.open(path) as grid:
        for low in (0, 10_000):
            grid.sql("DELETE FROM t WHERE id < ?", low)
            _, own = store_of(grid).snapshot().describe_for(shares_of(PARTITIONS))
            sizes.append(sum(len(pickle.dumps(each)) for each in own))
    assert 0 < sizes[1] - sizes[0] < 4 * 10_000 + 100 * PARTITIONS


def test_segments_that_many_tasks_read_are_shared(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = {PARTITIONS})")
        grid.load("t", numbered(0, 5_000))
        grid.sql("DELETE FROM t WHERE id < 1000")
        grid.checkpoint()
        grid.sql("DELETE FROM t WHERE id < 1100")
        for tasks in (1, 2, 8):
            shared, own = store_of(grid).snapshot().describe_for(shares_of(tasks))
            assert len(shared.segments) == 1
            assert all(not each.infos for each in own)
            assert told(grid, shares_of(tasks)) == contents(store_of(grid).snapshot())


def test_a_pruned_query_reads_only_the_groups_of_its_partitions(path: Path) -> None:
    with remuda.open(path, read_only=True) as grid:
        partitions = np.array([3, 4, 20])
        shared, own = store_of(grid).snapshot().describe_for(shares_of(2, partitions))
        assert groups_read(grid) == {3, 4, 20}
        assert len(shared.segments) + sum(len(each.infos) for each in own) == 3
        assert told(grid, shares_of(2, partitions)) == contents(store_of(grid).snapshot(), partitions)
