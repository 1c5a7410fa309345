"""A union of index scans, or one scan of their map: which is run, and that both deliver the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import remuda
from tests.harness.generated import rows_of

ROWS = 20_000
CONTENTS = f"""
SELECT i AS id, CASE WHEN i % 1000 = 0 THEN 'rare' WHEN i % 3 = 0 THEN NULL ELSE 'common' END AS region,
       CASE WHEN i % 50 = 0 THEN NULL ELSE i % 7 END AS day, i AS amount FROM range({ROWS}) AS r(i)
"""
TEXT = "SELECT id FROM t WHERE (region = ? OR amount BETWEEN ? AND ? OR day = ?)"


@pytest.fixture(scope="module", params=[1, 3])
def grid(request: Any) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, region VARCHAR, day BIGINT, amount BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_region ON t (region) TYPE HASH")
        opened.sql("CREATE INDEX by_amount ON t (amount) TYPE SORTED")
        opened.sql("CREATE INDEX by_day ON t (day) TYPE HASH")
        opened.load("t", rows_of(CONTENTS))
        # Rows in the memtable, and hidden ones in the segment.
        opened.sql("UPDATE t SET region = 'late' WHERE id IN (1, 1000, 19999)")
        opened.sql("DELETE FROM t WHERE id = 2000")
        yield opened


def _rows() -> list[tuple[int, str | None, int | None, int]]:
    found = []
    for at in range(ROWS):
        region = "rare" if at % 1000 == 0 else None if at % 3 == 0 else "common"
        found.append((at, "late" if at in {1, 1000, 19999} else region, None if at % 50 == 0 else at % 7, at))
    return [row for row in found if row[0] != 2000]


def _union(grid: Any, text: str, *values: Any) -> dict[str, Any]:
    (found,) = grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", *values).fetchall()
    node: dict[str, Any] = json.loads(found[0])["plan"]
    while node["operator"] != "Union":
        (node,) = node["inputs"]
    return node


VALUES = [
    (("rare", 5, 9, 99), False),
    (("late", 0, -1, None), False),
    ((None, None, 5, 99), False),
    (("common", 5, 9, 99), True),
    (("rare", 0, ROWS, 99), True),
    # Every branch alone would be read by its index; all together have too many entries.
    (("common", 0, ROWS, 3), True),
]


@pytest.mark.parametrize(("values", "scans"), VALUES)
def test_the_entries_of_all_branches_decide(grid: Any, values: tuple[Any, ...], scans: bool) -> None:
    region, low, high, day = values
    expected = sorted(
        row[0]
        for row in _rows()
        if (region is not None and row[1] == region)
        or (low is not None and low <= row[3] <= high)
        or (day is not None and row[2] == day)
    )
    assert sorted(row.id for row in grid.sql(TEXT, *values)) == expected
    union = _union(grid, TEXT, *values)
    assert union["access"]["path"] == ("direct scan" if scans else "index")
    inputs_ran = [each for each in union["inputs"] if "actual" in each]
    assert bool(inputs_ran) is not scans
    decisions = union["actual"]["decisions"]
    assert any(each.startswith("full scan: ") for each in decisions) is scans


def test_what_every_branch_says_is_asked_as_well(grid: Any) -> None:
    text = "SELECT id FROM t WHERE (region = ? AND day < ?) OR (amount > ? AND day < ?)"
    for values in (("rare", 4, 19_990, 4), ("common", 4, 19_990, 4), ("common", 2, 10, 5)):
        region, least, amount, other = values
        expected = sorted(
            row[0]
            for row in _rows()
            if row[2] is not None and ((row[1] == region and row[2] < least) or (row[3] > amount and row[2] < other))
        )
        assert sorted(row.id for row in grid.sql(text, *values)) == expected


@pytest.mark.parametrize("values", [("rare", 19_000), ("common", 10)])
def test_statements_that_write_decide_as_well(grid: Any, values: tuple[Any, ...]) -> None:
    condition = "region = ? OR amount > ?"
    (found,) = grid.sql(f"SELECT COUNT(*) FROM t WHERE {condition}", *values).fetchall()
    assert grid.sql(f"UPDATE t SET day = day WHERE {condition}", *values).update_count == found[0]
