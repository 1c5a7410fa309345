"""Ordered index scans read no more than is asked for, and the right rows, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import remuda

ROWS = 20_000
LOGGED = 900


def value(id_: int) -> int | None:
    return None if id_ % 50 == 0 else id_ * 7919 % 10_007


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Two segments with hidden rows, and a log of several pieces."""
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, f BIGINT, g BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_f ON m (f, g) TYPE SORTED")
        half = ROWS // 2
        for first in (0, half):
            ids = range(first, first + half)
            opened.load("m", pa.table({"id": ids, "f": [value(id_) for id_ in ids], "g": [id_ % 3 for id_ in ids]}))
        opened.sql("DELETE FROM m WHERE id >= 2800 AND id < 3200")
        for first in range(ROWS, ROWS + LOGGED, 300):
            rows = [(id_, value(id_), id_ % 3) for id_ in range(first, first + 300)]
            opened.sql(f"INSERT INTO m VALUES {', '.join(map(str, rows)).replace('None', 'NULL')}")
        opened.sql("UPDATE m SET f = -1 WHERE id IN (5, 20001)")
        yield opened


@cache
def model() -> list[tuple[int, int | None, int]]:
    rows = [(id_, value(id_), id_ % 3) for id_ in range(ROWS + LOGGED) if not 2800 <= id_ < 3200]
    return [(id_, -1 if id_ in (5, 20001) else f, g) for id_, f, g in rows]


def lowest_first(f: int | None) -> tuple[bool, int]:
    return f is not None, f or 0


ORDERS = [
    ("TRUE", lambda *_: True),
    ("f IS NOT NULL", lambda f, _: f is not None),
    ("f > 300", lambda f, _: f is not None and f > 300),
    ("f BETWEEN 100 AND 9000", lambda f, _: f is not None and 100 <= f <= 9000),
    ("f < 20 OR f > 9990 OR f IS NULL", lambda f, _: f is None or f < 20 or f > 9990),
    ("f IN (-1, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)", lambda f, _: f in (-1, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)),
    ("f > 300 AND g = 1", lambda f, g: f is not None and f > 300 and g == 1),
    ("f > 20000", lambda *_: False),
]


@pytest.mark.parametrize("limit", [1, 10, 65, 1_500, None])
@pytest.mark.parametrize("direction", ["", " DESC"])
@pytest.mark.parametrize(("condition", "passes"), ORDERS, ids=[case[0] for case in ORDERS])
def test_the_first_rows_in_order(grid: Any, condition: str, passes: Any, direction: str, limit: int | None) -> None:
    text = f"SELECT f, id FROM m WHERE {condition} ORDER BY f{direction}"
    found = grid.sql(text if limit is None else f"{text} LIMIT {limit}").fetchall()
    rows = [(id_, f) for id_, f, g in model() if passes(f, g)]
    expected = sorted((f for _, f in rows), key=lowest_first, reverse=direction == " DESC")
    assert [row.f for row in found] == expected[:limit]
    assert len({row.id for row in found}) == len(found)
    assert {(row.id, row.f) for row in found} <= set(rows)


def entries_read(grid: Any, query: str) -> int:
    """The index entries that all index scans of a query read."""
    text = grid.explain(f"EXPLAIN ANALYZE {query}")
    return sum(int(part.split()[0]) for part in text.split("index entries=")[1:])


def test_an_extreme_reads_one_row_of_each_segment(grid: Any) -> None:
    sources = 3 * len(grid.cluster.members)
    assert entries_read(grid, "SELECT MIN(f) FROM m") == sources
    assert entries_read(grid, "SELECT MAX(f) FROM m") == sources
    if len(grid.cluster.members) == 1:  # Of three, two exchanges cost as much as a scan of so few rows.
        assert entries_read(grid, "SELECT MIN(f), MAX(f) FROM m") == 2 * sources
    assert tuple(*grid.sql("SELECT MIN(f), MAX(f) FROM m")) == (-1, 10_006)


def test_a_limit_stops_early(grid: Any) -> None:
    sources = 3 * len(grid.cluster.members)
    assert entries_read(grid, "SELECT f FROM m ORDER BY f LIMIT 10") == 10 * sources
    assert entries_read(grid, "SELECT f + 1 FROM m ORDER BY f DESC LIMIT 7 OFFSET 3") == 10 * sources


@pytest.mark.parametrize("direction", ["", " DESC"])
def test_a_log_that_grows_meanwhile_disturbs_no_reader(direction: str) -> None:
    """The next piece of the log begins where the last one ended, though entries were added on both sides of it."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, f BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX by_f ON m (f) TYPE SORTED")
        numbers = np.random.default_rng(4).permutation(2000)
        grid.sql("INSERT INTO m VALUES " + ", ".join(f"({id_}, {f * 10})" for id_, f in enumerate(numbers)))
        result = iter(grid.sql(f"SELECT f FROM m ORDER BY f{direction}"))
        found = [next(result).f]
        for step, row in enumerate(result):
            found.append(row.f)
            if step % 100 == 0:
                grid.sql("INSERT INTO m VALUES (?, ?), (?, ?)", 5000 + step, row.f + 5, 9000 + step, row.f - 5)
                grid.sql("DELETE FROM m WHERE f = ?", row.f + 10)
        assert found == sorted((number * 10 for number in range(2000)), reverse=direction == " DESC")
