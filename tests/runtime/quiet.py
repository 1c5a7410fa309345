"""Waiting until nothing runs for a query any more, by events instead of by the clock."""

from __future__ import annotations

import threading
from typing import Any

from remuda.exec import Exec, ExecContext, IterationResult
from remuda.runtime import QueryState
from remuda.runtime.scheduler import FragmentTask

PATIENCE = 60.0
"""Seconds after which a test that hangs fails."""


class _Meeting(Exec):
    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def setup(self, context: ExecContext) -> None:
        pass

    def advance(self) -> IterationResult:
        self._barrier.wait(PATIENCE)
        return IterationResult.FETCHED_DONE


def rows_read(execution: Any) -> int:
    return sum(each.rows_read for each in execution.activity)


def wait_until_quiet(grid: Any, execution: Any) -> None:
    """All threads meet: what was queued before has had its turn, and what was under way has been put pool.

    Where no row was read between two meetings, every fragment waits or has ended.
    """
    before = -1
    while before != rows_read(execution):
        before = rows_read(execution)
        _meet(grid)


def _meet(grid: Any) -> None:
    scheduler, pool = grid.engine.scheduler, grid.engine.runtime.pool
    barrier = threading.Barrier(scheduler.parallelism + 1)
    for _ in range(scheduler.parallelism):
        scheduler.submit(FragmentTask(_Meeting(barrier), QueryState()))
    barrier.wait(PATIENCE)
    if pool._pool is not None:
        threads = pool._pool._max_workers
        beside = threading.Barrier(threads)
        for step in [pool.start(_Meeting(beside).advance) for _ in range(threads)]:
            step.result(PATIENCE)


def wait_until_reading(execution: Any, rows: int = 1) -> None:
    """Until so many rows have been read for the query."""
    for _ in range(int(PATIENCE * 2_000)):
        if rows_read(execution) >= rows:
            return
        threading.Event().wait(0.0005)
    raise AssertionError("nothing is read")
