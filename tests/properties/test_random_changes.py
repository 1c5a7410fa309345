"""After each random INSERT, UPDATE and DELETE the maps hold what DuckDB's tables hold, and say how much has changed."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pytest

import remuda
from tests.harness.databases import DuckDatabase
from tests.harness.random_changes import ChangeGenerator
from tests.harness.random_queries import MAPS, definitions, replicating


def rows_of(database: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in database(f"SELECT * FROM {name}")), key=repr)


def compare(seed: int, statements: int, members: int, *, replicated: bool = False) -> None:
    random = Random(seed)
    oracle = DuckDatabase()
    compared = 0
    with remuda.open(members=members) as grid:
        made = list(definitions(random))
        for statement in made:
            oracle.execute(statement, [])
        for statement in replicating(made, random) if replicated else made:
            grid.sql(statement)
        grid.sql("CREATE INDEX u_a ON u (a) TYPE SORTED")
        grid.sql("CREATE INDEX t_b ON t (b) TYPE HASH")
        generator = ChangeGenerator(random)
        for _ in range(statements):
            statement = generator.statement()
            try:
                oracle.execute(statement, [])
            except duckdb.Error:
                continue  # some forms of correlation are not implemented there
            grid.sql(statement)
            for name in MAPS:
                expected = rows_of(lambda sql: oracle.query(sql, []), name)
                assert rows_of(grid.sql, name) == expected, statement
            compared += 1
    oracle.close()
    assert compared > statements // 2


@pytest.mark.parametrize("seed", range(3))
def test_random_changes(seed: int) -> None:
    compare(seed, 25, 1 + seed)


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_of_replicated_maps(seed: int) -> None:
    compare(seed, 25, 3, replicated=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120, 130))
def test_many_random_changes_of_replicated_maps(seed: int) -> None:
    compare(seed, 80, 3, replicated=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 115))
def test_many_random_changes(seed: int) -> None:
    compare(seed, 80, 1 + seed % 3)
