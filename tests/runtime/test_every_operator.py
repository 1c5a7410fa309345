"""Cancel and timeout wherever a query is; hundreds of queries at once on few threads."""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext
from remuda.optimizer import cost
from remuda.runtime import local
from remuda.runtime.execution import QueryState
from tests.runtime.quiet import PATIENCE, wait_until_quiet

ROWS = 40_000

LONG = {
    "scan": "SELECT id FROM m WHERE n * 3 <> 7",
    "pattern": "SELECT id FROM m WHERE t || t LIKE '%9%text%8%'",
    "function row by row": "SELECT strftime(TIMESTAMP '2024-01-01 00:00:00', '%A' || t) FROM m",
    "ordered index": "SELECT id FROM m ORDER BY n, id",
    "unordered index": "SELECT t FROM m WHERE n > 2 ORDER BY t",
    "sort": "SELECT * FROM m ORDER BY t, id DESC",
    "top": "SELECT * FROM m ORDER BY t LIMIT 5",
    "limit": "SELECT * FROM m WHERE n < 999 LIMIT 39000 OFFSET 500",
    "aggregate": "SELECT t, COUNT(*) FROM m GROUP BY t",
    "whole groups": "SELECT t, MEDIAN(n), STRING_AGG(t, ',') FROM m GROUP BY t",
    "distinct": "SELECT COUNT(DISTINCT t) FROM m",
    "hash join": "SELECT COUNT(*) FROM m a JOIN m b ON a.n = b.n",
    "outer join": "SELECT a.id, b.id FROM m a FULL JOIN m b ON a.id = b.n + 1",
    "lookup join": "SELECT a.n, b.t FROM m a JOIN m b ON b.id = a.n + 1 AND b.t <> a.t",
    "nested loop": "SELECT COUNT(*) FROM m a JOIN m b ON a.id < b.n",
    "candidates": "SELECT COUNT(*) FROM m a JOIN m b ON a.n = b.n OR a.id = b.n",
    "range of candidates": "SELECT COUNT(*) FROM m a JOIN m b ON a.n BETWEEN b.n AND b.id",
    "shared plan": "WITH c AS (SELECT n, COUNT(t) AS k FROM m GROUP BY n, id % 20) "
    "SELECT a.k FROM c a, c b WHERE a.n = b.n OR a.k = b.n",
    "pairs looked for": "SELECT COUNT(*) FROM m a WHERE NOT EXISTS (SELECT 1 FROM m b WHERE b.id < -a.n - 1)",
    "sub-query": "SELECT COUNT(*) FROM m a WHERE NOT EXISTS (SELECT 1 FROM m b WHERE b.n = a.id)",
    "sub-query for each row": "SELECT (SELECT MAX(b.n) FROM m b WHERE b.id < a.id) FROM m a",
    "window": "SELECT SUM(n) OVER (PARTITION BY n ORDER BY id) FROM m",
    "wide frames": "SELECT STDDEV(n) OVER (ORDER BY id ROWS BETWEEN 90 PRECEDING AND CURRENT ROW) FROM m",
    "union": "SELECT id FROM m UNION ALL SELECT n FROM m",
    "set operations": "SELECT id FROM m INTERSECT SELECT id + 1 FROM m EXCEPT SELECT n FROM m",
    "recursion": "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT COUNT(*) FROM r",
    "distinct recursion": "WITH RECURSIVE r(x) AS (SELECT id FROM m UNION SELECT x + 1 FROM r) SELECT x FROM r",
    "series": "SELECT SUM(s * 2) FROM generate_series(1, 1000000000) AS t(s)",
    "grouping sets": "SELECT n, t, COUNT(*) FROM m GROUP BY CUBE (n, t)",
}
WRITING = {
    "insert": "INSERT INTO written SELECT id + 100000, t, n FROM m ORDER BY t",
    "update": "UPDATE written SET n = n + 1 WHERE t LIKE '%t%'",
    "delete": "DELETE FROM written WHERE n * 2 <> 7",
    "create table as": "CREATE TABLE made AS SELECT * FROM m ORDER BY t, id",
    "copy to": "COPY (SELECT * FROM m ORDER BY t) TO '{folder}/out.csv'",
    "copy from": "COPY written FROM '{folder}/more.csv'",
    "create index": "CREATE INDEX written_by_two ON written (t, n) TYPE SORTED",
}


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Scans read few rows at a time, on several threads, so that there is always something under way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "ExecContext", functools.partial(ExecContext, scan_batch_rows=8))
        patch.setattr(cost, "FORK_ROWS", 1)
        with remuda.open(members=request.param) as opened:
            opened.sql("CREATE TABLE m (id BIGINT, t VARCHAR, n BIGINT, PRIMARY KEY (id))")
            texts = [f"text {id_ % 977}" for id_ in range(ROWS)]
            opened.load("m", pa.table({"id": range(ROWS), "t": texts, "n": [id_ % 1000 for id_ in range(ROWS)]}))
            opened.sql("CREATE INDEX by_n ON m (n) TYPE SORTED")
            opened.sql("CREATE TABLE written (id BIGINT, t VARCHAR, n BIGINT, PRIMARY KEY (id))")
            opened.sql("INSERT INTO written SELECT * FROM m")
            yield opened


