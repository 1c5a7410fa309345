"""SET memory_limit counts texts by their length, wherever an operator holds or makes them.

A dictionary that belongs to the map costs nothing to hold: what is counted is text that the query itself has made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError

ROWS = 4_000
LONG = 2_000
"""Characters of a text, of which the map has only a few different ones: its codes are small."""
LIMIT = "1MB"

HOLDING = {
    "joined texts": ("the aggregation", "SELECT STRING_AGG(t, ',') FROM m"),
    "joined texts of groups": ("the aggregation", "SELECT n, STRING_AGG(t, ',' ORDER BY id) FROM m GROUP BY n"),
    "joined texts, distinct": ("the aggregation", "SELECT STRING_AGG(DISTINCT t || id, ',') FROM m"),
    "different long texts": ("the aggregation", "SELECT COUNT(DISTINCT t || id), COUNT(DISTINCT n) FROM m"),
    "mode of long texts": ("the aggregation", "SELECT MODE(t || id) FROM m"),
    "long texts of a window": ("the window", "SELECT LAG(t) OVER (ORDER BY id) FROM m"),
}

SPILLING = {
    "last text of each group": "SELECT id + 0, LAST(t ORDER BY n) FROM m GROUP BY id + 0",
    "text at the greatest": "SELECT id + 0, ARG_MAX(t, n) FROM m GROUP BY id + 0",
    "greatest text of each group": "SELECT id + 0, MAX(t || n) FROM m GROUP BY id + 0",
    "any text of each group": "SELECT id + 0, ANY_VALUE(t || n) FROM m GROUP BY id + 0",
    "long keys": "SELECT t || id, COUNT(*) FROM m GROUP BY t || id",
    "different long rows": "SELECT DISTINCT t || id FROM m",
    "joined long texts": "SELECT a.id, b.long FROM m a JOIN (SELECT id, t || n AS long FROM m) b ON a.id = b.id",
    "set of long texts": "SELECT t || id FROM m EXCEPT SELECT t FROM m WHERE id < 5",
}


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, t VARCHAR, n BIGINT, PRIMARY KEY (id))")
        columns = {
            "id": range(ROWS),
            "t": [str(id_ % 4) * LONG for id_ in range(ROWS)],
            "n": [id_ % 10 for id_ in range(ROWS)],
        }
        opened.load("m", pa.table(columns))
        opened.sql("CHECKPOINT")
        yield opened


@pytest.fixture(autouse=True)
def _without_limit_afterwards(grid: Any) -> Iterator[None]:
    yield
    grid.sql("SET memory_limit = off")


@pytest.mark.parametrize("shape", HOLDING)
def test_long_texts_are_counted(grid: Any, shape: str) -> None:
    named, sql = HOLDING[shape]
    grid.sql(f"SET memory_limit = '{LIMIT}'")
    with pytest.raises(SqlError, match=f"{named} needs more memory than the limit of 1 MB"):
        grid.sql(sql).fetchall()
    assert grid.sql("SELECT n FROM m WHERE id = 15").fetchall() == [(5,)]
    grid.sql("SET memory_limit = '1GB'")
    assert grid.sql(sql).to_arrow().num_rows > 0


@pytest.mark.parametrize("shape", SPILLING)
def test_long_texts_are_spilled(grid: Any, shape: str) -> None:
    sql = SPILLING[shape]
    expected = sorted(map(repr, grid.sql(sql).fetchall()))
    grid.sql(f"SET memory_limit = '{LIMIT}'")
    assert sorted(map(repr, grid.sql(sql).fetchall())) == expected
    assert "spilled: " in "".join(str(row[0]) for row in grid.sql(f"EXPLAIN ANALYZE {sql}"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t, COUNT(*) FROM m GROUP BY t",
        "SELECT MAX(t), MIN(t), ANY_VALUE(t) FROM m",
        "SELECT DISTINCT t FROM m",
        "SELECT COUNT(DISTINCT t), COUNT(DISTINCT n) FROM m",
        "SELECT n, STRING_AGG(id, ',') FROM m GROUP BY n",
        "SELECT id FROM m ORDER BY t, id",
    ],
)
def test_few_texts_need_little(grid: Any, sql: str) -> None:
    grid.sql(f"SET memory_limit = '{LIMIT}'")
    assert grid.sql(sql).to_arrow().num_rows > 0
