"""The first rows of an order are DuckDB's, for every index, filter, join and offset, whatever is decided meanwhile."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import remuda
from tests.harness.databases import DuckDatabase
from tests.harness.decisions import Profile, forced
from tests.harness.first_rows_queries import FirstRowsQueries, contents, definitions
from tests.harness.generated import rows_of
from tests.harness.plan_trace import explain_with_trace

CUTOVER = "optimizer.cost.filter_cutover"
SORTED, FEW = "optimizer.cost.sort_rule", "exec.scan.index_choice.FEW_ROWS"
PROFILES: tuple[Profile, ...] = (
    {SORTED: 0},
    {CUTOVER: 0, SORTED: 0},
    {CUTOVER: 1, "exec.scan.ordered_residual.ROWS_AT_ONCE": 1},
    {SORTED: 2, FEW: 0},
)


def compare(seed: int, queries: int, members: int, profile: Profile | None = None) -> Counter[str]:
    """Compare so many queries; return how often plans with a row goal had what is noted below."""
    random = Random(seed)
    generator, oracle = FirstRowsQueries(random), DuckDatabase()
    used: Counter[str] = Counter()
    with forced(random.choice(PROFILES) if profile is None else profile), remuda.open(members=members) as grid:
        grid.sql("SET timeout = 60")
        for statement in definitions(random):
            grid.sql(statement)
            if statement.startswith("CREATE TABLE"):
                oracle.execute(statement.partition(" PARTITION BY")[0], [])
        for name, query in contents(random):
            oracle.load(name, query)
            grid.load(name, rows_of(query))
        for number in range(queries):
            if number % 10 == 5:
                _change(grid, oracle, random)
            text, values = generator.query()
            expected = [tuple(row) for row in oracle.query(text, values)]
            found = [tuple(row) for row in grid.sql(text, *values)]
            assert found == expected, (seed, members, text, values)
            used.update(_noted(grid, text))
    oracle.close()
    return used


def _change(grid: remuda.Grid, oracle: DuckDatabase, random: Random) -> None:
    """Leave rows in the log, and hidden ones in the segment."""
    first = random.randint(0, 5_000)
    for statement in (
        f"DELETE FROM t WHERE id BETWEEN {first} AND {first + 40}",
        f"UPDATE t SET a = a + 1, x = x + 0.25, d = 0 WHERE id BETWEEN {first + 100} AND {first + 160}",
    ):
        grid.sql(statement)
        oracle.execute(statement, [])


def _noted(grid: remuda.Grid, text: str) -> set[str]:
    """Return which notes of a scan under a row goal the plan has."""
    plan, _ = explain_with_trace(grid, text)
    notes = ("first rows:", "filter in one pass", "HashJoin", "LookupJoin", "StreamingAggregate")
    return {note for note in notes if note in plan and "first rows:" in plan}


@pytest.mark.parametrize("profile", PROFILES, ids=("in order", "one pass at once", "one pass after a few", "sorted"))
@pytest.mark.parametrize("members", [1, 3])
def test_first_rows(members: int, profile: Profile) -> None:
    used = compare(11 + members, 120, members, profile)
    assert used["first rows:"] > 10, "plans stop early"
    assert used["filter in one pass"] > 5, "filters are left over by the index"
    assert used["HashJoin"] + used["LookupJoin"] > 0, "a join keeps the order"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_first_rows(seed: int) -> None:
    compare(seed, 150, 1 + 2 * (seed % 2))
