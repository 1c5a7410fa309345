"""EXPLAIN ANALYZE runs a query as it would run: on the same threads, with figures that add up."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.exec import parallel
from remuda.runtime.local import FragmentWorkers

ROWS = 300_000
QUERIES = {
    "scan": "SELECT id FROM m WHERE n = 3",
    "groups": "SELECT n, COUNT(*), SUM(id) FROM m WHERE id % 3 <> 1 GROUP BY n",
    "no groups": "SELECT COUNT(*), SUM(n) FROM m WHERE id % 3 <> 1",
    "many groups": "SELECT id, COUNT(*) FROM m GROUP BY id",
    "join": "SELECT d.r, COUNT(*) FROM m JOIN d ON m.n = d.n AND m.id > d.n GROUP BY d.r",
    "first rows": "SELECT * FROM m ORDER BY n DESC, id LIMIT 10",
    "sort": "SELECT id FROM m WHERE n < 50 ORDER BY n, id",
    "window": "SELECT ROW_NUMBER() OVER (PARTITION BY n ORDER BY id) FROM m",
}


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 2)
        patch.setattr(parallel, "PARALLEL_ROWS", 10_000)
        with remuda.open(members=request.param) as opened:
            opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
            opened.load("m", pa.table({"id": range(ROWS), "n": [id_ % 100 for id_ in range(ROWS)]}))
            opened.sql("CREATE TABLE d (n BIGINT, r VARCHAR, PRIMARY KEY (n))")
            opened.load("d", pa.table({"n": range(100), "r": [f"r{n % 5}" for n in range(100)]}))
            yield opened


def operators(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for each in tree.get("inputs", []):
        yield from operators(each)


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_threads_and_the_same_rows(grid: Any, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    start = FragmentWorkers.start
    monkeypatch.setattr(FragmentWorkers, "start", lambda self, feed: started.append(feed) or start(self, feed))
    sql = QUERIES[query]
    rows = grid.sql(sql).to_arrow().num_rows
    as_it_runs = len(started)
    assert as_it_runs > 0
    started.clear()
    document = json.loads(grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchone()[0])
    assert len(started) == as_it_runs
    found = list(operators(document.get("plan", document)))
    assert found[0]["actual"]["rows"] == rows
    scans = [each["actual"] for each in found if each["operator"] == "MapScan"]
    assert scans[0]["rows_read"] == ROWS
    assert all(each["rows_read"] >= each["rows"] for each in scans)
    for each in found:
        own = [lower["actual"]["seconds"] for lower in each.get("inputs", []) if "actual" in lower]
        assert each["actual"]["seconds"] >= 0
        if each["operator"] not in {"RootExchange", "HashExchange", "BroadcastExchange"}:
            assert each["actual"]["seconds"] >= sum(own) * 0.999 or len(grid.cluster.members) > 1


def test_the_rows_of_each_operator(grid: Any) -> None:
    lines = [row[0] for row in grid.sql(f"EXPLAIN ANALYZE {QUERIES['groups']}")]
    figures = "\n".join(lines)
    assert f"rows={ROWS * 2 // 3} " in figures
    assert f"rows read={ROWS} " in figures
    assert "rows=100 " in figures
