"""How soon a query ends that is cancelled, or whose time is over: from the word to the error in the reader's hands.

The word is said at several moments of each query, so that it meets every one of its operators. What is not given a
plan, as the setting is new for each timeout, is planned first: that is part of the time.

By the clock it also shows how many other programs want the machine. So beside it stands what this process has worked in
that time, on all of its threads. Of a timeout that is a lower bound: the thread that notes the moment may be kept
waiting by the same kernel as the reader.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remuda.errors import ErrorCode, SqlError
from remuda.presentation.durations import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.bench.peers.remuda_peer import RemudaPeer

MOMENTS = (0.002, 0.01, 0.03, 0.06, 0.1, 0.15, 0.25, 0.4, 0.6, 0.9, 1.3)
"""Seconds into the query."""

QUERIES = {
    "scan": "SELECT COUNT(*) FROM orders WHERE amount * 1.5 + qty * 2.5 <> 7.25 AND customer || status <> 'x'",
    "scan with a pattern": "SELECT id FROM orders WHERE customer || status || created LIKE '%9%8%7%6%'",
    "function row by row": "SELECT strftime(created, '%A %d %B') FROM orders WHERE id < 400000",
    "sort": "SELECT * FROM orders ORDER BY created, customer",
    "first rows": "SELECT * FROM orders ORDER BY created LIMIT 200000",
    "ordered index": "SELECT * FROM orders ORDER BY amount",
    "unordered index": "SELECT * FROM orders WHERE amount > 300000 ORDER BY qty",
    "few groups": "SELECT status, SUM(amount) FROM orders GROUP BY status",
    "many groups": "SELECT created, COUNT(*) FROM orders GROUP BY created",
    "distinct": "SELECT DISTINCT customer, created FROM orders",
    "count distinct": "SELECT status, COUNT(DISTINCT created) FROM orders GROUP BY status",
    "whole groups": "SELECT customer, median(amount), string_agg(status, ',') FROM orders GROUP BY customer",
    "grouping sets": "SELECT customer, status, qty, SUM(amount) FROM orders GROUP BY CUBE (customer, status, qty)",
    "hash join": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.qty = b.qty",
    "hash join, large table": "SELECT a.id, b.status FROM orders a JOIN orders b ON a.id = b.id + 1",
    "full join": "SELECT a.id, b.id FROM orders a FULL JOIN orders b ON a.id = b.id + 5",
    "nested loop": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.amount < b.amount",
    "not exists": "SELECT id FROM orders a WHERE NOT EXISTS (SELECT 1 FROM orders b WHERE b.qty > a.id)",
    "sub-query for each row": "SELECT (SELECT MAX(b.id) FROM orders b WHERE b.id < a.id AND b.qty > 5) FROM orders a",
    "lookup join": "SELECT COUNT(*) FROM orders a JOIN orders b ON b.id = a.qty * 1000 WHERE a.amount < 900000",
    "window": "SELECT SUM(amount) OVER (PARTITION BY customer ORDER BY created) FROM orders",
    "window, wide frames": "SELECT STDDEV(qty) OVER (ORDER BY id ROWS 500 PRECEDING) FROM orders",
    "window, extremes": "SELECT MAX(customer) OVER (ORDER BY id ROWS 50 PRECEDING) FROM orders",
    "union": "SELECT customer FROM orders UNION SELECT status FROM orders",
    "intersect, except": "SELECT id FROM orders INTERSECT SELECT id + 1 FROM orders EXCEPT SELECT qty FROM orders",
    "recursion": "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT COUNT(*) FROM r",
    "recursion, distinct": "WITH RECURSIVE r(x) AS (SELECT qty FROM orders UNION SELECT x + 1 FROM r) SELECT x FROM r",
    "series": "SELECT SUM(s * 2) FROM generate_series(1, 100000000) AS t(s)",
}
STATEMENTS = {
    "insert": "INSERT INTO written SELECT id, amount, status FROM orders",
    "update": "UPDATE written SET amount = amount + 1 WHERE status <> 'x'",
    "delete": "DELETE FROM written WHERE status <> 'x'",
    "create table as": "CREATE TABLE made AS SELECT * FROM orders ORDER BY customer",
    "copy to": "COPY (SELECT * FROM orders) TO '{folder}/out.csv'",
    "copy from": "COPY made_before FROM '{folder}/orders.parquet'",
    "create index": "CREATE INDEX made_by_two ON orders (status, created) TYPE SORTED",
}
"""They give back nothing to close: only their time can be over."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, by the clock and by the work of this process, in seconds."""

    clock: float
    work: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.perf_counter(), time.process_time())

    def after(self, other: Moment) -> Moment:
        return Moment(max(self.clock - other.clock, 0.0), max(self.work - other.work, 0.0))


