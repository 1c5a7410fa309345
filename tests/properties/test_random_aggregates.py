"""Aggregates that depend on an order answer as DuckDB's do, in many groupings, with one member and with three."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import duckdb
import pytest

import remuda
from tests.harness.databases import DuckDatabase
from tests.harness.random_aggregates import AggregateGenerator, definitions


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """The rows in an order of their own; DOUBLEs with the digits that do not depend on how they were added up."""
    return sorted(tuple(_shown(value) for value in row) for row in rows)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{0.0 if math.isclose(value, 0.0, abs_tol=1e-12) else value:.9g}"
    return repr(value)


def compare(seed: int, queries: int, members: int) -> int:
    """The number of queries that both answered."""
    random = Random(seed)
    oracle = DuckDatabase()
    compared = 0
    with remuda.open(members=members) as grid:
        for statement in definitions(random):
            oracle.execute(statement, [])
            grid.sql(statement)
        generator = AggregateGenerator(random)
        for _ in range(queries):
            query = generator.query()
            try:
                expected = comparable(oracle.query(query, []))
            except duckdb.Error:
                continue
            assert comparable([tuple(row) for row in grid.sql(query)]) == expected, query
            compared += 1
    oracle.close()
    return compared


@pytest.mark.parametrize("members", [1, 3])
def test_random_aggregates(members: int) -> None:
    assert compare(members, 60, members) > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 115))
def test_many_random_aggregates(seed: int) -> None:
    assert compare(seed, 200, 1 + 2 * (seed % 2)) > 130
