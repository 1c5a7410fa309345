"""Random aggregates, windows and limits over joins of all kinds answer as DuckDB answers them.

Plans are made by cost, and by chance: then the trees of explore rules are taken wherever there is one.
"""

from __future__ import annotations

from contextlib import nullcontext
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from tests.harness.databases import DuckDatabase
from tests.harness.generated import rows_of
from tests.harness.outer_join_queries import INDEXES, OuterJoinGenerator, any_plan, definitions
from tests.harness.plan_trace import explain_with_trace

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_ANSWER = 30_000


def comparable(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Numbers of one type, in an order of their own."""
    plain = (
        tuple(value if value is None or isinstance(value, str | bool) else float(value) for value in row)
        for row in rows
    )
    return sorted(plain, key=repr)


def compare(seed: int, queries: int) -> None:
    """One member or three, with indexes or without, by cost or by chance."""
    random = Random(seed)
    oracle = DuckDatabase()
    compared = 0
    planned = any_plan(Random(seed)) if seed % 3 else nullcontext()
    with planned, remuda.open(members=1 + 2 * (seed % 2)) as grid:
        for name, statement, rows in definitions(random):
            oracle.execute(statement, [])
            grid.sql(statement)
            oracle.load(name, rows)
            grid.load(name, rows_of(rows))
        for statement in INDEXES if seed % 4 < 2 else ():
            grid.sql(statement)
        generator = OuterJoinGenerator(random)
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


@pytest.mark.parametrize("seed", [0, 3, 7, 8, 13, 40])
def test_random_outer_joins(seed: int) -> None:
    """The last four find an aggregate below a join that knows nothing of rows without a match."""
    compare(seed, 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_120))
def test_many_random_outer_joins(seed: int) -> None:
    compare(seed, 60)


def test_plans_by_chance_aggregate_below_joins() -> None:
    """The queries mean something only where the rules that they are about are used."""
    fired: set[str] = set()
    random = Random(7)
    with any_plan(Random(7)), remuda.open() as grid:
        for name, statement, rows in definitions(random):
            grid.sql(statement)
            grid.load(name, rows_of(rows))
        generator = OuterJoinGenerator(random)
        for _ in range(60):
            fired |= explain_with_trace(grid, generator.query())[1]
    assert {"aggregate_below_join", "explore_join_orders", "aggregate_distinct_in_two_steps"} <= fired
