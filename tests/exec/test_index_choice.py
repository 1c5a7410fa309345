"""Which index an index scan reads, and what EXPLAIN ANALYZE says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import remuda
from remuda.exec.scan import index_scan, ordered_index_scan
from tests.harness.generated import rows_of

ROWS = 20_000
RARE, COMMON = 20, ROWS * 7 // 10
CONTENTS = f"""
SELECT i AS id, CASE WHEN i % {ROWS // RARE} = 0 THEN 'rare' WHEN i % 10 < 3 THEN 'r' || i % 10 ELSE 'common' END
       AS region, i AS amount, CASE WHEN i < 100 THEN NULL ELSE i % 7 END AS day FROM range({ROWS}) AS r(i)
"""
TEXT = "SELECT COUNT(day), SUM(amount) FROM t WHERE region = ? AND amount BETWEEN ? AND ?"


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE t (id BIGINT, region VARCHAR, amount BIGINT, day BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_region ON t (region) TYPE HASH")
        opened.sql('CREATE INDEX "by{amount}" ON t (amount) TYPE SORTED')
        opened.load("t", rows_of(CONTENTS))
        yield opened


def scan_of(grid: Any, text: str, *values: Any) -> dict[str, Any]:
    """Return the index scan of an analysed plan."""
    (found,) = grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", *values).fetchall()
    node: dict[str, Any] = json.loads(found[0])["plan"]
    while node["operator"] != "IndexScan":
        (node,) = node["inputs"]
    return node


CHOICES = [
    # The index of the plan has few entries: the other one is not asked.
    (("rare", 0, ROWS), "by_region", RARE, []),
    (("absent", 0, ROWS), "by_region", 0, []),
    ((None, 0, ROWS), "by_region", 0, []),
    (("common", 500, 700), "by{amount}", 201, [f"index by{{amount}}: 201 entries, by_region {COMMON}"]),
    (("common", 700, 500), "by{amount}", 0, [f"index by{{amount}}: 0 entries, by_region {COMMON}"]),
    (("common", None, 500), "by{amount}", 0, [f"index by{{amount}}: 0 entries, by_region {COMMON}"]),
    (("common", 0, ROWS - 1000), None, COMMON, [f"full scan: {COMMON} entries"]),
]


@pytest.mark.parametrize(("values", "index", "entries", "decisions"), CHOICES)
def test_the_index_with_the_fewest_entries_is_read(
    grid: Any, values: tuple[Any, ...], index: str | None, entries: int, decisions: list[str]
) -> None:
    scan = scan_of(grid, TEXT, *values)
    path = {"path": "direct scan"} if index is None else {"path": "index", "index": index}
    assert scan["candidates"] == [{"index": "by{amount}", "type": "SORTED"}]
    assert scan["access"] == path | {"entries": entries}
    assert scan["actual"]["decisions"] == decisions
    assert scan["actual"]["index_entries"] == (0 if index is None else entries)


def test_a_shortcut_chooses_as_well(grid: Any) -> None:
    text = "SELECT id FROM t WHERE region = ? AND amount BETWEEN ? AND ?"
    # The third has more entries than are counted by reading them, in either index, the last more than are few.
    for values in (("rare", 0, ROWS), ("common", 500, 510), ("common", 1, 900), ("common", 9, 1), ("common", 1, 9000)):
        region, low, high = values
        expected = [at for at in range(max(low, 0), min(high + 1, ROWS)) if _region(at) == region]
        assert sorted(row.id for row in grid.sql(text, *values)) == expected


def _region(number: int) -> str:
    if number % (ROWS // RARE) == 0:
        return "rare"
    return f"r{number % 10}" if number % 10 < 3 else "common"


def test_a_candidate_that_is_dropped_makes_the_plan_stale(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_scan, "LARGEST_CHUNK", 32)
    grid.sql("CREATE INDEX by_day ON t (day) TYPE SORTED")
    text = "SELECT id FROM t WHERE region = ? AND day BETWEEN ? AND ? AND id > 0"
    assert "candidate by_day" in grid.explain(text)
    before = len(grid.sql(text, "common", 5, 5).fetchall())
    running = grid.sql(text, "r2", 0, 9)
    running.fetchone()
    grid.sql("DROP INDEX by_day")
    assert "candidate" not in grid.explain(text)
    assert len(grid.sql(text, "common", 5, 5).fetchall()) == before
    with pytest.raises(remuda.SqlError, match="by_day was dropped"):
        running.fetchall()


FIRST = "SELECT id FROM t WHERE region = ? ORDER BY amount DESC LIMIT "
ORDERS = [
    # Of the rare rows all are read and sorted; of the common ones ten are soon found in order.
    (FIRST + "10", ("rare",), "by_region", RARE, "index by_region and a sort: 20 entries, 10000 expected in order"),
    (FIRST + "10", ("absent",), "by_region", 0, "index by_region and a sort: 0 entries, 10443 expected in order"),
    (FIRST + "10", (None,), "by_region", 0, "index by_region and a sort: 0 entries, 10443 expected in order"),
    (FIRST + "10", ("common",), "by{amount}", 14, f"in order: 14 entries expected, by_region {COMMON}"),
    # How many rows are wanted is a parameter as well.
    (FIRST + "?", ("r1", 10), "by{amount}", 100, "in order: 100 entries expected, by_region 2000"),
    (FIRST + "?", ("r1", 3000), "by_region", 2000, "index by_region and a sort: 2000 entries, 10443 expected in order"),
]


@pytest.mark.parametrize(("text", "values", "index", "entries", "decision"), ORDERS)
def test_few_entries_of_another_index_are_sorted(
    grid: Any, text: str, values: tuple[Any, ...], index: str, entries: int, decision: str
) -> None:
    scan = scan_of(grid, text, *values)
    assert scan["access"] == {"path": "index", "index": index, "entries": entries, "sorts": index == "by_region"}
    assert scan["actual"]["decisions"] == [decision]
    expected = [at for at in range(ROWS) if _region(at) == values[0]][::-1]
    assert [row.id for row in grid.sql(text, *values)] == expected[: values[-1] if len(values) > 1 else 10]


@pytest.mark.parametrize("limit", [None, -1])
def test_a_limit_that_is_no_number_of_rows_is_left_to_the_execution(grid: Any, limit: int | None) -> None:
    assert "by_region and a sort, 20 entries" in " ".join(grid.explain(FIRST + "?", "rare", limit).split())
    with pytest.raises(remuda.SqlError, match="LIMIT must not be"):
        grid.sql(FIRST + "?", "rare", limit)


def test_a_sort_of_entries_is_held_within_the_memory_limit(grid: Any) -> None:
    text = "SELECT id, amount FROM t WHERE region = ? ORDER BY amount"
    expected = grid.sql(text, "r1").fetchall()
    for limit, decision in (("50kB", "in order: no memory for a sort"), ("1MB", "index by_region and a sort")):
        with grid.session() as session:
            session.sql(f"SET memory_limit = '{limit}'")
            assert session.sql(text, "r1").fetchall() == expected
            assert decision in scan_of(session, text, "r1")["actual"]["decisions"][0]


@pytest.mark.parametrize("order", ["", " ORDER BY amount"])
@pytest.mark.parametrize("region", ["r1", "common"])
def test_rows_are_those_of_the_snapshot(order: str, region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever index is read: it is counted and read at one snapshot, and writes go on meanwhile."""
    for module in (index_scan, ordered_index_scan):
        monkeypatch.setattr(module, "LARGEST_CHUNK", 32)
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, region VARCHAR, amount BIGINT, day BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX by_region ON t (region) TYPE HASH")
        grid.sql("CREATE INDEX by_amount ON t (amount) TYPE SORTED")
        grid.load("t", rows_of(CONTENTS))
        grid.sql("DELETE FROM t WHERE id % 9 = 4")
        grid.sql("INSERT INTO t VALUES (4, 'common', 4, 1), (31, 'r1', 31, 1) ON CONFLICT DO NOTHING")
        text = f"SELECT id FROM t WHERE region = ? AND amount BETWEEN ? AND ?{order}"
        before = sorted(row.id for row in grid.sql("SELECT id FROM t WHERE region = ? AND amount < 9000", region))
        assert "candidate" in grid.explain(text)
        running = grid.sql(text, region, 0, 8_999)
        first = running.fetchone()
        grid.sql("UPDATE t SET region = 'moved', amount = amount + 20000 WHERE id % 2 = 0")
        grid.sql("DELETE FROM t WHERE id % 5 = 1")
        grid.sql("INSERT INTO t VALUES (-1, 'common', 5, 1), (-2, 'r1', 5, 1)")
        grid.sql("CHECKPOINT")
        found = [first.id, *(row.id for row in running)]
        assert (found if order else sorted(found)) == before
