"""A list is given for IN (?), = ANY(?) and <> ALL(?): the answer is that of the items written one by one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import remuda
from remuda.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.grid import Grid

VALUES: dict[str, Callable[[int], Any]] = {
    "TINYINT": lambda n: n % 100,
    "SMALLINT": lambda n: n,
    "INTEGER": lambda n: n,
    "BIGINT": lambda n: n * 2**40,
    "DECIMAL(10, 2)": lambda n: Decimal(n) / 4,
    "REAL": lambda n: n / 4,
    "DOUBLE": lambda n: n / 3,
    "VARCHAR": lambda n: f"text {n}",
    "VARBINARY": lambda n: bytes([n % 256]),
    "BOOLEAN": lambda n: n % 2 == 0,
    "DATE": lambda n: dt.date(2024, 1, 1) + dt.timedelta(n),
    "TIME": lambda n: dt.time(n % 24, 30),
    "TIMESTAMP": lambda n: dt.datetime(2024, 1, 1) + dt.timedelta(hours=n),
    "TIMESTAMP WITH TIME ZONE": lambda n: dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n),
}
OTHERS: tuple[Any, ...] = (None, 1.5, 10**20, Decimal("0.333"))
"""Values that most columns cannot hold: they are compared exactly."""


@pytest.fixture
def grid() -> Iterator[Grid]:
    with remuda.open() as grid:
        yield grid


def rows(grid: Grid, text: str, *values: Any) -> list[int]:
    return sorted(row[0] for row in grid.sql(text, *values))


@pytest.mark.parametrize("type_", VALUES)
@pytest.mark.parametrize("index", [None, "SORTED", "HASH"])
def test_the_items_count_as_if_they_were_written(grid: Grid, type_: str, index: str | None) -> None:
    value = VALUES[type_]
    grid.sql(f"CREATE TABLE t (id BIGINT, v {type_}, PRIMARY KEY (id))")
    for n in range(40):
        grid.sql("INSERT INTO t VALUES (?, ?)", n, None if n % 7 == 0 else value(n % 20))
    if index is not None:
        grid.sql(f"CREATE INDEX i ON t (v) TYPE {index}")
    random = Random(type_)
    is_number = isinstance(value(1), int | float | Decimal) and type_ != "BOOLEAN"
    for count in (0, 1, 2, 5, 30):
        items = [value(random.randrange(30)) for _ in range(count)]
        if is_number and count:
            items += random.sample(OTHERS, 2)
        holes = ", ".join("?" * len(items))
        chosen = rows(grid, f"SELECT id FROM t WHERE v IN ({holes})", *items) if items else []
        others = rows(grid, f"SELECT id FROM t WHERE v NOT IN ({holes})", *items) if items else list(range(40))
        for given in (items, tuple(items)):
            assert rows(grid, "SELECT id FROM t WHERE v IN (?)", given) == chosen
            assert rows(grid, "SELECT id FROM t WHERE v = ANY(?)", given) == chosen
            assert rows(grid, "SELECT id FROM t WHERE v NOT IN (?)", given) == others
            assert rows(grid, "SELECT id FROM t WHERE v <> ALL(?)", given) == others


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "<>"])
def test_any_and_all_with_every_operator(grid: Grid, operator: str) -> None:
    grid.sql("CREATE TABLE t (id BIGINT, v INTEGER, PRIMARY KEY (id))")
    for n in range(10):
        grid.sql("INSERT INTO t VALUES (?, ?)", n, n)
    python = {"=": "==", "<>": "!="}.get(operator, operator)
    for items in ([], [4], [2, 7]):
        any_ = [n for n in range(10) if any(eval(f"{n} {python} {item}") for item in items)]
        all_ = [n for n in range(10) if all(eval(f"{n} {python} {item}") for item in items)]
        assert rows(grid, f"SELECT id FROM t WHERE v {operator} ANY(?)", items) == any_
        assert rows(grid, f"SELECT id FROM t WHERE v {operator} ALL(?)", items) == all_


def test_the_key_is_looked_up_in_its_partitions_only(grid: Grid) -> None:
    grid.sql("CREATE TABLE t (id BIGINT, v INTEGER, PRIMARY KEY (id))")
    for n in range(100):
        grid.sql("INSERT INTO t VALUES (?, ?)", n, n)
    said = str(grid.sql("EXPLAIN ANALYZE SELECT v FROM t WHERE id IN (?)", [3, 4, 5]).fetchall())
    written = str(grid.sql("EXPLAIN ANALYZE SELECT v FROM t WHERE id IN (3, 4, 5)").fetchall())
    for words in ("partitionedBy=[id]", "partitions=3"):
        assert (words in said) == (words in written), said


def test_lists_in_changes_by_name_and_as_arrays(grid: Grid) -> None:
    grid.sql("CREATE TABLE t (id BIGINT, day DATE, PRIMARY KEY (id))")
    for n in range(10):
        grid.sql("INSERT INTO t VALUES (?, ?)", n, dt.date(2024, 1, n + 1))
    assert rows(grid, "SELECT id FROM t WHERE id IN (:wanted)", {"wanted": {1, 2}}) == [1, 2]
    assert rows(grid, "SELECT id FROM t WHERE id IN (?, ?)", np.array([1, 2]), 7) == [1, 2, 7]
    assert rows(grid, "SELECT id FROM t WHERE day IN (?)", ["2024-01-02", dt.date(2024, 1, 3)]) == [1, 2]
    assert grid.sql("UPDATE t SET day = NULL WHERE id IN (?)", [1, 2, 99]).update_count == 2
    assert grid.sql("DELETE FROM t WHERE id = ANY(?)", [1, 2, 3]).update_count == 3
    assert rows(grid, "SELECT id FROM t WHERE id IN (?)", 4) == [4]


@pytest.mark.parametrize(
    ("text", "value", "message", "sqlstate"),
    [
        ("SELECT id FROM t WHERE id = ANY(?)", 5, "ANY(?) takes a list of values, not an int", "42804"),
        ("SELECT id FROM t WHERE id IN (?)", [1, "x"], "parameter 1: 'x' is not a value of type BIGINT", "22P02"),
        ("SELECT id FROM t WHERE id = ?", [1], "parameter 1: a value of Python type list cannot be used", "42804"),
        ("SELECT ?", [1], "a value of Python type list cannot be used in SQL", "42804"),
        ("INSERT INTO t VALUES (?)", [1], "parameter 1: a value of Python type list cannot be used", "42804"),
    ],
)
def test_a_list_in_another_place(grid: Grid, text: str, value: Any, message: str, sqlstate: str) -> None:
    grid.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
    with pytest.raises(SqlError) as caught:
        grid.sql(text, value).fetchall()
    assert caught.value.message.startswith(message)
    assert caught.value.sqlstate == sqlstate
    assert caught.value.position is not None


@pytest.mark.parametrize("text", ["ts > now() - ?", "now() - ? < ts", "ts >= CAST(now() AS TIMESTAMP) - ?"])
def test_an_interval_is_subtracted_from_now(grid: Grid, text: str) -> None:
    grid.sql("CREATE TABLE t (id BIGINT, ts TIMESTAMP, PRIMARY KEY (id))")
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    for hours in range(5):
        grid.sql("INSERT INTO t VALUES (?, ?)", hours, now - dt.timedelta(hours=hours, minutes=1))
    assert rows(grid, f"SELECT id FROM t WHERE {text}", dt.timedelta(hours=2)) == [0, 1]
    assert rows(grid, f"SELECT id FROM t WHERE {text}", dt.timedelta(hours=4)) == [0, 1, 2, 3]
