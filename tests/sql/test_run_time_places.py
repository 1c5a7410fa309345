"""Errors of values that are known only when the statement runs: they too are at their place in the text."""

from __future__ import annotations

import pytest

import remuda
from remuda.errors import Position, SqlError


@pytest.mark.parametrize(
    ("text", "parameters", "column", "message"),
    [
        ("SELECT id FROM t LIMIT ?", (-1,), 24, "LIMIT must not be negative"),
        ("SELECT id FROM t WHERE id > ? ORDER BY id LIMIT ?", (0, -1), 49, "LIMIT must not be negative"),
        ("SELECT id FROM t ORDER BY id LIMIT 1 OFFSET ?", (None,), 45, "OFFSET must not be NULL"),
        ("SELECT 1, split_part('a', '-', ?)", (0,), 11, "parts are counted from 1, or from -1 at the end"),
        ("SELECT 1, split_part('a', '-', 0)", (), 11, "parts are counted from 1, or from -1 at the end"),
        ("SELECT id << ? FROM t", (-1,), 8, "a shift takes a number of bits that is not negative"),
    ],
)
def test_the_place_of_a_parameter(text: str, parameters: tuple[int | None, ...], column: int, message: str) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id INTEGER, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t VALUES (1), (2)")
        with pytest.raises(SqlError) as caught:
            list(grid.sql(text, *parameters))
    assert (caught.value.message, caught.value.position) == (message, Position(1, column))
