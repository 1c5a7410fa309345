"""What bounds are worth once the parameters are known: nothing is read for nothing, and each row comes once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import remuda
from tests.harness.generated import rows_of

ROWS = """
SELECT i AS id, CASE WHEN i % 9 = 0 THEN NULL ELSE i % 1000 END AS f, i % 700 AS g FROM range(20000) AS r(i)
"""


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, f BIGINT, g BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_f ON m (f) TYPE SORTED")
        opened.sql("CREATE INDEX by_g ON m (g) TYPE HASH")
        opened.load("m", rows_of(ROWS))
        opened.sql("INSERT INTO m VALUES (-1, 5, 5), (-2, NULL, NULL)")
        yield opened


def leaves(grid: Any, query: str, *values: Any) -> list[dict[str, Any]]:
    (only,) = grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", *values)
    pending, found = [json.loads(only[0])["plan"]], []
    while pending:
        node = pending.pop()
        pending.extend(node["inputs"])
        if not node["inputs"]:
            found.append(node)
    return found


NOTHING = [
    ("f = ?", (None,), "IndexScan"),
    ("g = ?", (None,), "IndexScan"),
    ("f IN (?, ?)", (None, None), "IndexScan"),
    ("f > ? AND f < 7", (None,), "IndexScan"),
    ("f BETWEEN ? AND ?", (9, 3), "IndexScan"),
    ("f > ? AND f < ?", (5, 5), "IndexScan"),
    ("f >= ? AND f < ?", (5, 5), "IndexScan"),
    ("(f > ? AND f < ?) OR f = ?", (9, 3, None), "IndexScan"),
    ("id = ?", (None,), "KeyLookup"),
    ("id IN (?, ?) AND g = 5", (None, None), "KeyLookup"),
    ("id BETWEEN ? AND ?", (8, 5), "MapScan"),
    ("id BETWEEN ? AND ?", (None, 5), "MapScan"),
]


@pytest.mark.parametrize(("condition", "values", "operator"), NOTHING, ids=[f"{c[0]} {c[1]}" for c in NOTHING])
def test_bounds_that_nothing_can_meet_touch_no_data(
    grid: Any, condition: str, values: tuple[Any, ...], operator: str
) -> None:
    query = f"SELECT id FROM m WHERE {condition}"
    assert grid.sql(query, *values).fetchall() == []
    (leaf,) = leaves(grid, query, *values)
    assert leaf["operator"] == operator
    actual = leaf.get("actual", {})
    assert not actual.get("index_entries")
    assert not actual.get("rows_read")


@pytest.mark.parametrize("condition", ["f = 1 AND f = 2", "g = 1 AND g = 2", "id = 1 AND id = 2", "f > 5 AND f < 3"])
def test_a_contradiction_gives_no_rows(grid: Any, condition: str) -> None:
    assert grid.sql(f"SELECT id FROM m WHERE {condition}").fetchall() == []


ONCE = [
    ("f IN (5, ?, 5, ?)", (5, 6), "f IN (5, 6)"),
    ("f = ? OR f = 5", (5,), "f IN (5)"),
    ("f < ? OR f < 7 OR f BETWEEN 3 AND 9", (5,), "f <= 9"),
    ("f BETWEEN 1 AND ? OR f BETWEEN 3 AND 8", (5,), "f BETWEEN 1 AND 8"),
    ("f <= ? OR f >= 5", (5,), "f IS NOT NULL"),
    ("f IS NULL OR f = ? OR f IS NULL", (5,), "f IS NULL OR f = 5"),
    ("g IN (5, ?)", (5,), "g = 5"),
    ("f = ? OR g = 5", (5,), "f = 5 OR g = 5"),
    ("id IN (?, 7) OR id = 7", (7,), "id = 7"),
]


@pytest.mark.parametrize(("condition", "values", "same"), ONCE, ids=[case[0] for case in ONCE])
def test_branches_that_overlap_give_each_row_once(
    grid: Any, condition: str, values: tuple[Any, ...], same: str
) -> None:
    found = [row.id for row in grid.sql(f"SELECT id FROM m WHERE {condition}", *values)]
    # Arithmetic on the column keeps every index away.
    plain = same.replace("f ", "f + 0 ").replace("g ", "g + 0 ").replace("id ", "id + 0 ")
    assert sorted(found) == sorted(row.id for row in grid.sql(f"SELECT id FROM m WHERE {plain}"))
    assert len(set(found)) == len(found)


EXACT = [
    ("f = ?", 1.5, 0),
    ("f > ?", 997.5, len([i for i in range(20000) if i % 9 and i % 1000 > 997])),
    ("f >= ?", 998.0, len([i for i in range(20000) if i % 9 and i % 1000 >= 998])),
    ("f < ?", 2**70, None),
    ("f > ?", 2**70, 0),
    ("f = ?", 2**70, 0),
    ("f > ?", -(2**70), None),
    ("id = ?", 1.5, 0),
    ("g = ?", 5.0, 30),
]


@pytest.mark.parametrize(("condition", "value", "count"), EXACT, ids=[f"{c[0]} {c[1]}" for c in EXACT])
def test_a_value_that_the_type_cannot_hold_is_compared_exactly(
    grid: Any, condition: str, value: Any, count: int | None
) -> None:
    everything = len(grid.sql("SELECT id FROM m WHERE f IS NOT NULL").fetchall())
    found = len(grid.sql(f"SELECT id FROM m WHERE {condition}", value).fetchall())
    assert found == (everything if count is None else count)


@pytest.mark.parametrize("column", ["c", "CAST(c AS VARCHAR)"])
def test_two_index_scans_with_one_filter_that_become_direct_scans(column: str) -> None:
    """The scans of a ROLLUP share the filter and read different columns: neither may use the code of the other."""
    numbers = "SELECT i AS id, i % 1000 AS a, 1 AS b, 100 + i % 3 AS c FROM range(20000) AS r(i)"
    with remuda.open() as opened:
        kind = "VARCHAR" if "VARCHAR" in column else "INTEGER"
        opened.sql(f"CREATE TABLE t (id BIGINT, a INTEGER, b INTEGER, c {kind}, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX t_a ON t (a) TYPE SORTED")
        opened.load("t", rows_of(f"SELECT id, a, b, {column} AS c FROM ({numbers})"))
        query = "SELECT c, SUM(b) FROM t WHERE a > ? GROUP BY ROLLUP (c)"
        assert opened.explain(query).count("direct scan above") == 2
        for bound in (990, 10, 990, 10):
            found = dict(map(tuple, opened.sql(query, bound)))
            assert len(found) == 4
            assert found[None] == (999 - bound) * 20
            assert sum(count for key, count in found.items() if key is not None) == found[None]
