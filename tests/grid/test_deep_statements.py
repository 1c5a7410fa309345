"""Statements that are nested more deeply than they can be planned, compiled or explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    with remuda.open(members=2) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO m VALUES (1, 2), (2, 3), (5, 6)")
        yield grid


@pytest.mark.parametrize("terms", [330, 450])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT {} FROM m",
        "SELECT id FROM m WHERE {} > 5",
        "SELECT {}, COUNT(*) FROM m GROUP BY 1 ORDER BY 1",
        "UPDATE m SET n = {}",
        "EXPLAIN SELECT {} FROM m",
        "EXPLAIN ANALYZE SELECT {} FROM m",
    ],
)
def test_a_sum_is_computed_or_said_to_be_nested_too_deeply(grid: Grid, statement: str, terms: int) -> None:
    """Whichever part of the way to an answer is the first that cannot follow it down."""
    text = statement.format("+".join(["id"] * terms))
    try:
        grid.sql(text).fetchall()
    except SqlError as error:
        assert error.code is ErrorCode.PARSING
        assert error.message == "the statement is nested too deeply"
    assert grid.sql("SELECT COUNT(*) FROM m").fetchall() == [(3,)]


def test_a_query_that_is_only_explained(grid: Grid) -> None:
    with pytest.raises(SqlError, match="the statement is nested too deeply"):
        grid.explain(f"SELECT {'+'.join(['id'] * 450)} FROM m")


def test_hundreds_of_set_operations(grid: Grid) -> None:
    assert grid.sql(" EXCEPT ".join(["SELECT id FROM m"] * 150)).fetchall() == []
