"""Random queries answer as DuckDB answers them, with one member and with three."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from tests.harness.databases import DuckDatabase
from tests.harness.random_queries import Generator, definitions

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_ANSWER = 3_000


def comparable(rows: Iterable[tuple[Any, ...]]) -> list[tuple[int | None, ...]]:
    """Whole numbers, whatever their type, in an order of their own."""
    return sorted((tuple(None if value is None else int(value) for value in row) for row in rows), key=repr)


def compare(seed: int, queries: int, members: int) -> None:
    random = Random(seed)
    oracle = DuckDatabase()
    compared = 0
    with remuda.open(members=members) as grid:
        for statement in definitions(random):
            oracle.execute(statement, [])
            grid.sql(statement)
        grid.sql("CREATE INDEX u_a ON u (a) TYPE SORTED")
        grid.sql("CREATE INDEX t_b ON t (b) TYPE HASH")
        generator = Generator(random)
        for _ in range(queries):
            query = generator.query()
            try:
                expected = comparable(oracle.query(query, []))
            except duckdb.Error:
                continue  # some forms of correlation are not implemented there
            if len(expected) <= LARGEST_ANSWER:
                assert comparable(tuple(row) for row in grid.sql(query)) == expected, query
                compared += 1
    oracle.close()
    assert compared > queries // 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("members", [1, 3])
def test_random_queries(seed: int, members: int) -> None:
    compare(seed, 25, members)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_queries(seed: int) -> None:
    compare(seed, 100, members=1 + seed % 3)
