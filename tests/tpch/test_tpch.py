"""The 22 queries of TPC-H: each has a checked plan and DuckDB's answer, on one member and on three."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import remuda
from tests.harness.benchmark_answers import same_rows
from tests.harness.plan_trace import explain_with_trace
from tests.tpch.tpch import QUERIES, TABLES, create_tables, generate, load

SCALE = 0.01


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tpch")
    generate(made, SCALE)
    return made


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for table in TABLES:
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{folder / table}.parquet'")
        yield connection


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def grid(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        create_tables(opened)
        load(opened, folder)
        yield opened


@pytest.mark.parametrize("number", QUERIES)
def test_answer(number: int, grid: Any, oracle: duckdb.DuckDBPyConnection) -> None:
    expected = oracle.execute(QUERIES[number]).fetchall()
    found = [tuple(row) for row in grid.sql(QUERIES[number])]
    assert same_rows(found, expected)


@pytest.mark.parametrize("number", QUERIES)
def test_plan(number: int, grid: Any) -> None:
    """Every step is checked; and a join without a condition never has to be done."""
    plan, fired = explain_with_trace(grid, QUERIES[number])
    assert plan.startswith("Root")
    assert fired
    products = [line for line in plan.splitlines() if "NestedLoopJoin INNER" in line]
    assert len(products) == PRODUCTS.get(number, 0), plan


PRODUCTS = {11: 1, 15: 0, 22: 1}
"""Comparisons with a scalar sub-query that depends on nothing: one row on one side."""
