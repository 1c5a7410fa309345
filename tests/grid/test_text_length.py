"""A column of VARCHAR(n) holds no text of more than n characters, however it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from remuda.grid import Grid


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    """A folder that was closed and opened again: the length is part of what is kept."""
    with remuda.open(tmp_path / "grid") as made:
        made.sql("CREATE TABLE t (id INTEGER, code VARCHAR(3), PRIMARY KEY (id))")
        made.sql("INSERT INTO t VALUES (1, 'abc'), (2, NULL)")
    with remuda.open(tmp_path / "grid") as opened:
        yield opened


def table(*codes: str | None) -> pa.Table:
    return pa.table({"id": range(10, 10 + len(codes)), "code": list(codes)})


WRITES: dict[str, Callable[[Grid, str], Any]] = {
    "insert": lambda grid, code: grid.sql("INSERT INTO t VALUES (5, ?)", code),
    "insert of many": lambda grid, code: grid.sql(
        "INSERT INTO t SELECT n, CASE n WHEN 900 THEN ? ELSE 'x' END FROM generate_series(5, 999) AS s (n)", code
    ),
    "sink": lambda grid, code: grid.sql("SINK INTO t VALUES (1, ?)", code),
    "update": lambda grid, code: grid.sql("UPDATE t SET code = ?", code),
    "conflict": lambda grid, code: grid.sql(
        "INSERT INTO t VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET code = ?", code
    ),
    "put": lambda grid, code: grid.map("t").put(1, (code,)),
    "put of several": lambda grid, code: grid.map("t").put_all({1: ("x",), 3: (code,)}),
    "load": lambda grid, code: grid.load("t", table("x", code)),
    "load of categories": lambda grid, code: grid.load(
        "t", table("x", code).set_column(1, "code", pa.array(["x", code]).dictionary_encode())
    ),
    "load in place of all": lambda grid, code: grid.load("t", table("x", None, code), mode="replace"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_a_longer_text_is_refused_and_nothing_is_written(grid: Grid, write: Callable[[Grid, str], Any]) -> None:
    with pytest.raises(SqlError, match=r"t\.code \(VARCHAR\(3\)\) cannot hold 'éabc': it has 4 characters") as failure:
        write(grid, "éabc")
    assert failure.value.code is ErrorCode.DATA_EXCEPTION
    assert sorted(grid.sql("SELECT id, code FROM t")) == [(1, "abc"), (2, None)]


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_a_text_of_that_many_characters_is_taken(grid: Grid, write: Callable[[Grid, str], Any]) -> None:
    write(grid, "éab")
    assert ("éab",) in [tuple(row) for row in grid.sql("SELECT code FROM t")]


def test_the_length_can_be_asked_for(grid: Grid) -> None:
    columns = "id INTEGER, a CHAR(2), b CHAR, c CHARACTER VARYING, d DATETIME, e DEC(5, 2)"
    grid.sql(f"CREATE TABLE u ({columns}, CONSTRAINT u_key PRIMARY KEY (id))")
    asked = "SELECT column_name, data_type, character_maximum_length FROM information_schema.columns"
    assert [tuple(row) for row in grid.sql(f"{asked} WHERE table_name = 'u'")] == [
        ("id", "INTEGER", None),
        ("a", "VARCHAR", 2),
        ("b", "VARCHAR", 1),
        ("c", "VARCHAR", None),
        ("d", "TIMESTAMP", None),
        ("e", "DECIMAL(5, 2)", None),
    ]
