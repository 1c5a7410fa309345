"""How soon a query ends that is cancelled, or whose time is over: from the word to the error in the reader's hands."""

from __future__ import annotations

import statistics
import threading
import time
from typing import TYPE_CHECKING, Any

from remuda.cli.output import duration
from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from benchmarks.peers.remuda_peer import RemudaPeer

ROUNDS = 7
AFTER = 0.02
"""Seconds into the query."""

QUERIES = {
    "scan": "SELECT COUNT(*) FROM orders WHERE amount * 1.5 + qty * 2.5 <> 7.25 AND customer || status <> 'x'",
    "sort": "SELECT * FROM orders ORDER BY created, customer",
    "group by": "SELECT created, COUNT(*) FROM orders GROUP BY created",
    "hash join": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.qty = b.qty",
    "nested loop": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.amount < b.amount",
    "window": "SELECT SUM(amount) OVER (PARTITION BY customer ORDER BY created) FROM orders",
    "recursion": "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT COUNT(*) FROM r",
}


def show(remuda: RemudaPeer) -> None:
    print(f"\na query ends after{'':<18} {'cancel, worst (median)':>26} {'timeout, worst (median)':>26}")
    for name, sql in QUERIES.items():
        columns = [_times([end(remuda.grid, sql) for _ in range(ROUNDS)]) for end in (_cancelled, _timed_out)]
        print(f"  {name:<33} {columns[0]:>26} {columns[1]:>26}", flush=True)


def _times(seconds: list[float | None]) -> str:
    """None stands for a query that was done before it could be ended."""
    known = [each for each in seconds if each is not None]
    return f"{duration(max(known))} ({duration(statistics.median(known))})" if known else "done before"


def _cancelled(grid: Any, sql: str) -> float | None:
    result = grid.sql(sql)
    said: list[float] = []

    def cancel() -> None:
        time.sleep(AFTER)
        said.append(time.perf_counter())
        result.close()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    ended = _end_of(result.to_arrow, ErrorCode.CANCELLED_BY_USER)
    canceller.join()
    return None if ended is None else max(ended - said[0], 0.0)


def _timed_out(grid: Any, sql: str) -> float | None:
    grid.sql(f"SET timeout = {AFTER}")
    started = time.perf_counter()
    try:
        ended = _end_of(lambda: grid.sql(sql).to_arrow(), ErrorCode.TIMEOUT)
    finally:
        grid.sql("SET timeout = off")
    return None if ended is None else ended - started - AFTER


def _end_of(read: Any, code: ErrorCode) -> float | None:
    try:
        read()
    except SqlError as error:
        if error.code is not code:
            raise
        return time.perf_counter()
    return None
