"""DESCRIBE and SHOW COLUMNS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid

COLUMNS = [("id", "BIGINT", False, True), ("line", "INTEGER", False, True), ("price", "DECIMAL(10, 2)", True, False)]


@pytest.fixture
def grid() -> Iterator[Grid]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE lines (id BIGINT, price DECIMAL(10, 2), line INTEGER, PRIMARY KEY (id, line))")
        grid.sql("CREATE VIEW dear AS SELECT line, price * 2 AS twice FROM lines")
        yield grid


@pytest.mark.parametrize(
    "statement", ["DESCRIBE lines", "DESC LINES", "DESCRIBE TABLE public.lines;", "SHOW COLUMNS FROM lines"]
)
def test_a_map_is_described_by_its_columns(grid: Grid, statement: str) -> None:
    result = grid.sql(statement)
    assert [column.name for column in result.columns] == ["column_name", "column_type", "nullable", "key"]
    assert sorted(map(tuple, result)) == COLUMNS


def test_a_view_and_a_query(grid: Grid) -> None:
    assert grid.sql("DESCRIBE dear").fetchall() == [
        ("line", "INTEGER", False, False),
        ("twice", "DECIMAL(12, 2)", True, False),
    ]
    assert grid.sql("DESCRIBE SELECT COUNT(*) AS n, MAX(price) FROM lines").fetchall() == [
        ("n", "BIGINT", False, False),
        ("MAX(price)", "DECIMAL(10, 2)", True, False),
    ]


def test_a_map_that_is_not_there(grid: Grid) -> None:
    with pytest.raises(SqlError, match="unknown table: nothing, at line 1, column 10") as caught:
        grid.sql("DESCRIBE nothing")
    assert caught.value.code is ErrorCode.OBJECT_NOT_FOUND
