"""docs/sql.md says what is so."""

from __future__ import annotations

import pytest

import remuda
from remuda.errors import SqlError
from tests.harness.page import examples, read_page


def test_every_example_gives_the_answer_beside_it() -> None:
    found = examples("sql.md")
    assert len(found) > 30
    with remuda.open(members=2) as grid:
        for example in found:
            example.check(grid)


def test_the_error_of_the_last_section() -> None:
    expected = read_page("sql.md").split("```")[-2].strip("\n")
    with remuda.open() as grid:
        grid.sql("CREATE TABLE items (id BIGINT, price DECIMAL(10, 2), qty INTEGER, PRIMARY KEY (id))")
        grid.sql("INSERT INTO items VALUES (1, 1, 0)")
        with pytest.raises(SqlError) as failure:
            grid.sql("SELECT price / qty FROM items").fetchall()
        assert str(failure.value) == expected
