"""INs and ORs over keys of several columns are DuckDB's, whatever of them the key answers, on one and three members."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import remuda
from remuda.sql.bind.expression.row_comparison import LONGEST_OR
from tests.harness.databases import DuckDatabase
from tests.harness.generated import rows_of
from tests.properties.test_decisions import comparable

MAPS = {
    "whole": ("a BIGINT, s VARCHAR, v INTEGER, x DOUBLE", "a, s", ""),
    "part": ("a BIGINT, s VARCHAR, v INTEGER, x DOUBLE", "a, s", " PARTITION BY (s)"),
    "float": ("a BIGINT, x DOUBLE, s VARCHAR, v INTEGER", "a, x", ""),
    "single": ("id BIGINT, a BIGINT, s VARCHAR, x DOUBLE, v INTEGER", "id", ""),
}
ROWS = 1_200
LONG = LONGEST_OR + 20
SECOND = {"whole": "s", "part": "s", "float": "x"}
TEXTS = ("'t0'", "'t1'", "'t7'", "''", "'none'", "NULL")
NUMBERS = ("0.0", "-0.0", "0.5", "1.5", "'NaN'::DOUBLE", "7", "NULL")


def contents(name: str) -> str:
    second = {"float": "CASE WHEN i // 60 = 3 THEN 'NaN'::DOUBLE ELSE (i // 60) / 2.0 END"}
    x = second.get(name, "i / 4.0")
    s = "'t' || (i // 60)::VARCHAR"
    columns = [each.split()[0] for each in MAPS[name][0].split(", ")]
    values = {"id": "i", "a": "i % 60", "s": s, "x": x, "v": "(i % 7)::INTEGER"}
    return f"SELECT {', '.join(f'{values[each]} AS {each}' for each in columns)} FROM range({ROWS}) AS r(i)"


class KeyQueries:
    def __init__(self, random: Random) -> None:
        self.random = random

    def query(self) -> tuple[str, list[int]]:
        random, values = self.random, list[int]()
        name = random.choice(list(MAPS))
        if name != "single" and random.random() < 0.4:
            rows = random.choice((3, 3, 3, LONG))
            condition = f"(a, {SECOND[name]}) IN ({', '.join(self._tuple(name, values) for _ in range(rows))})"
        else:
            branches = [self._branch(name, values) for _ in range(random.choice((1, 2, 2, 3, 12)))]
            condition = " OR ".join(branches)
        if random.random() < 0.3:
            condition = f"({condition}) AND v < {random.choice((0, 3, 6))}"
        if random.random() < 0.1:
            condition = f"({condition}) AND (a = 3 OR v = 2)"
        if random.random() < 0.3:
            others = " OR ".join(self._branch(name, values) for _ in range(random.choice((1, 2, 12))))
            condition = f"({condition}) AND ({others})"
        return f"SELECT * FROM {name} WHERE {condition}", values

    def _branch(self, name: str, values: list[int]) -> str:
        random = self.random
        if name == "single":
            parts = [f"id = {self._number(values)}"]
        else:
            second = random.choice(TEXTS if SECOND[name] == "s" else NUMBERS)
            equal = random.choice(
                (f"= {second}", f"= {second}", f"IN ({second}, {TEXTS[1] if SECOND[name] == 's' else 1})")
            )
            parts = [f"a = {self._number(values)}", f"{SECOND[name]} {equal}"]
        if random.random() < 0.1:
            parts = parts[:1]
        if random.random() < 0.2:
            parts.append(random.choice(("v > 2", "a < 40", "v IS NULL", "a + 1 > 5")))
        return f"({' AND '.join(parts)})"

    def _tuple(self, name: str, values: list[int]) -> str:
        second = TEXTS if SECOND[name] == "s" else NUMBERS
        return f"({self._number(values)}, {self.random.choice(second[:-1])})"

    def _number(self, values: list[int]) -> str:
        number = self.random.choice((0, 1, 3, 7, 59, 60, 1000))
        if self.random.random() < 0.7:
            return str(number)
        values.append(number)
        return "?"


def compare(seed: int, queries: int, members: int) -> Counter[str]:
    random = Random(seed)
    generator, oracle = KeyQueries(random), DuckDatabase()
    used: Counter[str] = Counter()
    with remuda.open(members=members) as grid:
        for name, (columns, key, by) in MAPS.items():
            definition = f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))"
            grid.sql(definition + by)
            oracle.execute(definition, [])
            oracle.load(name, contents(name))
            grid.load(name, rows_of(contents(name)))
        for statement in ("DELETE FROM whole WHERE a = 1", "UPDATE part SET v = 9 WHERE a IN (1, 3)"):
            grid.sql(statement)
            oracle.execute(statement, [])
        for _ in range(queries):
            text, values = generator.query()
            expected = sorted(comparable(oracle.query(text, values)))
            assert sorted(comparable(grid.sql(text, *values))) == expected, (seed, members, text, values)
            plan = "\n".join(line for (line,) in grid.sql(f"EXPLAIN {text}", *values))
            used["long"] += "column1" in plan
            several = ") IN ((" in plan or " OR " in plan.partition("key:")[2].partition("\n")[0]
            used["several keys" if several and "KeyLookup" in plan else "other"] += 1
    oracle.close()
    return used


@pytest.mark.parametrize("members", [1, 3])
def test_keys_of_several_columns(members: int) -> None:
    used = compare(5 + members, 150, members)
    assert used["several keys"] > 30
    assert used["other"] > 30
    assert used["long"] > 3


def is_in(row: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> bool | None:
    """Whether `row IN rows` is true, false or NULL."""
    equal = [_is_equal(row, other) for other in rows]
    return True if True in equal else None if None in equal else False


def _is_equal(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool | None:
    parts = [None if None in pair else pair[0] == pair[1] for pair in zip(row, other, strict=True)]
    return False if False in parts else None if None in parts else True


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("count", [LONGEST_OR, LONGEST_OR + 1])
@pytest.mark.parametrize("with_null", [False, True])
def test_lists_of_rows_on_both_sides_of_their_limit(members: int, count: int, with_null: bool) -> None:
    random = Random(count)
    stored = [(i, random.choice((None, *range(12))), random.choice((None, *range(12)))) for i in range(600)]
    listed: list[tuple[Any, ...]] = [(i % 12, i // 12) for i in range(count)]
    if with_null:
        listed[7] = (3, None)
    written = ", ".join(f"({a}, {'NULL' if b is None else b})" for a, b in listed)
    with remuda.open(members=members) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, a BIGINT, b INTEGER, PRIMARY KEY (id))")
        grid.load("m", {name: [row[place] for row in stored] for place, name in enumerate(("id", "a", "b"))})
        for values in (written, written.replace("(5, 1)", "(?, ?)")):
            given = [5, 1] * (values != written)
            for negation, wanted in (("", True), ("NOT ", False)):
                found = grid.sql(f"SELECT id FROM m WHERE (a, b) {negation}IN ({values})", *given)
                assert sorted(id_ for (id_,) in found) == [
                    id_ for id_, *row in stored if is_in(tuple(row), listed) is wanted
                ]
            found = grid.sql(f"SELECT id FROM m WHERE (a, b) IN ({values}) OR id < 10", *given)
            assert sorted(id_ for (id_,) in found) == [
                id_ for id_, *row in stored if id_ < 10 or is_in(tuple(row), listed) is True
            ]
        told = "\n".join(line for (line,) in grid.sql(f"EXPLAIN SELECT id FROM m WHERE (a, b) IN ({written})"))
        assert ("column1" in told) is (count > LONGEST_OR)
        deleted = grid.sql(f"DELETE FROM m WHERE (a, b) IN ({written})").update_count
        assert deleted == sum(is_in(tuple(row), listed) is True for _, *row in stored)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_keys_of_several_columns(seed: int) -> None:
    compare(seed, 400, 1 + 2 * (seed % 2))
