"""The shortcut of ORDER BY with LIMIT gives the first rows of a plain sort, and those of the long way."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from functools import cmp_to_key
from random import Random
from typing import Any

import pytest

import remuda
from remuda.grid.shortcuts import ordered_shortcut, shortcuts
from remuda.storage.lookup import ordered_rows

Row = tuple[Any, ...]
KINDS: dict[str, Callable[[Random], Any]] = {
    "BIGINT": lambda random: random.choice([-(2**63), 2**63 - 1, *range(-9, 10)]),
    "DOUBLE": lambda random: random.choice([math.nan, math.inf, -math.inf, -0.0, 0.0, random.random(), 0.5]),
    "DECIMAL(9, 2)": lambda random: Decimal(random.randrange(-40, 40)) / 4,
    "DECIMAL(38, 2)": lambda random: Decimal(random.randrange(-40, 40)) * 10**28 / 4,
    "VARCHAR": lambda random: random.choice(["", "a", "B", "é", "zz", "\U0001f600", "￿", f"s{random.randrange(99)}"]),
    "DATE": lambda random: dt.date(2024, 1, 1) + dt.timedelta(random.randrange(60)),
    "TIMESTAMP": lambda random: dt.datetime(2024, 1, 1) + dt.timedelta(hours=random.randrange(60)),
    "BOOLEAN": lambda random: random.random() < 0.5,
}


class Grown:
    """A map with loaded segments, newer rows and deletions, and the same rows in a dictionary."""

    def __init__(self, random: Random, grid: remuda.Grid) -> None:
        self.grid, self.random = grid, random
        self.kinds = [random.choice(list(KINDS)), random.choice(list(KINDS))]
        self.rows: dict[int, Row] = {}
        first, second = self.kinds
        grid.sql(f"CREATE TABLE m (id BIGINT, a {first}, b {second}, v BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX m_a ON m (a) TYPE SORTED")
        grid.sql("CREATE INDEX m_ab ON m (b, a, id) TYPE SORTED")
        for _ in range(random.randrange(4)):
            self.write(random.randrange(60))
            if random.random() < 0.7:
                grid.checkpoint()

    def write(self, count: int) -> None:
        """Add rows, replace some and delete some."""
        random = self.random
        for _ in range(count):
            key = random.randrange(90)
            if random.random() < 0.25:
                self.grid.sql("DELETE FROM m WHERE id = ?", key)
                self.rows.pop(key, None)
                continue
            a, b = (None if random.random() < 0.2 else KINDS[kind](random) for kind in self.kinds)
            self.rows[key] = (key, a, b, random.randrange(9))
            self.grid.sql("SINK INTO m VALUES (?, ?, ?, ?)", *self.rows[key])


def compared(one: Any, other: Any) -> int:
    """Compare two values that are not NULL as SQL does: NaN is above every number."""
    if one != one or other != other:
        return (one != one) - (other != other)
    return (one > other) - (one < other)


def expected_order(rows: list[Row], order: list[tuple[int, bool, bool]]) -> list[Row]:
    """Sort by columns: which one, whether it descends, whether NULLs come first."""

    def compare(one: Row, other: Row) -> int:
        for column, descends, nulls_first in order:
            left, right = one[column], other[column]
            if left is None or right is None:
                difference = ((left is None) - (right is None)) * (-1 if nulls_first else 1)
            else:
                difference = compared(left, right) * (-1 if descends else 1)
            if difference:
                return difference
        return 0

    return sorted(rows, key=cmp_to_key(compare))


def same(one: Any, other: Any) -> bool:
    return one is other if one is None or other is None else compared(one, other) == 0


def text_of(order: list[tuple[int, bool, bool]]) -> str:
    return ", ".join(
        f"{['id', 'a', 'b', 'v'][column]}{' DESC' if descends else ''} NULLS {'FIRST' if nulls_first else 'LAST'}"
        for column, descends, nulls_first in order
    )


def queries(grown: Grown) -> list[tuple[str, Row, list[Row], list[tuple[int, bool, bool]]]]:
    """Return queries with their values, all rows that pass, in order, and the order; LIMIT and OFFSET come last."""
    random = grown.random
    made = []
    for _ in range(12):
        descends = random.random() < 0.5
        nulls_first = random.random() < 0.5
        condition, values, passing = "", (), list(grown.rows.values())
        if random.random() < 0.5:
            order = [(1, descends, nulls_first)]
            if random.random() < 0.6:
                bound = KINDS[grown.kinds[0]](random)
                condition, values = "WHERE a >= ?", (bound,)
                passing = [row for row in passing if row[1] is not None and compared(row[1], bound) >= 0]
        else:
            order = [(2, descends, nulls_first), (1, descends, nulls_first), (0, descends, nulls_first)]
            if random.random() < 0.6:
                point = KINDS[grown.kinds[1]](random)
                condition, values, order = "WHERE b = ?", (point,), order[1:]
                passing = [row for row in passing if row[2] is not None and compared(row[2], point) == 0]
        columns = random.choice(["id, a, b, v", "v, id, b, a", "id, a, b, v + 1 AS v", "id"])
        made.append(
            (
                f"SELECT {columns} FROM m {condition} ORDER BY {text_of(order)} LIMIT ? OFFSET ?",
                values,
                expected_order(passing, order),
                order,
            )
        )
    return made


def check(grown: Grown, text: str, values: Row, all_rows: list[Row], order: list[tuple[int, bool, bool]]) -> None:
    """Rows that compare as equal may stand in any order, so only what rows are ordered by is compared by its place."""
    limit, offset = grown.random.choice([0, 1, 3, 7, 200]), grown.random.choice([0, 0, 2])
    found = [row.asdict() for row in grown.grid.sql(text, *values, limit, offset)]
    wanted = all_rows[offset : offset + limit]
    by_key = {row[0]: row for row in all_rows}
    rows = [by_key[each["id"]] for each in found]
    assert len({row[0] for row in rows}) == len(rows) == len(wanted), text
    for row, other in zip(rows, wanted, strict=True):
        for column, _, _ in order:
            assert same(row[column], other[column]), (text, values, limit, offset)
    for each, row in zip(found, rows, strict=True):
        added = "v + 1" in text
        for name, value in zip(["id", "a", "b", "v"], (*row[:3], row[3] + added), strict=True):
            assert name not in each or same(each[name], value), (text, each, row)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("members", [1, 3])
def test_first_rows_of_an_index(seed: int, members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(ordered_shortcut, "MOST_ROWS", random.choice([0, 5, 1_000]))
    monkeypatch.setattr(ordered_rows, "MOST_TESTED", random.choice([0, 4, 1 << 16]))
    with remuda.open(members=members) as grid:
        grown = Grown(random, grid)
        for text, values, rows, order in queries(grown):
            check(grown, text, values, rows, order)
        grown.write(10)
        for text, values, rows, order in queries(grown):
            check(grown, text, values, rows, order)


def test_the_shortcut_is_taken_and_gives_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        "SELECT id, a FROM m ORDER BY a DESC NULLS LAST LIMIT 10",
        "SELECT v FROM m WHERE a > ? ORDER BY a NULLS FIRST LIMIT ? OFFSET ?",
    ]

    def outcomes() -> tuple[list[Any], list[bool]]:
        with remuda.open() as grid:
            grid.sql("CREATE TABLE m (id BIGINT, a DOUBLE, v BIGINT, PRIMARY KEY (id))")
            grid.sql("CREATE INDEX m_a ON m (a) TYPE SORTED")
            grid.load("m", [{"id": key, "a": key / 2, "v": -key} for key in range(3_000)])
            found: list[Any] = [[tuple(row) for row in grid.sql(texts[0])]]
            for values in [(1.5, 3, 0), (1.5, 0, 2), (1.5, -1, 0), (1.5, 3, -1), (1.5, 2_500, 1), (None, 1, 0)]:
                try:
                    found.append([tuple(row) for row in grid.sql(texts[1], *values)])
                except remuda.SqlError as error:
                    found.append((error.sqlstate, str(error)))
            plans = {text: entry.shortcut is not None for (_, text), entry in grid.engine.plans.entries()}
            return found, [plans[text] for text in texts]

    short, taken = outcomes()
    assert taken == [True, True]
    monkeypatch.setattr(shortcuts, "compile_shortcut", lambda *_: None)
    long, taken = outcomes()
    assert taken == [False, False]
    assert short == long
    assert short[0] == [(key, key / 2) for key in range(2_999, 2_989, -1)]
