"""Statements that are nested more deeply than they can be planned, compiled or explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid


DEEP, DEEPER = "+".join(["id"] * 350), "+".join(["id"] * 450)
"""Not too deep for the parser and the binder, but for the compiler of expressions; and for printing a plan, too."""


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    with remuda.open(members=2) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO m VALUES (1, 2)")
        yield grid


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT {DEEP} FROM m",
        f"SELECT id FROM m WHERE {DEEP} > 5",
        f"UPDATE m SET n = {DEEP}",
        f"EXPLAIN SELECT {DEEPER} FROM m",
    ],
    ids=["select", "where", "update", "explain"],
)
def test_what_is_nested_too_deeply_says_so(grid: Grid, statement: str) -> None:
    """Whichever part of the way to an answer is the first that cannot follow it down."""
    with pytest.raises(SqlError) as caught:
        grid.sql(statement)
    assert (caught.value.code, caught.value.message) == (ErrorCode.PARSING, "the statement is nested too deeply")
    assert grid.sql("SELECT id, n FROM m").fetchall() == [(1, 2)]


def test_so_does_a_query_that_is_only_explained(grid: Grid) -> None:
    with pytest.raises(SqlError, match="the statement is nested too deeply"):
        grid.explain(f"SELECT {DEEPER} FROM m")


def test_a_hundred_set_operations_are_not_too_deep(grid: Grid) -> None:
    assert grid.sql(" EXCEPT ".join(["SELECT id FROM m"] * 100)).fetchall() == []
