"""Queries that grow answer as DuckDB answers them, none in more than ten seconds of work, and all can be cancelled.

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
from threading import Thread
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.grid.shortcuts import shortcuts
from tests.harness.databases import DuckDatabase
from tests.harness.generated import rows_of
from tests.harness.growing_queries import INDEXES, GrowingGenerator, contents, definitions
from tests.runtime.quiet import PATIENCE, wait_until_quiet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

QUERIES_OF_ROUND = 20
STEPS_OF_ONE = 12
LARGEST_ANSWER = 5_000
SECONDS_OF_ORACLE = 1.0
SECONDS = 10.0
"""Processor time that a query may take, its planning included: a busy machine makes no query fail."""
LONGEST_WAIT = 120
"""The statement's timeout in seconds, for a query that would never end."""


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


def run_round(seed: int, count: int = QUERIES_OF_ROUND) -> Iterator[Outcome]:
    random = Random(seed)
    oracle = DuckDatabase()
    with remuda.open(members=1 + 2 * (seed % 4 == 3)) as grid:
        fill(grid, oracle, random)
        grid.sql(f"SET timeout = {LONGEST_WAIT}")
        for query, expected in grown_queries(random, oracle, count):
            yield _outcome(grid, query, expected)
    oracle.close()


def grown_queries(random: Random, oracle: DuckDatabase, count: int) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Queries that the oracle answers in time and in few rows, with these rows."""
    generator = GrowingGenerator(random)
    current, steps = generator.start(), 0
    while count:
        grown = generator.grow(current)
        rows = _answer(oracle, grown)
        if rows is not None and len(rows) > LARGEST_ANSWER:
            grown = generator.bounded(grown)
            rows = _answer(oracle, grown)
        steps += 1
        if rows is not None:
            yield grown, rows
            count -= 1
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
    started = time.process_time()
    try:
        found = comparable(tuple(row) for row in grid.sql(query))
        if found != expected:
            fault = f"wrong: {sum((found - expected).values())} too many, {sum((expected - found).values())} missing"
    except SqlError as error:
        fault = "too long" if error.code is ErrorCode.TIMEOUT else f"refused: {error.message}"
    seconds = time.process_time() - started
    if not fault and seconds > SECONDS:
        fault = "too long"
    return Outcome(query, fault, seconds)


def check_round(seed: int, count: int = QUERIES_OF_ROUND) -> None:
    for outcome in run_round(seed, count):
        assert not outcome.fault, outcome


def cancel_round(seed: int, count: int) -> int:
    """Cancel each query at a random moment of its run; return how many had not ended before."""
    random = Random(seed)
    oracle = DuckDatabase()
    cancelled = 0
    with remuda.open(members=1 + 2 * (seed % 4 == 3)) as grid:
        fill(grid, oracle, random)
        for query, expected in grown_queries(random, oracle, count):
            started = time.monotonic()
            assert comparable(tuple(row) for row in grid.sql(query)) == comparable(expected), query
            moment = random.random() * (time.monotonic() - started)
            cancelled += _cancel_after(grid, query, moment)
    oracle.close()
    return cancelled


def _cancel_after(grid: Any, query: str, seconds: float) -> bool:
    """Whether the query was cancelled. The reader's thread ends, and no other thread works for the query any more."""
    result = grid.sql(query)
    execution = result._execution
    outcome: list[Any] = []

    def read() -> None:
        try:
            outcome.append(result.fetchall())
        except SqlError as error:
            outcome.append(error.code)

    reader = Thread(target=read)
    reader.start()
    reader.join(seconds)
    result.close()
    reader.join(PATIENCE)
    assert not reader.is_alive(), query
    wait_until_quiet(grid, execution)
    assert outcome[0] is ErrorCode.CANCELLED_BY_USER or isinstance(outcome[0], list), query
    return outcome[0] is ErrorCode.CANCELLED_BY_USER


def test_growing_queries_can_be_cancelled() -> None:
    assert cancel_round(7, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_many_growing_queries_can_be_cancelled(seed: int) -> None:
    assert cancel_round(seed, QUERIES_OF_ROUND)


def test_planning_ends_when_the_time_of_the_statement_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a plan looks at the clock too: it is not carried to its end for a reader who has left."""
    searched: list[int] = []
    with remuda.open() as grid:
        for statement in definitions():
            grid.sql(statement)
        joins = " ".join(f"JOIN big AS b{number} ON b{number}.a = b{number - 1}.b" for number in range(1, 30))
        monkeypatch.setattr(shortcuts, "compile_shortcut", lambda *_: searched.append(1))
        grid.sql("SET timeout = 0.001")
        with pytest.raises(SqlError) as caught:
            grid.sql(f"SELECT COUNT(*) FROM big AS b0 {joins}")
        assert caught.value.code is ErrorCode.TIMEOUT
    assert not searched


@pytest.mark.parametrize("seed", range(2))
def test_growing_queries(seed: int) -> None:
    check_round(seed, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_growing_queries(seed: int) -> None:
    check_round(seed)
