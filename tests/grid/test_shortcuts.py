"""Shortcuts are the long way made short: the same statements give the same results without them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import remuda
from remuda.errors import SqlError
from remuda.grid import queries

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
)
ROWS: list[tuple[Any, ...]] = [
    (id_, id_ % 7 - 3, (0.0, -0.0, 1.5, NAN, None)[id_ % 5], Decimal(id_) / 4, ("a", "b", None)[id_ % 3])
    for id_ in range(300)
]
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


def outcomes(folded: bool) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    with remuda.open() as grid:
        for text in SETUP:
            grid.sql(text)
        for row in ROWS:
            grid.sql("INSERT INTO m VALUES (?, ?, ?, ?, ?)", *row)
        for b in (1, 2):
            grid.sql("INSERT INTO pair VALUES ('x', ?, ?)", b, b * 10)
        for number in range(8):
            grid.sql("INSERT INTO exact VALUES (?, ?)", Decimal(number) / 4, number)
        if folded:
            grid.checkpoint()
        for text, given in STATEMENTS:
            for values in given:
                yield text, values, outcome(grid, text, values)
        for text in ("SELECT * FROM m", "SELECT * FROM pair"):
            yield text, (), outcome(grid, text, ())


@pytest.mark.parametrize("folded", [False, True], ids=["log", "segment"])
def test_the_long_way_gives_the_same(folded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    short = list(outcomes(folded))
    monkeypatch.setattr(queries, "compile_shortcut", lambda *_: None)
    long = list(outcomes(folded))
    for ours, theirs in zip(short, long, strict=True):
        assert ours == theirs


def test_the_statements_do_take_shortcuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the comparison above would compare nothing."""
    with remuda.open() as grid:
        for text in SETUP:
            grid.sql(text)
        for row in ROWS:
            grid.sql("INSERT INTO m VALUES (?, ?, ?, ?, ?)", *row)
        for text, given in STATEMENTS:
            outcome(grid, text, given[0])
        plans = {text: entry for (_, text), entry in grid.queries.plans.entries()}
        without = {text for text, entry in plans.items() if entry.shortcut is None}
        assert without <= {
            "SELECT COUNT(*) FROM nokey",
            "INSERT INTO nokey VALUES (?)",
            "SELECT id FROM m WHERE n = ? AND id IN (?, ?)",
            "SELECT id FROM m WHERE n BETWEEN ? AND ?",
            "SELECT id, s FROM m WHERE n BETWEEN ? AND ?",
            "SELECT id FROM m WHERE n > ? AND n < ?",
        }
