"""Rows that several readers need are computed once, whichever of them reads first and however far it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from tests.runtime.quiet import rows_read

ROWS = 4_000
TOTALS = "WITH totals AS (SELECT g, SUM(n) AS total FROM m GROUP BY g) "


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, g BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.load(
            "m",
            pa.table(
                {"id": range(ROWS), "g": [id_ % 400 for id_ in range(ROWS)], "n": [id_ % 7 for id_ in range(ROWS)]}
            ),
        )
        yield opened


def read_by(grid: Any, query: str) -> tuple[list[tuple[Any, ...]], int]:
    """The answer, and how many rows of the map were read for it."""
    result = grid.sql(query)
    execution = result._execution
    return [tuple(row) for row in result], rows_read(execution)


def test_a_query_that_is_named_twice_reads_its_map_once(grid: Any) -> None:
    rows, read = read_by(grid, TOTALS + "SELECT COUNT(*) FROM totals AS a JOIN totals AS b ON a.total = b.total + 1")
    sums = [sum(id_ % 7 for id_ in range(group, ROWS, 400)) for group in range(400)]
    assert rows == [(sum(one == other + 1 for one in sums for other in sums),)]
    assert read == ROWS


def test_one_reader_may_stop_early(grid: Any) -> None:
    rows, read = read_by(
        grid,
        TOTALS + "SELECT COUNT(*) FROM totals WHERE total >= (SELECT total FROM totals ORDER BY total DESC LIMIT 1)",
    )
    sums = [sum(id_ % 7 for id_ in range(group, ROWS, 400)) for group in range(400)]
    assert rows == [(sums.count(max(sums)),)]
    assert read == ROWS


def test_the_parts_of_a_union_share_too(grid: Any) -> None:
    query = TOTALS + "SELECT g, total FROM totals UNION ALL SELECT g, total FROM totals"
    rows, read = read_by(grid, query)
    assert len(rows) == 800
    assert all(rows.count(row) == 2 for row in rows[:10])
    assert read == ROWS


def test_each_execution_of_a_plan_has_rows_of_its_own(grid: Any) -> None:
    query = TOTALS + "SELECT SUM(a.total) FROM totals AS a JOIN totals AS b ON a.g = b.g"
    before, _ = read_by(grid, query)
    grid.sql("UPDATE m SET n = n + 1 WHERE id = 5")
    after, _ = read_by(grid, query)
    grid.sql("UPDATE m SET n = n - 1 WHERE id = 5")
    assert after[0][0] == before[0][0] + 1
    assert read_by(grid, query)[0] == before


def test_a_reader_that_needs_no_rows_leaves_them_to_the_others() -> None:
    """A join whose other side is empty releases the senders of its rows, but not those of a spool."""
    inner = "SELECT x.b FROM t x WHERE o.a IN (SELECT y.x FROM v y WHERE x.id IN (0, -1)) UNION ALL SELECT 0"
    with remuda.open(members=3) as grid:
        grid.sql("CREATE TABLE v (id BIGINT PRIMARY KEY, x INTEGER, a INTEGER)")
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, a INTEGER, b INTEGER)")
        grid.sql("INSERT INTO v VALUES (1, NULL, 2), (2, 3, NULL), (3, 0, 0), (4, 4, 2), (5, 0, 1), (6, 1, 2)")
        grid.sql("INSERT INTO t VALUES (1, 1, 1), (2, NULL, 2), (3, 2, NULL), (4, 0, 2)")
        query = f"SELECT id FROM v o WHERE 2 >= ANY ({inner})"
        assert "Spool" in grid.explain(query)
        assert sorted(grid.sql(query).fetchall()) == [(number,) for number in range(1, 7)]
