"""The index that an execution chooses changes no answer: DuckDB's, on every side of the choice."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import remuda
from tests.harness.databases import DuckDatabase
from tests.harness.decisions import Profile, forced, random_profile
from tests.harness.generated import rows_of
from tests.harness.plan_trace import explain_with_trace

ROWS = 4_000
DEFINITION = "id BIGINT, a INTEGER, b INTEGER, c VARCHAR, x DOUBLE, y INTEGER, flag BOOLEAN, PRIMARY KEY (id)"
INDEXES = (
    "t_a ON t (a) TYPE HASH",
    "t_b ON t (b) TYPE SORTED",
    "t_c ON t (c) TYPE HASH",
    "t_x ON t (x) TYPE SORTED",
    "t_ab ON t (a, b) TYPE SORTED",
    "t_xy ON t (x, y) TYPE SORTED",
    "t_flag ON t (flag) TYPE HASH",
    "t_cs ON t (c) TYPE SORTED",
)
CONTENTS = f"""
SELECT i AS id, CASE WHEN i % 13 = 0 THEN NULL WHEN i % 10 < 7 THEN 0 ELSE (i * 7 % 400)::INTEGER END AS a,
       CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 31 % 900)::INTEGER END AS b,
       CASE WHEN i % 19 = 0 THEN NULL WHEN i % 5 < 4 THEN 'common' ELSE 'c' || (i % 300) END AS c,
       CASE WHEN i % 23 = 0 THEN NULL ELSE (i * 37 % 1000) / 4.0 END AS x, (i % 9)::INTEGER AS y,
       CASE WHEN i % 29 = 0 THEN NULL ELSE i % 200 = 3 END AS flag FROM range({ROWS}) AS r(i)
"""
EQUALITIES = {"a": (0, 7, 14, 399, -5, None), "c": ("common", "c44", "absent", None), "flag": (True, False, None)}
RANGES = {"b": (0, 3, 40, 450, 900, -1, None), "x": (0.0, 0.25, 10.0, 125.0, 250.0, -3.5, None)}
IN_ORDER = (
    "SELECT b FROM t WHERE {} ORDER BY b LIMIT 3",
    "SELECT b FROM t WHERE {} ORDER BY b DESC LIMIT 40 OFFSET 2",
    "SELECT x FROM t WHERE {} ORDER BY x NULLS LAST LIMIT 10",
    "SELECT a, b FROM t WHERE {} ORDER BY a DESC, b DESC LIMIT 5",
    "SELECT b, COUNT(*), MAX(y) FROM t WHERE {} GROUP BY b ORDER BY b LIMIT 4",
)
"""Orders that an index has: it is read in order, or a candidate's rows are sorted."""
SORTED = "optimizer.cost.sort_rule"
SCAN = "optimizer.cost.scan_cutover"
FEW = "exec.scan.index_choice.FEW_ROWS"
PROFILES: tuple[Profile, ...] = (
    {FEW: 0, SORTED: 1},
    {FEW: 1, SCAN: 3, SORTED: 2},
    {FEW: 0, SCAN: 2, SORTED: 2},
    {SCAN: 0, SORTED: 0},
    {SCAN: 1, FEW: 0},
)
"""With the first side of `FEW_ROWS` all indexes are counted; the sides of the scan's cut-over are 0, 3, 40 entries, no
end; those of a sort are never, as planned, and always."""


