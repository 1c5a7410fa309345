"""Plans for classes of values: another one where values leave many more or fewer rows, and never another answer."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import remuda
from remuda.grid import value_plans
from remuda.optimizer.value_classes import class_of_values
from remuda.plan import physical
from remuda.plan.walk import walk
from tests.exec.test_dynamic_lookup import QUERIES, VALUES, fill, tables

RANGES = (
    "SELECT COUNT(*), SUM(b.y) FROM s JOIN b ON s.ref = b.id WHERE s.id BETWEEN ? AND ? AND s.region = ?",
    "SELECT s.id, d.y FROM s JOIN d ON s.ref = d.ref WHERE s.id >= ? AND d.y < ? AND s.region IN (?, 'one')",
    "SELECT s.id FROM s LEFT JOIN b ON s.ref = b.id AND b.y > ? WHERE s.id < ? AND s.region <> ? LIMIT 100000",
)
JOIN = "SELECT COUNT(note), SUM(y) FROM big JOIN small ON big.ref = small.id WHERE big.kind = ?"


def grid_of_kinds(rows: int = 30_000) -> remuda.Grid:
    """Open a grid of a map with a rare and a frequent kind, and the map that its rows refer to."""
    grid = remuda.open()
    grid.sql("CREATE TABLE big (id BIGINT, kind VARCHAR, ref BIGINT, note VARCHAR, PRIMARY KEY (id))")
    grid.sql("CREATE INDEX big_kind ON big (kind) TYPE HASH")
    grid.sql("CREATE TABLE small (id BIGINT, y BIGINT, PRIMARY KEY (id))")
    kinds = ["rare" if number < 5 else "often" for number in range(rows)]
    refs = [number * 7 % 20_000 for number in range(rows)]
    grid.load("big", pa.table({"id": range(rows), "kind": kinds, "ref": refs, "note": ["n"] * rows}))
    grid.load("small", pa.table({"id": range(20_000), "y": range(20_000)}))
    return grid


def entry_of(grid: remuda.Grid, text: str) -> Any:
    return next(entry for (_, known), entry in grid.engine.plans.entries() if known == text)


def joins_of(plan: Any) -> list[type]:
    found = physical.HashJoin | physical.LookupJoin | physical.MergeJoin
    return [type(node) for node in walk(plan.tree) if isinstance(node, found)]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("mode", ["as it pays", "never", "at once", "one for all"])
def test_answers_are_those_of_duckdb(members: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values come in any order and more than once; with one class for all each plan runs with values unlike its own."""
    match mode:
        case "never":
            monkeypatch.setattr(value_plans, "MOST_CLASSES", 0)
        case "at once":
            monkeypatch.setattr(value_plans, "LONG_COST", 0.0)
        case "one for all":
            monkeypatch.setattr(value_plans, "class_of_values", lambda *_: ())
    random = Random(f"{members} {mode}")
    with remuda.open(members=members, partitions=31) as grid, duckdb.connect(config={"threads": 1}) as other:
        fill(grid)
        for name, table in tables().items():
            other.register(f"{name}_loaded", table)
            other.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_loaded")
        planned = 0
        for text in (*QUERIES, *RANGES):
            several = text.count("?") > 1
            given = [
                (random.choice([-5, 0, 40, 2_990]), random.choice([1, 45, 3_500]), random.choice(VALUES))
                if several
                else (random.choice(VALUES),)
                for _ in range(8)
            ]
            for values in given:
                expected = Counter(tuple(map(str, row)) for row in other.execute(text, list(values)).fetchall())
                found = Counter(tuple(map(str, row)) for row in grid.sql(text, *values).fetchall())
                assert found == expected, (text, values)
            planned += sum(each is not None for each in entry_of(grid, text).value_plans.values())
    assert (planned == 0) == (mode == "never")


def test_a_rare_value_is_looked_up_and_a_frequent_one_joined_with_the_whole_map() -> None:
    with grid_of_kinds() as grid:
        for value in ("rare", "often") * 2:
            grid.sql(JOIN, value).fetchall()
        rare, often = (each.plan for each in entry_of(grid, JOIN).value_plans.values())
        assert joins_of(rare) == [physical.LookupJoin]
        assert joins_of(often) == [physical.HashJoin]
        assert grid.explain(JOIN, "rare") != grid.explain(JOIN, "often")
        assert "a plan for values that leave about as many rows" in grid.explain(JOIN, "rare")
        assert grid.explain(JOIN) == grid.explain(JOIN.replace("?", ":kind")).replace(":kind", "?0")


