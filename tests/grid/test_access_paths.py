"""Answers by every access path: over segments and a write log, on one member and on three, as without an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from tests.harness.generated import rows_of

ROWS = """
SELECT i AS id, CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 37) % 101 END AS f, i % 5 AS g,
       CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 13) % 17 END AS a, (i * 7) % 23 AS b,
       CASE WHEN i % 13 = 0 THEN NULL ELSE
         substr('abcde', (i % 5) :: INT + 1, 1) || substr('abc', (i % 3) :: INT + 1, 1) || i END AS s
FROM range(4000) AS r(i)
"""
DEFINITION = "(id BIGINT, f BIGINT, g BIGINT, a BIGINT, b BIGINT, s VARCHAR, PRIMARY KEY (id))"
INDEXES = ["f (f) TYPE SORTED", "g (g) TYPE HASH", "ab (a, b) TYPE SORTED", "s (s) TYPE SORTED"]


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    """`indexed` and `plain` have the same rows: two segments and some recent writes."""
    table: pa.Table = rows_of(ROWS)
    with remuda.open(members=request.param) as opened:
        for name in ("indexed", "plain"):
            opened.sql(f"CREATE TABLE {name} {DEFINITION}")
            for index in INDEXES if name == "indexed" else ():
                on, rest = index.split(" ", 1)
                opened.sql(f"CREATE INDEX by_{on} ON {name} {rest}")
            opened.load(name, table.slice(0, 2500))
            opened.load(name, table.slice(2500))
            opened.sql(f"INSERT INTO {name} VALUES (5000, -5, 1, 3, 4, 'zz'), (5001, NULL, 1, NULL, 4, NULL)")
            opened.sql(f"DELETE FROM {name} WHERE id BETWEEN 100 AND 120")
            opened.sql(f"UPDATE {name} SET f = 1000, s = 'ab' WHERE id = 130")
        yield opened


QUERIES = [
    # Unions of ranges, prefixes.
    "SELECT id FROM {} WHERE f < 3 OR f > 98",
    "SELECT id FROM {} WHERE f < 3 OR (f > 5 AND f <= 7) OR f = 6 OR f IS NULL AND g = 1",
    "SELECT id FROM {} WHERE f < 3 OR f IS NULL",
    "SELECT id FROM {} WHERE f NOT BETWEEN 3 AND 98",
    "SELECT id FROM {} WHERE s LIKE 'aa1%'",
    "SELECT id FROM {} WHERE s LIKE 'aa1%5'",
    "SELECT id FROM {} WHERE s LIKE 'ab' OR s > 'zy'",
    # Several indexes.
    "SELECT id FROM {} WHERE f = 1 OR a = 2",
    "SELECT id FROM {} WHERE f = 1 OR a = 2 OR id = 17",
    "SELECT id FROM {} WHERE (a = 1 AND b = 2) OR a = 3",
    "SELECT id FROM {} WHERE (f = 1 OR a = 2) AND b > 5",
    # Extremes and counts.
    "SELECT MIN(f), MAX(f) FROM {}",
    "SELECT MAX(f), MIN(a), MAX(a) FROM {}",
    "SELECT MIN(b), MAX(b) FROM {} WHERE a = 4",
    "SELECT MIN(f) FROM {} WHERE f > 5000",
    "SELECT MIN(s), MAX(s) FROM {}",
    "SELECT COUNT(*) FROM {} WHERE f BETWEEN 3 AND 7",
    "SELECT COUNT(*) FROM {} WHERE f IS NULL",
    "SELECT COUNT(*), COUNT(*) FROM {} WHERE a = 3 AND b IN (1, 2, 3)",
    "SELECT COUNT(*) FROM {} WHERE f = 5 AND f = 6",
    "SELECT COUNT(*) FROM {} WHERE s LIKE 'aa%'",
    # Orders.
    "SELECT f, id FROM {} ORDER BY f NULLS LAST, id LIMIT 4000",
    "SELECT f FROM {} ORDER BY f NULLS LAST",
    "SELECT f FROM {} ORDER BY f DESC NULLS FIRST",
    "SELECT f FROM {} ORDER BY f NULLS LAST LIMIT 30",
    "SELECT f FROM {} ORDER BY f DESC NULLS FIRST LIMIT 700",
    "SELECT b FROM {} WHERE a = 3 ORDER BY b DESC NULLS FIRST LIMIT 10",
    "SELECT a, b FROM {} ORDER BY a NULLS LAST, b LIMIT 3000",
    "SELECT a FROM {} WHERE a > 3 ORDER BY a NULLS LAST LIMIT 20",
]


@pytest.mark.parametrize("query", QUERIES)
def test_an_index_changes_no_answer(query: str, grid: Any) -> None:
    ordered = "ORDER BY" in query
    found, expected = ([tuple(row) for row in grid.sql(query.format(name))] for name in ("indexed", "plain"))
    assert found == expected if ordered else sorted(found, key=repr) == sorted(expected, key=repr)


PARAMETERS = [
    ("SELECT id FROM {} WHERE s LIKE ?", ("aa1%",)),
    ("SELECT id FROM {} WHERE s LIKE ?", ("%5",)),
    ("SELECT id FROM {} WHERE s LIKE ?", ("ab",)),
    ("SELECT id FROM {} WHERE s LIKE ?", (None,)),
    ("SELECT id FROM {} WHERE f < ? OR f > ?", (3, 98)),
    ("SELECT id FROM {} WHERE f < ? OR f > ?", (98, 3)),
    ("SELECT id FROM {} WHERE f < ? OR f > ?", (None, 98)),
    ("SELECT COUNT(*) FROM {} WHERE f = ?", (None,)),
    ("SELECT COUNT(*) FROM {} WHERE f BETWEEN ? AND ?", (9, 3)),
    ("SELECT id FROM {} WHERE f = ? OR a = ?", (1, None)),
]


@pytest.mark.parametrize(("query", "values"), PARAMETERS)
def test_nor_with_parameters(query: str, values: tuple[Any, ...], grid: Any) -> None:
    found, expected = (sorted(map(tuple, grid.sql(query.format(name), *values))) for name in ("indexed", "plain"))
    assert found == expected


def test_a_count_reads_no_row(grid: Any) -> None:
    (plan,) = [grid.explain("SELECT COUNT(*) FROM indexed WHERE f BETWEEN 3 AND 7")]
    assert "IndexCount" in plan


def test_an_extreme_reads_a_row_of_each_segment(grid: Any) -> None:
    lines = grid.explain("EXPLAIN ANALYZE SELECT MIN(f) FROM indexed").splitlines()
    (scan,) = [place for place, line in enumerate(lines) if "IndexScan" in line]
    (actual,) = [line for line in lines[scan:] if "actual" in line][:1]
    entries = int(actual.partition("index entries=")[2].split()[0])
    assert entries < 200
