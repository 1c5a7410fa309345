"""A widened column compared with values at and beyond the ends of its own type: the same rows with every index."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq, ge, gt, le, lt
from typing import Any

import pytest

import remuda
from remuda.catalog import IndexType

LOW, HIGH = -(2**15), 2**15 - 1
STORED = [LOW, LOW + 1, -1, 0, 1, HIGH - 1, HIGH, None]
ASKED = [-(2**63), LOW - 1, LOW, LOW + 1, 0, 1, HIGH - 1, HIGH, HIGH + 1, 2**63 - 1, None]
OPERATORS = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


@pytest.fixture(scope="module", params=list(IndexType.__members__))
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=2) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, f SMALLINT, PRIMARY KEY (id))")
        opened.sql(f"CREATE INDEX by_f ON m (f) TYPE {request.param}")
        opened.sql("CREATE TABLE keyed (f SMALLINT, id BIGINT, PRIMARY KEY (f))")
        for id_, value in enumerate(STORED):
            opened.sql("INSERT INTO m VALUES (?, ?)", id_, value)
            if value is not None:
                opened.sql("INSERT INTO keyed VALUES (?, ?)", value, id_)
        yield opened


@pytest.mark.parametrize("table", ["m", "keyed"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_column_widened(grid: Any, operator: str, table: str) -> None:
    for value in ASKED:
        expected = [f for f in STORED if None not in (f, value) and OPERATORS[operator](f, value)]
        for text in (
            f"SELECT f FROM {table} WHERE CAST(f AS BIGINT) {operator} ?",
            f"SELECT f FROM {table} WHERE f {operator} CAST(? AS BIGINT)",
        ):
            assert sorted(row.f for row in grid.sql(text, value)) == expected, (text, value)


@pytest.mark.parametrize("wide", ["DOUBLE", "DECIMAL(12, 2)", "DECIMAL(38, 5)"])
@pytest.mark.parametrize("table", ["m", "keyed"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_column_against_a_number_with_a_fraction(grid: Any, operator: str, table: str, wide: str) -> None:
    asked: list[Any] = [value for value in ASKED if value is None or abs(value) < 2**31]
    asked += [value + part for value in (LOW - 1, LOW, -1, 0, HIGH - 1, HIGH) for part in (0.25, 0.5)]
    if wide == "DOUBLE":
        asked += [float("inf"), float("-inf")]
    text = f"SELECT f FROM {table} WHERE f {operator} CAST(? AS {wide})"
    for value in asked:
        expected = [f for f in STORED if None not in (f, value) and OPERATORS[operator](f, value)]
        assert sorted(row.f for row in grid.sql(text, value)) == expected, (text, value)


def test_nan_is_above_every_number(grid: Any) -> None:
    for operator, count in (("=", 0), ("<", 7), ("<=", 7), (">", 0), (">=", 0)):
        found = grid.sql(f"SELECT f FROM m WHERE f {operator} CAST(? AS DOUBLE)", float("nan")).fetchall()
        assert len(found) == count, operator


def test_several_values(grid: Any) -> None:
    text = "SELECT f FROM m WHERE CAST(f AS BIGINT) IN (?, ?, 1, 40000)"
    assert sorted(row.f for row in grid.sql(text, HIGH + 1, HIGH)) == [1, HIGH]
    between = "SELECT f FROM m WHERE CAST(f AS BIGINT) BETWEEN ? AND ?"
    assert sorted(row.f for row in grid.sql(between, LOW - 5, 0)) == [LOW, LOW + 1, -1, 0]
    assert grid.sql(between, HIGH + 1, HIGH + 5).fetchall() == []


def test_the_index_is_used(grid: Any) -> None:
    plan = grid.explain("SELECT id FROM m WHERE CAST(f AS BIGINT) = ?")
    assert "IndexScan m using by_f" in plan
    assert "residual" not in plan
    for value in ("FLOOR(?)", "SQRT(?)", "CAST(? AS DECIMAL(12, 2))", "? / 2.0"):
        plan = grid.explain(f"SELECT id FROM m WHERE f = {value}")
        assert "IndexScan m using by_f" in plan, value
        assert "residual" not in plan
    assert "IndexScan m using by_f" in grid.explain("SELECT id FROM m WHERE f IN (FLOOR(?), 3)")
    assert "KeyLookup keyed" in grid.explain("SELECT id FROM keyed WHERE f = CAST(? AS BIGINT)")
