"""Shortcuts are the long way made short: the same statements give the same results without them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError
from remuda.grid.shortcuts import shortcuts

NAN = math.nan
SETUP = (
    "CREATE TABLE m (id BIGINT, n INTEGER, d DOUBLE, x DECIMAL(10, 2), s VARCHAR, PRIMARY KEY (id))",
    "CREATE INDEX m_n ON m (n) TYPE SORTED",
    "CREATE INDEX m_d ON m (d) TYPE HASH",
    "CREATE INDEX m_x ON m (x) TYPE HASH",
    "CREATE INDEX m_s ON m (s, n) TYPE SORTED",
    "CREATE TABLE pair (a VARCHAR, b INTEGER, v BIGINT, PRIMARY KEY (a, b))",
    "CREATE TABLE exact (k DECIMAL(6, 2), v BIGINT, PRIMARY KEY (k))",
    "CREATE TABLE nokey (v BIGINT)",
    "CREATE TABLE ranged (id BIGINT, x DECIMAL(10, 2), f DOUBLE, t TIMESTAMP, s VARCHAR, PRIMARY KEY (id))",
    "CREATE INDEX ranged_x ON ranged (x) TYPE SORTED",
    "CREATE INDEX ranged_f ON ranged (f) TYPE SORTED",
    "CREATE INDEX ranged_t ON ranged (t) TYPE SORTED",
    "CREATE INDEX ranged_s ON ranged (s) TYPE SORTED",
)
ROWS: list[tuple[Any, ...]] = [
    (id_, id_ % 7 - 3, (0.0, -0.0, 1.5, NAN, None)[id_ % 5], Decimal(id_) / 4, ("a", "b", None)[id_ % 3])
    for id_ in range(300)
]
DAY, HOUR = dt.datetime(2024, 1, 1), dt.timedelta(hours=1)
RANGED = pa.table(
    {
        "id": range(5_000),
        "x": pa.array([None if id_ % 9 == 0 else Decimal(id_) / 4 for id_ in range(5_000)], pa.decimal128(10, 2)),
        "f": [NAN if id_ % 11 == 0 else None if id_ % 13 == 0 else id_ / 10 - 100 for id_ in range(5_000)],
        "t": [None if id_ % 7 == 0 else DAY + id_ * HOUR for id_ in range(5_000)],
        "s": [f"s{id_ % 900}" for id_ in range(5_000)],
    }
)
STATEMENTS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT * FROM m WHERE id = ?", [(5,), (5.0,), (5.5,), (-1,), (None,), (2**70,), (True,), ("5",), (), (1, 2)]),
    ("SELECT n + 1, s FROM m WHERE id = ? AND n > ?", [(5, 0), (5, 2), (5, None), (None, 1)]),
    ("SELECT id FROM m WHERE id = 5", [(), (1,)]),
    ("SELECT 10 / n FROM m WHERE id = ?", [(4,), (3,)]),
    ("SELECT v FROM pair WHERE a = ? AND b = ?", [("x", 1), ("x", 3), ("x", None), ("x", 1.5), (1, 1)]),
    ("SELECT v FROM pair WHERE a = 'x' AND b = ?", [(1,), (2,)]),
    ("SELECT v FROM exact WHERE k = ?", [(Decimal("1.25"),), (1.25,), (1.254,), (Decimal("1.2501"),), (10**9,)]),
    ("SELECT id FROM m WHERE n = ?", [(1,), (1.5,), (2**40,), (None,)]),
    ("SELECT id, s FROM m WHERE n BETWEEN ? AND ?", [(2, 3), (3, 2), (1.5, 2.5), (None, 1), (-9, 9), (9, 9)]),
    ("SELECT id FROM m WHERE n > ? AND n < ?", [(1, 3), (2, 2), (1, 2), (None, 1)]),
    ("SELECT id FROM m WHERE d = ?", [(0.0,), (-0.0,), (0,), (NAN,), (1.5,), (None,), ("x",)]),
    ("SELECT id FROM m WHERE d IN (?, ?)", [(0.0, -0.0), (NAN, float("nan")), (1.5, None), (None, None)]),
    ("SELECT id FROM m WHERE x = ?", [(Decimal("1.25"),), (1.25,), (1.254,), (Decimal("1.2549"),), (10**9,), (NAN,)]),
    ("SELECT id FROM m WHERE s = ? AND n IN (?, ?)", [("a", 1, 2), ("a", 1, 1), ("b", None, 2), ("zz", 1, 2)]),
    ("SELECT id, n FROM m WHERE s = ? AND n BETWEEN ? AND ?", [("a", 1, 2), ("a", 2, 1), ("a", 3, 3), ("a", None, 2)]),
    ("SELECT n, id FROM m WHERE s = ? AND n > ?", [("b", 2), ("b", 1.5), ("zz", 1), (None, 1), ("b", None)]),
    ("SELECT id FROM m WHERE s = ? AND n >= 1 AND n < ?", [("a", 3), ("a", 1), ("a", None)]),
    ("SELECT id FROM m WHERE s = ? AND n > ? AND n > ?", [("a", 1, 2), ("a", 2, 1), ("a", None, 2)]),
    (
        "SELECT id, id, x FROM ranged WHERE x BETWEEN ? AND ?",
        [(1, 2.5), (2.5, 2.5), (Decimal("2.50"), 9), (2.501, 2.6), (3, 1), (None, 1), (1, None), (0, 10**9), ("x", 1)],
    ),
    (
        "SELECT f, id FROM ranged WHERE f > ? AND f <= ?",
        [
            (-1, 1),
            (-0.0, 0.0),
            (0.0, 0.5),
            (1.5, 1.5),
            (399.0, NAN),
            (NAN, NAN),
            (NAN, 1.0),
            (-math.inf, -99),
            (1, None),
        ],
    ),
    ("SELECT * FROM ranged WHERE f BETWEEN ? AND ?", [(0.0, 0.0), (-0.5, 0.5), (NAN, NAN), (3.0, 2.0), (1.0, 20.0)]),
    (
        "SELECT t, id FROM ranged WHERE t BETWEEN ? AND ?",
        [(DAY, DAY), (DAY, DAY + 9 * HOUR), (DAY + HOUR, DAY), (None, DAY), (DAY, DAY.date()), (DAY, 5)],
    ),
    ("SELECT t FROM ranged WHERE t >= ? AND t < ? AND f > ?", [(DAY, DAY + 99 * HOUR, -95.0), (DAY, DAY, None)]),
    (
        "SELECT id FROM ranged WHERE s BETWEEN ? AND ?",
        [("s1", "s10"), ("s1", "s1"), ("s2", "s1"), ("", "s0"), ("é", 1)],
    ),
    ("SELECT id, s FROM ranged WHERE s > ?", [("s898",), ("s9",), ("s899",), (None,), ("\ud800",)]),
    ("SELECT 1 FROM ranged WHERE s = ?", [("s1",), ("s",)]),
    ("SELECT id FROM m WHERE n = ? AND id IN (?, ?)", [(1, 4, 11), (1, 5, 6)]),
    ("SELECT id FROM m WHERE n IS NULL", [()]),
    (
        "INSERT INTO m VALUES (?, ?, ?, ?, ?)",
        [(1_000, 1, 0.5, 2.345, "z"), (1_000, 1, 1.0, 1, "z"), (None, 1, 1, 1, "")],
    ),
    ("INSERT INTO m VALUES (?, ?, 1.0, 1, 'z')", [(1_001, 2**31), (1_002, 1.5), (1_003, None), (1_004,)]),
    ("INSERT INTO m (id, n) VALUES (?, ? + 1)", [(1_010, 1), (1_011, 2**31 - 1), (1_010, 1)]),
    ("SINK INTO m VALUES (?, ?, ?, ?, ?)", [(1_000, 2, NAN, Decimal("9.999"), None), (1, 1, 1, 1, "new")]),
    ("UPDATE m SET n = n + ?, s = ? WHERE id = ?", [(1, "u", 7), (1, "u", -1), (2**31 - 1, "u", 7), (None, None, 8)]),
    ("UPDATE m SET x = ? WHERE id = ?", [(1.005, 9), (Decimal("123456789.00"), 9), (None, 9), (1, None), (1, 9.5)]),
    ("UPDATE m SET n = 1 WHERE id = ? AND n > ?", [(10, 0), (10, 99), (10, None)]),
    ("DELETE FROM m WHERE id = ?", [(20,), (20,), (21.0,), (21.5,), (None,)]),
    ("DELETE FROM m WHERE id = ? AND s = ?", [(22, "b"), (22, "a"), (23, None)]),
    ("DELETE FROM pair WHERE a = ? AND b = ?", [("x", 1), ("x", 9), ("x", None)]),
    ("INSERT INTO nokey VALUES (?)", [(1,), (1,), (None,)]),
    ("SELECT COUNT(*) FROM nokey", [()]),
]


def outcome(grid: Any, text: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        result = grid.sql(text, *values)
        columns = [(column.name, str(column.type)) for column in result.columns]
        return "rows", columns, sorted(repr(tuple(row)) for row in result), result.update_count
    except SqlError as error:
        return "error", str(error)


def outcomes(folded: bool, members: int) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    with remuda.open(members=members) as grid:
        for text in SETUP:
            grid.sql(text)
        for row in ROWS:
            grid.sql("INSERT INTO m VALUES (?, ?, ?, ?, ?)", *row)
        for b in (1, 2):
            grid.sql("INSERT INTO pair VALUES ('x', ?, ?)", b, b * 10)
        for number in range(8):
            grid.sql("INSERT INTO exact VALUES (?, ?)", Decimal(number) / 4, number)
        grid.load("ranged", RANGED)
        if folded:
            grid.checkpoint()
        for id_ in range(20, 40):
            grid.sql("SINK INTO ranged VALUES (?, ?, ?, ?, ?)", id_ * 3, id_ % 3, id_ / 10, DAY + id_ % 4 * HOUR, "s1")
            grid.sql("DELETE FROM ranged WHERE id = ?", id_ * 5)
        for text, given in STATEMENTS:
            for values in given:
                yield text, values, outcome(grid, text, values)
        for text in ("SELECT * FROM m", "SELECT * FROM pair"):
            yield text, (), outcome(grid, text, ())


@pytest.mark.parametrize("folded", [False, True], ids=["log", "segment"])
@pytest.mark.parametrize("members", [1, 3])
def test_the_long_way_gives_the_same(folded: bool, members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    short = list(outcomes(folded, members))
    monkeypatch.setattr(shortcuts, "compile_shortcut", lambda *_: None)
    long = list(outcomes(folded, members))
    for ours, theirs in zip(short, long, strict=True):
        assert ours == theirs


@pytest.mark.parametrize("members", [1, 3])
def test_the_statements_do_take_shortcuts(members: int) -> None:
    """Otherwise the comparison above would compare nothing."""
    with remuda.open(members=members) as grid:
        for text in SETUP:
            grid.sql(text)
        for row in ROWS:
            grid.sql("INSERT INTO m VALUES (?, ?, ?, ?, ?)", *row)
        grid.load("ranged", RANGED)
        for text, given in STATEMENTS:
            outcome(grid, text, given[0])
        plans = {text: entry for (_, text), entry in grid.engine.plans.entries()}
        without = {text for text, entry in plans.items() if entry.shortcut is None}
        assert without <= {
            "SELECT COUNT(*) FROM nokey",
            "INSERT INTO nokey VALUES (?)",
            "SELECT id FROM m WHERE n = ? AND id IN (?, ?)",
            "SELECT id FROM m WHERE n BETWEEN ? AND ?",
            "SELECT id, s FROM m WHERE n BETWEEN ? AND ?",
            "SELECT id FROM m WHERE n > ? AND n < ?",
        }


def test_arrow_out_of_a_shortcut_is_arrow_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row, few, many, none, and the rest behind some that were read; moments of every kind and NULLs among them."""
    statements = ["SELECT * FROM moments WHERE id = ?", "SELECT * FROM moments WHERE n BETWEEN ? AND ?"]
    asked = [(0, (5,)), (0, (-1,)), *((1, (0, last)) for last in (0, 2, 3, 60)), (1, (9, 0))]

    def tables() -> list[Any]:
        with remuda.open() as grid:
            grid.sql(
                "CREATE TABLE moments (id BIGINT, n BIGINT, d DATE, t TIME, ts TIMESTAMP, z TIMESTAMP WITH TIME ZONE, "
                "x DECIMAL(9, 2), s VARCHAR, b BOOLEAN, PRIMARY KEY (id))"
            )
            grid.sql("CREATE INDEX moments_n ON moments (n) TYPE SORTED")
            for id_ in range(60):
                moment = DAY + id_ * HOUR
                row = (moment.date(), moment.time(), moment, moment.replace(tzinfo=dt.UTC), Decimal(id_) / 4)
                some = [None if id_ % 7 == 3 else value for value in (*row, f"s{id_ % 3}", id_ % 2 == 0)]
                grid.sql("INSERT INTO moments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", id_, id_, *some)
            grid.checkpoint()
            found = []
            for number, values in asked:
                found.append(grid.sql(statements[number], *values).to_arrow())
                partly = grid.sql(statements[number], *values)
                first = partly.fetchone()
                found.append((first, partly.to_arrow(), partly.was_read, partly.fetchmany(5)))
            return found

    short = tables()
    monkeypatch.setattr(shortcuts, "compile_shortcut", lambda *_: None)
    assert short == tables()