class Queries:
    def __init__(self, random: Random) -> None:
        self.random = random

    def conditions(self) -> tuple[str, list[Any]]:
        """Return two or three conditions that have indexes, sometimes another one, and the values of parameters."""
        random = self.random
        parts, values = [], []
        for name in random.sample([*EQUALITIES, *RANGES], random.choice((2, 2, 3))):
            text, given = self._condition(name)
            parts.append(text)
            values.extend(given)
        if random.random() < 0.3:
            parts.append(random.choice(("y <> 4", "id % 3 = 1", "(y = 1 OR a = 0)", "100 / (y + 1) > 20")))
        return " AND ".join(parts), values

    def _condition(self, name: str) -> tuple[str, list[Any]]:
        random = self.random
        if name in EQUALITIES:
            value = random.choice(EQUALITIES[name])
            if value is not None and random.random() < 0.2:
                return f"{name} = {value!r}", []
            if name == "a" and random.random() < 0.2:
                return f"({name} IN (?, 7) OR a IS NULL)", [value]
            return f"{name} = ?", [value]
        low, high = (random.choice(RANGES[name]) for _ in range(2))
        shape = random.choice(("BETWEEN", "BETWEEN", "lower", "upper", "literal"))
        if shape == "literal":
            return f"{name} > {0 if low is None else low}", []
        if shape == "BETWEEN":
            return f"{name} BETWEEN ? AND ?", sorted([low, high]) if None not in (low, high) else [low, high]
        return (f"{name} >= ?", [low]) if shape == "lower" else (f"{name} < ?", [high])

    def query(self) -> tuple[str, list[Any]]:
        where, values = self.conditions()
        shape = self.random.choice(
            (
                "SELECT id, c FROM t WHERE {}",
                "SELECT * FROM t WHERE {}",
                "SELECT COUNT(*), SUM(b), MAX(c) FROM t WHERE {}",
                "SELECT id + 1, y FROM t WHERE {}",
                "SELECT y, COUNT(x) FROM t WHERE {} GROUP BY y",
                "SELECT t.id, u.n FROM t JOIN u ON u.n = t.y WHERE {}",
                "SELECT id, b FROM t WHERE {} ORDER BY b, id",
                "SELECT id FROM t WHERE {} ORDER BY id DESC LIMIT 7",
                "SELECT b FROM t WHERE {} ORDER BY b",
                "SELECT x, y FROM t WHERE {} ORDER BY x DESC, y DESC",
                *IN_ORDER,
                *IN_ORDER,
            )
        )
        return shape.format(where), values

    def change(self) -> tuple[str, list[Any]]:
        where, values = self.conditions()
        shape = self.random.choice(("DELETE FROM t WHERE {} AND id % 11 = 2", "UPDATE t SET y = y + 1, b = 3 WHERE {}"))
        return shape.format(where), values


def compare(seed: int, queries: int, members: int, profile: Profile) -> Counter[str]:
    """Compare so many queries; return how often each kind of access was decided."""
    random = Random(seed)
    generator, oracle, decided = Queries(random), DuckDatabase(), Counter[str]()
    with forced(profile), remuda.open(members=members) as grid:
        for target in (grid.sql, lambda text: oracle.execute(text, [])):
            target(f"CREATE TABLE t ({DEFINITION})")
            target("CREATE TABLE u (n INTEGER, PRIMARY KEY (n))")
            target("INSERT INTO u VALUES (1), (3), (8)")
        for index in random.sample(INDEXES, random.randint(4, len(INDEXES))):
            grid.sql(f"CREATE INDEX {index}")
        grid.load("t", rows_of(CONTENTS))
        oracle.load("t", CONTENTS)
        for number in range(queries):
            if number % 8 == 5:
                text, values = generator.change()
                assert grid.sql(text, *values).update_count == oracle.execute(text, values), (seed, text, values)
            text, values = generator.query()
            expected = [tuple(row) for row in oracle.query(text, values)]
            found = [tuple(row) for row in grid.sql(text, *values)]
            if "ORDER BY" not in text:
                expected, found = sorted(expected, key=repr), sorted(found, key=repr)
            assert found == expected, (seed, members, text, values)
            decided.update(_decided(grid, text, values))
    oracle.close()
    return decided


def _decided(grid: remuda.Grid, text: str, values: list[Any]) -> set[str]:
    plan = explain_with_trace(grid, text)[0]
    if "candidate" not in plan:
        return set()
    lines = " ".join(grid.explain(f"EXPLAIN {text}", *values).split())
    sides = ("access: index", "access: direct scan", "in order,", "and a sort,")
    return {kind for kind in sides if kind in lines} | {"candidate"}


@pytest.mark.parametrize("profile", PROFILES, ids=("fewest", "few", "up to 40", "always a scan", "up to 3"))
@pytest.mark.parametrize("members", [1, 3])
def test_no_choice_changes_an_answer(members: int, profile: Profile) -> None:
    decided = compare(31 + members, 80, members, profile)
    assert decided["candidate"] > 5
    if profile.get(SORTED) != 2:
        assert decided["in order,"] > 0
    if profile.get(SORTED) != 0:
        assert decided["and a sort,"] > 0
    if profile.get(SCAN) != 0:
        assert decided["access: index"] > 5
    if profile.get(SCAN) != 3:
        assert decided["access: direct scan"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 230))
def test_many_choices(seed: int) -> None:
    compare(seed, 120, 1 + 2 * (seed % 2), random_profile(Random(seed)) | PROFILES[seed % len(PROFILES)])
