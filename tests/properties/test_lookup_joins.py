"""Joins of few rows with a large map are DuckDB's, whichever way matches are found, and in whichever form they come."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import remuda
from tests.harness.databases import DuckDatabase
from tests.harness.decisions import Profile, forced
from tests.harness.generated import rows_of
from tests.harness.lookup_queries import LookupQueries, contents, definitions
from tests.properties.test_decisions import comparable

HOLD, ENTRIES, ROWS = "optimizer.cost.hold_cutover", "optimizer.cost.hold_entries", "optimizer.cost.ARROW_JOIN_START"
LOOKUPS = {"optimizer.cost.LOOKUP_ROW": 0, "optimizer.cost.INDEX_LOOKUP_ROW": 0, "optimizer.cost.SCAN_ROW": 1}
PROFILES: dict[str, Profile] = {
    "as planned": {},
    "looked up": {**LOOKUPS, HOLD: 2},
    "as columns": {**LOOKUPS, HOLD: 2, ROWS: 0},
    "as tuples": {**LOOKUPS, HOLD: 2, ROWS: 2},
    "held after a few": {**LOOKUPS, HOLD: 1},
    "held after a few entries": {**LOOKUPS, HOLD: 2, ENTRIES: 1},
}


def compare(seed: int, queries: int, members: int, profile: Profile) -> Counter[str]:
    """Compare so many queries; return how many plans had what is noted below."""
    random = Random(seed)
    generator, oracle = LookupQueries(random), DuckDatabase()
    used: Counter[str] = Counter()
    with forced(profile), remuda.open(members=members) as grid:
        grid.sql("SET timeout = 60")
        for statement in definitions(random):
            grid.sql(statement)
            if statement.startswith("CREATE TABLE"):
                oracle.execute(statement.partition(" PARTITION BY")[0], [])
        for name, query in contents(random):
            oracle.load(name, query)
            grid.load(name, rows_of(query))
        for number in range(queries):
            if number % 20 == 10:
                _change(grid, oracle, random)
            text, values = generator.query()
            expected = sorted(comparable(oracle.query(text, values)))
            assert sorted(comparable(grid.sql(text, *values))) == expected, (seed, members, text, values)
            used.update(_noted(grid, text, values))
    oracle.close()
    return used


def _change(grid: remuda.Grid, oracle: DuckDatabase, random: Random) -> None:
    """Leave rows in the log, and hidden ones in the segment."""
    first = random.randint(0, 2_000)
    for statement in (
        f"DELETE FROM big WHERE id BETWEEN {first} AND {first + 40}",
        f"UPDATE big SET a = 3, s = 's7' WHERE id BETWEEN {first + 100} AND {first + 160}",
    ):
        grid.sql(statement)
        oracle.execute(statement, [])


def _noted(grid: remuda.Grid, text: str, values: list[int]) -> set[str]:
    plan = "\n".join(line for (line,) in grid.sql(f"EXPLAIN ANALYZE {text}", *values))
    notes = ("by columns:", "map held:", "LookupJoin INNER", "LookupJoin LEFT", "LookupJoin SEMI", "LookupJoin ANTI")
    return {note for note in notes if note in plan}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("members", [1, 3])
def test_few_rows_and_a_large_map(members: int, name: str) -> None:
    used = compare(31 + members, 45, members, PROFILES[name])
    assert used["LookupJoin INNER"] > 3
    if name != "as planned" and members == 1:
        # Of several members, each finds the matches of its own partitions: a row without any is found so by all.
        assert all(used[f"LookupJoin {kind}"] > 0 for kind in ("LEFT", "SEMI", "ANTI"))
    if name == "looked up" and members == 1:
        assert used["by columns:"] > 0
    if name.startswith("held"):
        assert used["map held:"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_lookup_joins(seed: int) -> None:
    compare(seed, 150, 1 + 2 * (seed % 2), list(PROFILES.values())[seed % len(PROFILES)])
