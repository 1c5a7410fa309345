"""SET memory_limit: what holds too much is spilled, or fails by its name, and the grid goes on working."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec.memory import MemoryLimit

ROWS = 60_000

HOLDING = {
    "many first rows": ("the sort", "SELECT * FROM m ORDER BY t, id LIMIT 5000"),
    "whole groups": ("the aggregation", "SELECT MEDIAN(id) FROM m"),
    "count distinct": ("the aggregation", "SELECT COUNT(DISTINCT t), MEDIAN(id) FROM m"),
    "nested loop": ("the join", "SELECT COUNT(*) FROM (SELECT * FROM m WHERE id < 9) a JOIN m b ON b.t <= a.t"),
    "one key": (
        "the join",
        "SELECT COUNT(*) FROM m a JOIN (SELECT id % 2 AS s, t FROM m) b ON a.n = b.s AND a.t <> b.t",
    ),
    "one partition": ("the window", "SELECT id, ROW_NUMBER() OVER (ORDER BY t) FROM m"),
    "recursion": (
        "the recursive query",
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x + 1 FROM r WHERE x < 3000) SELECT COUNT(*) FROM r",
    ),
    "recursion that keeps repetitions": (
        "the recursive query",
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + s FROM r, (VALUES (1), (2)) v(s) WHERE x < 28) FROM r",
    ),
}
"""What the error names, and the query."""

SPILLING = {
    "aggregate": "SELECT t, COUNT(*), SUM(n) FROM m GROUP BY t",
    "whole groups": "SELECT t, MEDIAN(id), COUNT(DISTINCT n) FROM m GROUP BY t",
    "distinct": "SELECT DISTINCT t FROM m",
    "grouping sets": "SELECT id, n, COUNT(*) FROM m GROUP BY CUBE (id, n)",
    "hash join": "SELECT a.t, b.t FROM m a JOIN m b ON a.n = b.id",
    "outer join": "SELECT a.t, b.t FROM m a FULL JOIN m b ON a.n = b.id",
    "sub-query": "SELECT COUNT(*) FROM m a WHERE NOT EXISTS (SELECT 1 FROM m b WHERE b.t = a.t || '!')",
    "window": "SELECT id, ROW_NUMBER() OVER (PARTITION BY n ORDER BY t) FROM m",
    "union": "SELECT t FROM m UNION SELECT t || '!' FROM m",
    "intersect": "SELECT t, id FROM m INTERSECT SELECT t, id FROM m",
    "except": "SELECT t, id FROM m EXCEPT SELECT t, id + 1 FROM m",
}


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, t VARCHAR, n BIGINT, PRIMARY KEY (id))")
        columns = {
            "id": range(ROWS),
            "t": [f"text {id_}" for id_ in range(ROWS)],
            "n": [id_ % 1000 for id_ in range(ROWS)],
        }
        opened.load("m", pa.table(columns))
        yield opened


@pytest.fixture(autouse=True)
def _without_limit_afterwards(grid: Any) -> Iterator[None]:
    yield
    grid.sql("SET memory_limit = off")


@pytest.mark.parametrize("operator", HOLDING)
def test_too_much_is_refused_and_the_grid_goes_on(grid: Any, operator: str) -> None:
    named, sql = HOLDING[operator]
    grid.sql("SET memory_limit = '200kB'")
    for _ in range(2):
        with pytest.raises(SqlError, match=f"{named} needs more memory than the limit of 200 kB") as caught:
            grid.sql(sql).fetchall()
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
        assert grid.sql("SELECT n FROM m WHERE id = 1005").fetchall() == [(5,)]
        assert grid.sql("SELECT COUNT(*), MAX(n) FROM m").fetchall() == [(ROWS, 999)]
    grid.sql("SET memory_limit = '1GB'")
    assert grid.sql(sql).to_arrow().num_rows > 0


@pytest.mark.parametrize("operator", SPILLING)
def test_rows_beyond_the_limit_are_spilled(grid: Any, operator: str) -> None:
    sql = SPILLING[operator]
    expected = sorted(map(repr, grid.sql(sql).fetchall()))
    grid.sql("SET memory_limit = '1MB'")
    assert sorted(map(repr, grid.sql(sql).fetchall())) == expected
    assert "spilled: " in "".join(str(row[0]) for row in grid.sql(f"EXPLAIN ANALYZE {sql}"))
    grid.sql("SET memory_limit = '1GB'")
    assert "spilled: " not in "".join(str(row[0]) for row in grid.sql(f"EXPLAIN ANALYZE {sql}"))


def test_a_statement_that_writes_too_much_writes_nothing(grid: Any) -> None:
    grid.sql("SET memory_limit = '200kB'")
    with pytest.raises(SqlError, match="the statement needs more memory than the limit of 200 kB"):
        grid.sql("UPDATE m SET n = -1 WHERE id >= 0")
    assert grid.sql("SELECT COUNT(*) FROM m WHERE n = -1").fetchall() == [(0,)]
    assert grid.sql("UPDATE m SET n = n WHERE id < 10").update_count == 10


def test_few_rows_of_many_need_little(grid: Any) -> None:
    grid.sql("SET memory_limit = '200kB'")
    assert grid.sql("SELECT id FROM m ORDER BY t LIMIT 2").fetchall() == [(0,), (1,)]
    assert len(grid.sql("SELECT n, COUNT(*) FROM m GROUP BY n").fetchall()) == 1_000
    assert grid.sql("SELECT COUNT(*) FROM m a JOIN (SELECT id FROM m WHERE id < 10) b ON a.id = b.id").fetchall() == [
        (10,)
    ]


@pytest.mark.parametrize("value", ["lots", "-5MB", "5 furlongs"])
def test_sizes_that_mean_nothing(grid: Any, value: str) -> None:
    with pytest.raises(SqlError, match="memory_limit must be a size such as 512MB"):
        grid.sql(f"SET memory_limit = '{value}'")


def test_room_is_half_of_the_limit_less_what_others_hold_but_never_nothing() -> None:
    limit = MemoryLimit(160)
    first, second = object(), object()
    limit.hold(first, "the sort", 60)
    assert (limit.room(first), limit.room(second)) == (80, 20)
    limit.hold(first, "the sort", 80)
    assert limit.room(second) == 10
    part = limit.part()
    part.hold(second, "the join", 8)
    assert (part.room(second), part.room(object())) == (10, 10)


def test_limit_counts_all_operators_together_and_what_they_hold_now() -> None:
    limit = MemoryLimit(100)
    first, second = object(), object()
    limit.hold(first, "the sort", 60)
    limit.hold(first, "the sort", 40)
    limit.hold(second, "the join", 60)
    with pytest.raises(SqlError, match="the join needs more memory than the limit of 100 bytes"):
        limit.hold(second, "the join", 61)


def test_the_rounds_of_a_recursion_do_not_add_up(grid: Any) -> None:
    """Every round makes its join anew, and gives back what that held."""
    grid.sql("SET memory_limit = '200kB'")
    rows = ", ".join(f"({number})" for number in range(200))
    step = f"SELECT x + 1 FROM r JOIN (VALUES {rows}) v(s) ON s = x % 200 WHERE x < 400"
    assert grid.sql(f"WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL {step}) SELECT COUNT(*) FROM r").fetchall() == [(400,)]
    grid.sql("SET memory_limit = 'off'")
