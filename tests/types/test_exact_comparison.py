"""Comparisons of floating-point columns with whole numbers that no such number is: nothing is rounded away."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import remuda

LARGE = 2**53 + 1
"""The first whole number that is no DOUBLE; its neighbours are."""
OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.fixture(scope="module")
def grid() -> Iterator[remuda.Grid]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE numbers (id INTEGER, x DOUBLE, r REAL, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX numbers_x ON numbers (x) TYPE SORTED")
        rows = [(1, LARGE - 1, 2**24), (2, LARGE + 1, 2**24 + 2), (3, 0.1, 0.1), (4, None, None), (5, -1e300, -1e30)]
        for row in rows:
            grid.sql("INSERT INTO numbers VALUES (?, ?, ?)", *row)
        yield grid


def expected(column: str, comparison: str, value: Any, grid: remuda.Grid) -> list[int]:
    """By Python, whose comparison of int and float is exact."""
    rows = grid.sql(f"SELECT id, {column} FROM numbers").fetchall()
    return sorted(row[0] for row in rows if row[1] is not None and OPERATORS[comparison](row[1], value))


@pytest.mark.parametrize("comparison", OPERATORS)
@pytest.mark.parametrize(
    ("column", "value"), [("x", LARGE), ("x", -LARGE), ("x", 10**37), ("r", 2**24 + 1), ("r", 10**38 - 1), ("x", 5)]
)
def test_whole_numbers(grid: remuda.Grid, comparison: str, column: str, value: int) -> None:
    wanted = expected(column, comparison, value, grid)
    written = grid.sql(f"SELECT id FROM numbers WHERE {column} {comparison} {value}")
    assert sorted(row[0] for row in written) == wanted
    given = grid.sql(f"SELECT id FROM numbers WHERE {column} {comparison} ?", value)
    assert sorted(row[0] for row in given) == wanted
    excluded = grid.sql(f"SELECT id FROM numbers WHERE NOT ({column} {comparison} {value})")
    assert sorted([*wanted, *(row[0] for row in excluded)]) == [1, 2, 3, 5]


def test_a_fraction_is_the_nearest_number(grid: remuda.Grid) -> None:
    assert grid.sql("SELECT id FROM numbers WHERE x = 0.1").fetchall() == [(3,)]
    assert grid.sql("SELECT id FROM numbers WHERE x = ?", Decimal("0.1")).fetchall() == [(3,)]
    assert grid.sql("SELECT id FROM numbers WHERE r = 0.1").fetchall() == [(3,)]


def test_what_is_stored_is_rounded(grid: remuda.Grid) -> None:
    with remuda.open() as other:
        other.sql("CREATE TABLE t (id INTEGER, x DOUBLE, PRIMARY KEY (id))")
        other.sql("INSERT INTO t VALUES (1, ?), (2, 9007199254740993)", LARGE)
        assert other.sql("SELECT COUNT(*) FROM t WHERE x = 9007199254740992").fetchall() == [(2,)]


def test_in_and_between(grid: remuda.Grid) -> None:
    assert grid.sql(f"SELECT id FROM numbers WHERE x IN ({LARGE}, {LARGE - 1})").fetchall() == [(1,)]
    assert grid.sql(f"SELECT id FROM numbers WHERE x BETWEEN {LARGE} AND {LARGE + 1}").fetchall() == [(2,)]