WIDTH = 40


def show(remuda: RemudaPeer) -> None:
    heads = [f"{how}, worst (median), worst work" for how in ("cancel", "timeout")]
    print(f"\na query ends after{'':<18} {heads[0]:>{WIDTH}} {heads[1]:>{WIDTH}}")
    grid = remuda.grid
    late = _times([_lateness(after) for after in MOMENTS])
    print(f"  {'nothing: how late a thread wakes':<33} {'':>{WIDTH}} {late:>{WIDTH}}")
    for name, sql in QUERIES.items():
        columns = [_times([end(grid, sql, after) for after in MOMENTS]) for end in (_cancelled, _timed_out)]
        print(f"  {name:<33} {columns[0]:>{WIDTH}} {columns[1]:>{WIDTH}}", flush=True)
    rows = [_cancelled(grid, "SELECT * FROM orders", after, lambda result: result.fetchall()) for after in MOMENTS]
    over = [_timed_out(grid, "SELECT * FROM orders", after, lambda result: result.fetchall()) for after in MOMENTS]
    print(f"  {'rows to Python objects':<33} {_times(rows):>{WIDTH}} {_times(over):>{WIDTH}}", flush=True)
    _show_statements(grid)


def _show_statements(grid: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        grid.sql(f"COPY (SELECT * FROM orders) TO '{folder}/orders.parquet'")
        grid.sql("CREATE TABLE written (id BIGINT, amount DOUBLE, status VARCHAR, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE made_before AS SELECT * FROM orders WHERE id < 0")
        for name, sql in STATEMENTS.items():
            text = sql.format(folder=Path(folder))
            if name == "update":
                grid.sql("TRUNCATE TABLE written")
                grid.load("written", grid.sql("SELECT id, amount, status FROM orders").to_arrow())
            print(f"  {name:<33} {'':>{WIDTH}} {_times(_all_timed_out(grid, text)):>{WIDTH}}", flush=True)


def _all_timed_out(grid: Any, sql: str) -> list[Moment | None]:
    """Up to the first time that sufficed: what is done cannot always be done again."""
    ends: list[Moment | None] = []
    for after in sorted(MOMENTS):
        ends.append(_timed_out(grid, sql, after))
        if ends[-1] is None:
            break
    return ends


def _times(ends: list[Moment | None]) -> str:
    """None stands for a query that was done before it could be ended."""
    known = [each for each in ends if each is not None]
    if not known:
        return "done before"
    clocks = [each.clock for each in known]
    worst, median = duration(max(clocks)), duration(statistics.median(clocks))
    return f"{worst} ({median}), {duration(max(each.work for each in known))}"


def _lateness(after: float) -> Moment:
    """What the machine itself takes, with all that runs on it."""
    started = Moment.now()
    threading.Event().wait(after)
    late = Moment.now().after(started)
    return Moment(late.clock - after, late.work)


def _to_arrow(result: Any) -> Any:
    return result.to_arrow()


def _cancelled(grid: Any, sql: str, after: float, read: Callable[[Any], Any] = _to_arrow) -> Moment | None:
    result = grid.sql(sql)
    said: list[Moment] = []

    def cancel() -> None:
        said.append(Moment.now())
        result.close()

    canceller = threading.Timer(after, cancel)
    canceller.start()
    ended = _end_of(lambda: read(result), ErrorCode.CANCELLED_BY_USER)
    canceller.join()
    return None if ended is None else ended.after(said[0])


def _timed_out(grid: Any, sql: str, after: float, read: Callable[[Any], Any] = _to_arrow) -> Moment | None:
    grid.sql(f"SET timeout = {after}")
    over: list[Moment] = []
    clock = threading.Timer(after, lambda: over.append(Moment.now()))
    started = time.perf_counter()
    clock.start()
    try:
        ended = _end_of(lambda: read(grid.sql(sql)), ErrorCode.TIMEOUT)
    finally:
        grid.sql("SET timeout = off")
        clock.join()
    if ended is None:
        return None
    # The timer may be late itself, and the query end before it.
    return Moment(max(ended.clock - started - after, 0.0), ended.after(over[0]).work)


def _end_of(read: Callable[[], Any], code: ErrorCode) -> Moment | None:
    try:
        read()
    except SqlError as error:
        if error.code is not code:
            raise
        return Moment.now()
    return None
