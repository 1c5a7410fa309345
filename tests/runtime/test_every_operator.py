"""Cancel and timeout wherever a query is; a thousand queries at once on few threads."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext, parallel
from remuda.runtime import local

ROWS = 40_000

LONG = {
    "scan": "SELECT id FROM m WHERE n * 3 <> 7",
    "sort": "SELECT * FROM m ORDER BY t, id DESC",
    "top": "SELECT * FROM m ORDER BY t LIMIT 5",
    "aggregate": "SELECT t, COUNT(*) FROM m GROUP BY t",
    "distinct": "SELECT COUNT(DISTINCT t) FROM m",
    "hash join": "SELECT COUNT(*) FROM m a JOIN m b ON a.n = b.n",
    "outer join": "SELECT a.id, b.id FROM m a FULL JOIN m b ON a.id = b.n + 1",
    "nested loop": "SELECT COUNT(*) FROM m a JOIN m b ON a.id < b.n",
    "sub-query": "SELECT COUNT(*) FROM m a WHERE NOT EXISTS (SELECT 1 FROM m b WHERE b.n = a.id)",
    "window": "SELECT SUM(n) OVER (PARTITION BY n ORDER BY id) FROM m",
    "union": "SELECT id FROM m UNION ALL SELECT n FROM m",
    "recursion": "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT COUNT(*) FROM r",
    "grouping sets": "SELECT n, t, COUNT(*) FROM m GROUP BY CUBE (n, t)",
}


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Scans read few rows at a time, on several threads, so that there is always something under way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "ExecContext", functools.partial(ExecContext, scan_batch_rows=8))
        patch.setattr(parallel, "PARALLEL_ROWS", 1)
        with remuda.open(members=request.param) as opened:
            opened.sql("CREATE TABLE m (id BIGINT, t VARCHAR, n BIGINT, PRIMARY KEY (id))")
            texts = [f"text {id_ % 977}" for id_ in range(ROWS)]
            opened.load("m", pa.table({"id": range(ROWS), "t": texts, "n": [id_ % 1000 for id_ in range(ROWS)]}))
            yield opened


def rows_read(execution: Any) -> int:
    return sum(each.rows_read for each in execution.activity)


def settle(execution: Any) -> None:
    """Waits until nothing is read any more; a query that does not stop would read to the end of the time."""
    for _ in range(200):
        before = rows_read(execution)
        time.sleep(0.05)
        if rows_read(execution) == before:
            return
    raise AssertionError("the query is read on")


@pytest.mark.parametrize("query", LONG)
def test_cancel(grid: Any, query: str) -> None:
    result = grid.sql(LONG[query])
    execution = result._execution
    outcome: list[Any] = []

    def read() -> None:
        try:
            outcome.append(result.fetchall())
        except SqlError as error:
            outcome.append(error.code)

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.02)
    result.close()
    reader.join(20)
    assert not reader.is_alive(), "the reader of a cancelled query comes to an end"
    assert outcome == [ErrorCode.CANCELLED_BY_USER]
    settle(execution)
    assert grid.sql("SELECT n FROM m WHERE id = 1005").fetchall() == [(5,)]


@pytest.mark.parametrize("query", LONG)
def test_timeout(grid: Any, query: str) -> None:
    grid.sql("SET timeout = 0.01")
    try:
        with pytest.raises(SqlError) as caught:
            grid.sql(LONG[query]).fetchall()
        assert caught.value.code is ErrorCode.TIMEOUT
    finally:
        grid.sql("SET timeout = off")
    assert grid.sql("SELECT n FROM m WHERE id = 1005").fetchall() == [(5,)]


def test_a_thousand_queries_need_no_thousand_threads() -> None:
    with remuda.open(members=3) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.load("m", pa.table({"id": range(500), "n": [id_ % 10 for id_ in range(500)]}))
        before = threading.active_count()
        asked = {
            "SELECT n, COUNT(*) FROM m GROUP BY n ORDER BY n": [(n, 50) for n in range(10)],
            "SELECT COUNT(*), SUM(a.n - b.n) FROM m a JOIN m b ON a.n = b.id": [(500, 0)],
            "SELECT a.id FROM m a LEFT JOIN m b ON a.id + 495 = b.id WHERE b.id IS NOT NULL ORDER BY a.id": [
                (id_,) for id_ in range(5)
            ],
            "SELECT COUNT(*) FROM m WHERE id IN (SELECT n FROM m)": [(10,)],
        }
        texts = [next(iter(asked))] * 880 + list(asked)[1:] * 40
        results = [grid.sql(sql) for sql in texts]
        assert threading.active_count() <= before + 16
        for sql, result in zip(reversed(texts), reversed(results), strict=True):
            assert [tuple(map(int, row)) for row in result.fetchall()] == asked[sql]
        assert threading.active_count() <= before + 16
