"""Random queries answer as DuckDB answers them, with one member and with three; and on Spark as they do here."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from remuda.errors import SqlError
from tests.harness.databases import DuckDatabase
from tests.harness.random_queries import Generator, definitions, replicating
from tests.harness.shuffled import exchanges, shuffles_for_nothing
from tests.harness.wider_queries import WiderGenerator

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

LARGEST_ANSWER = 3_000


def comparable(rows: Iterable[tuple[Any, ...]]) -> list[tuple[int | None, ...]]:
    """Whole numbers, whatever their type, in an order of their own."""
    return sorted((tuple(None if value is None else int(value) for value in row) for row in rows), key=repr)


def compare(
    seed: int, queries: int, members: int, kind: type[Generator] = Generator, *, replicated: bool = False
) -> None:
    random = Random(seed)
    oracle = DuckDatabase()
    compared = 0
    with remuda.open(members=members) as grid:
        statements = list(definitions(random))
        for statement in statements:
            oracle.execute(statement, [])
        for statement in replicating(statements, random) if replicated else statements:
            grid.sql(statement)
        grid.sql("CREATE INDEX u_a ON u (a) TYPE SORTED")
        grid.sql("CREATE INDEX t_b ON t (b) TYPE HASH")
        generator = kind(random)
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


@pytest.mark.parametrize("seed", range(3))
def test_wider_random_queries(seed: int) -> None:
    compare(seed, 25, 1 + seed, WiderGenerator)


@pytest.mark.parametrize("seed", range(3))
def test_random_queries_over_replicated_maps(seed: int) -> None:
    compare(seed, 25, 3, (Generator, WiderGenerator)[seed % 2], replicated=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(140, 160))
def test_many_random_queries_over_replicated_maps(seed: int) -> None:
    compare(seed, 100, 2 + seed % 2, (Generator, WiderGenerator)[seed // 2 % 2], replicated=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120, 140))
def test_many_wider_random_queries(seed: int) -> None:
    compare(seed, 100, 1 + seed % 3, WiderGenerator)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_queries(seed: int) -> None:
    compare(seed, 100, members=1 + seed % 3)


def answer(grid: Any, engine: str, query: str) -> list[tuple[Any, ...]] | str:
    """Sorted rows, or what was wrong."""
    grid.sql(f"SET engine = {engine}")
    try:
        return sorted((tuple(row) for row in grid.sql(query)), key=repr)
    except SqlError as error:
        return error.message


def compare_on_spark(spark: SparkSession, folder: Path, seed: int, queries: int, *, shuffled: bool) -> None:
    random = Random(seed)
    exchanged = 0
    with shuffles_for_nothing() if shuffled else nullcontext(), remuda.open(folder, spark=spark) as grid:
        for statement in definitions(random):
            grid.sql(statement)
        grid.sql("CREATE INDEX u_a ON u (a) TYPE SORTED")
        grid.sql("CREATE INDEX t_b ON t (b) TYPE HASH")
        generator = Generator(random)
        for _ in range(queries):
            query = generator.query()
            expected = answer(grid, "local", query)
            if len(expected) <= LARGEST_ANSWER:
                assert answer(grid, "spark", query) == expected, query
                exchanged += bool(exchanges(grid, query))
    assert not shuffled or exchanged > queries // 3


def test_random_queries_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    compare_on_spark(spark, tmp_path / "grid.remuda", 1, 12, shuffled=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 206))
def test_many_random_queries_on_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    compare_on_spark(spark, tmp_path / "grid.remuda", seed, 60, shuffled=seed % 3 > 0)