def test_a_statement_that_runs_once_is_planned_once() -> None:
    with grid_of_kinds() as grid:
        grid.sql(JOIN, "rare").fetchall()
        entry = entry_of(grid, JOIN)
        assert list(entry.value_plans.values()) == [None]
        grid.sql(JOIN, "rare").fetchall()
        (made,) = entry.value_plans.values()
        assert made is not None
        grid.sql(JOIN, "rare").fetchall()
        assert list(entry.value_plans.values()) == [made]


def test_classes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_plans, "MOST_CLASSES", 1)
    with grid_of_kinds() as grid:
        for value in ("rare", "often", "often", "rare"):
            assert grid.sql(JOIN, value).fetchone()[0] == (5 if value == "rare" else 29_995)
        assert len(entry_of(grid, JOIN).value_plans) == 1


def test_plans_for_values_go_when_the_map_has_grown() -> None:
    with grid_of_kinds(2_000) as grid:
        for _ in range(2):
            grid.sql(JOIN, "rare").fetchall()
        before = entry_of(grid, JOIN)
        more = range(2_000, 40_000)
        grid.load("big", pa.table({"id": more, "kind": ["rare"] * 38_000, "ref": [0] * 38_000, "note": ["n"] * 38_000}))
        for _ in range(2):
            assert grid.sql(JOIN, "rare").fetchone()[0] == 38_005
        after = entry_of(grid, JOIN)
        assert after is not before
        (plan,) = (each.plan for each in after.value_plans.values())
        assert joins_of(plan) == [physical.HashJoin]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT note FROM big WHERE kind = ?", ("rare",)),
        ("SELECT y FROM big JOIN small ON big.ref = small.id WHERE big.id = ?", (3,)),
        ("SELECT big.note || ? FROM big JOIN small ON big.ref = small.id", ("x",)),
        ("UPDATE big SET note = 'm' WHERE kind = ? AND ref IN (SELECT id FROM small WHERE y < ?)", ("rare", 5)),
    ],
)
def test_where_values_decide_nothing_there_is_one_plan(text: str, values: tuple[Any, ...]) -> None:
    """One map chooses its access path as it runs; a key has one row; what is computed leaves no row out."""
    with grid_of_kinds() as grid:
        for _ in range(3):
            grid.sql(text, *values)
        assert not entry_of(grid, text).value_plans


def test_named_values_and_the_clock() -> None:
    text = (
        "SELECT COUNT(*) FROM big JOIN small ON big.ref = small.id "
        "WHERE big.kind = :kind AND small.y < :most AND now() > TIMESTAMP '2020-01-01 00:00:00'"
    )
    with grid_of_kinds() as grid:
        for most in (20_000, 3, 20_000, 3):
            expected = sum(number * 7 % 20_000 < most for number in range(5))
            assert grid.sql(text, kind="rare", most=most).fetchone()[0] == expected
        assert len([each for each in entry_of(grid, text).value_plans.values() if each is not None]) == 2


def test_values_that_leave_about_as_many_rows_are_of_one_class() -> None:
    text = "SELECT COUNT(*) FROM big JOIN small ON big.ref = small.id WHERE big.kind = ? AND small.y BETWEEN ? AND ?"
    with grid_of_kinds() as grid:
        grid.sql(text, "rare", 0, 1).fetchall()
        bounds = entry_of(grid, text).plan.value_bounds

        def class_of(*values: Any) -> tuple[int, ...]:
            return class_of_values(bounds, values, lambda each: grid.engine.store.map(each).statistics())

        assert class_of("often", 0, 14_000) == class_of("often", 5_000, 19_000)
        assert class_of("often", 0, 10_000) != class_of("often", 0, 100)
        assert class_of("often", 0, 10_000) != class_of("rare", 0, 10_000)
        assert class_of("none", 5, 3) == class_of("nobody", 50_000, 60_000)
        assert class_of(None, None, 3)