@pytest.mark.parametrize("query", LONG)
def test_every_operator_can_be_cancelled(grid: Any, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the query has got as far as to ask a hundred times whether it shall go on; there it waits for the cancel."""
    begun, cancelled, asked = threading.Event(), threading.Event(), itertools.count()
    verify, cancel = ExecContext.verify, QueryState.cancel

    def verify_and_tell(self: ExecContext) -> None:
        if next(asked) > 100:
            begun.set()
            cancelled.wait(PATIENCE)
        verify(self)

    def cancel_and_tell(self: QueryState) -> None:
        cancel(self)
        cancelled.set()

    monkeypatch.setattr(ExecContext, "verify", verify_and_tell)
    monkeypatch.setattr(QueryState, "cancel", cancel_and_tell)
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
    assert begun.wait(PATIENCE)
    result.close()
    reader.join(PATIENCE)
    assert outcome == [ErrorCode.CANCELLED_BY_USER]
    wait_until_quiet(grid, execution)
    assert grid.sql("SELECT n FROM m WHERE id = 1005").fetchall() == [(5,)]


@pytest.mark.parametrize("query", LONG)
def test_every_operator_ends_when_its_time_is_over(grid: Any, query: str) -> None:
    grid.sql("SET timeout = 0.01")
    try:
        with pytest.raises(SqlError) as caught:
            grid.sql(LONG[query]).fetchall()
        assert caught.value.code is ErrorCode.TIMEOUT
    finally:
        grid.sql("SET timeout = off")
    assert grid.sql("SELECT n FROM m WHERE id = 1005").fetchall() == [(5,)]


@pytest.mark.parametrize("after", [0.0001, 0.01, 0.03])
@pytest.mark.parametrize("statement", WRITING)
def test_statements_whose_time_is_over_have_done_nothing(
    grid: Any, statement: str, after: float, tmp_path: Path
) -> None:
    if statement == "copy from":
        rows = ((number, f"more {number}", number) for number in range(200_000, 260_000))
        (tmp_path / "more.csv").write_text("id,t,n\n" + "".join(f"{id_},{t},{n}\n" for id_, t, n in rows))
    before = _written(grid)
    grid.sql(f"SET timeout = {after}")
    try:
        code = _outcome(grid, WRITING[statement].format(folder=tmp_path))
    finally:
        grid.sql("SET timeout = off")
    if code is None:
        _restore(grid)
        assert after > 0.001, "it cannot have been done in time"
        return
    assert code is ErrorCode.TIMEOUT
    # The statement may still be taking back what it has done; a write waits for it.
    grid.sql("UPDATE written SET n = n WHERE id = 5")
    grid.engine.statements.start(lambda: None).result()
    assert _written(grid) == before
    assert grid.store.catalog.find_map("made", ("public",)) is None
    assert grid.store.catalog.find_index("written_by_two", ("public",)) is None
    assert not (tmp_path / "out.csv").exists()


@contextmanager
def _whole_batches() -> Iterator[None]:
    """For what is not the matter of a test: thousands of small batches take their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "ExecContext", ExecContext)
        yield


def _written(grid: Any) -> list[tuple[Any, ...]]:
    with _whole_batches():
        return [tuple(row) for row in grid.sql("SELECT COUNT(*), SUM(n), MIN(id) FROM written")]


def _restore(grid: Any) -> None:
    with _whole_batches():
        grid.sql("DROP INDEX IF EXISTS written_by_two")
        grid.sql("DROP TABLE IF EXISTS made")
        grid.sql("TRUNCATE TABLE written")
        grid.sql("INSERT INTO written SELECT * FROM m")


def _outcome(grid: Any, sql: str) -> ErrorCode | None:
    try:
        grid.sql(sql)
    except SqlError as error:
        return error.code
    return None


def test_hundreds_of_queries_need_no_hundreds_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
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
        texts = [next(iter(asked))] * 264 + list(asked)[1:] * 12
        results = [grid.sql(sql) for sql in texts]
        assert threading.active_count() <= before + 16
        for sql, result in zip(reversed(texts), reversed(results), strict=True):
            assert [tuple(map(int, row)) for row in result.fetchall()] == asked[sql]
        assert threading.active_count() <= before + 16
