"""Queries that grow answer as DuckDB answers them, none of them in more than ten seconds, and all can be cancelled.

A round is one set of maps and twenty queries. Each query grows out of the one before; where DuckDB refuses a query, or
needs more than a second for it, the round goes on with another growth of the last good query. A query that has grown
for STEPS_OF_ONE steps is followed by a new, small one.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from tests.harness.databases import DuckDatabase
from tests.harness.generated import rows_of
from tests.harness.growing_queries import INDEXES, GrowingGenerator, contents, definitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

QUERIES_OF_ROUND = 20
STEPS_OF_ONE = 12
LARGEST_ANSWER = 5_000
SECONDS_OF_ORACLE = 1.0
SECONDS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one query: `fault` is empty where the answer was right and came in time."""

    query: str
    fault: str
    seconds: float


def comparable(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset; whole numbers are equal whatever their type."""
    return Counter(tuple(int(value) if isinstance(value, Decimal) else value for value in row) for row in rows)


def fill(grid: Any, oracle: DuckDatabase, random: Random) -> None:
    for statement in definitions():
        oracle.execute(statement, [])
        grid.sql(statement)
    for name, query in contents(random):
        oracle.load(name, query)
        grid.load(name, rows_of(query))
    for statement in INDEXES:
        grid.sql(statement)


def run_round(seed: int, queries: int = QUERIES_OF_ROUND) -> Iterator[Outcome]:
    random = Random(seed)
    oracle = DuckDatabase()
    with remuda.open(members=1 + 2 * (seed % 4 == 3)) as grid:
        fill(grid, oracle, random)
        grid.sql(f"SET timeout = {SECONDS}")
        for query, expected in grown_queries(random, oracle, queries):
            yield _outcome(grid, query, expected)
    oracle.close()


def grown_queries(random: Random, oracle: DuckDatabase, queries: int) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Queries that the oracle answers in time and in few rows, with these rows."""
    generator = GrowingGenerator(random)
    current, steps = generator.start(), 0
    while queries:
        grown = generator.grow(current)
        rows = _answer(oracle, grown)
        if rows is not None and len(rows) > LARGEST_ANSWER:
            grown = generator.bounded(grown)
            rows = _answer(oracle, grown)
        steps += 1
        if rows is not None:
            yield grown, rows
            queries -= 1
            current = grown
        if steps == STEPS_OF_ONE or rows == []:
            current, steps = generator.start(), 0


def _answer(oracle: DuckDatabase, query: str) -> list[tuple[Any, ...]] | None:
    try:
        return oracle.query_within(query, SECONDS_OF_ORACLE, LARGEST_ANSWER + 1)
    except duckdb.Error:
        return None  # some forms of correlation are not implemented there, and some sub-queries have several rows


def _outcome(grid: Any, query: str, rows: list[tuple[Any, ...]]) -> Outcome:
    expected = comparable(rows)
    fault = ""
    started = time.monotonic()
    try:
        found = comparable(tuple(row) for row in grid.sql(query))
        if found != expected:
            fault = f"wrong: {sum((found - expected).values())} too many, {sum((expected - found).values())} missing"
    except SqlError as error:
        fault = "too long" if error.code is ErrorCode.TIMEOUT else f"refused: {error.message}"
    seconds = time.monotonic() - started
    if not fault and seconds > SECONDS:
        fault = "too long"
    return Outcome(query, fault, seconds)


def check_round(seed: int, queries: int = QUERIES_OF_ROUND) -> None:
    for outcome in run_round(seed, queries):
        assert not outcome.fault, outcome


@pytest.mark.parametrize("seed", range(2))
def test_growing_queries(seed: int) -> None:
    check_round(seed, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_growing_queries(seed: int) -> None:
    check_round(seed)
