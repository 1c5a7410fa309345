"""What the Tab key offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.cli.shell import HELP, Shell, completions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid


@pytest.fixture
def grid() -> Iterator[Grid]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, amount DOUBLE, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE Persons (id BIGINT, address VARCHAR, PRIMARY KEY (id))")
        grid.sql("CREATE VIEW originals AS SELECT id FROM orders")
        yield grid


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("or", ["or", "order", "orders", "originals"]),
        ("pers", ["Persons"]),
        ("a", ["all", "analyze", "and", "as", "asc", "address", "amount"]),
        ("orders.", ["orders.id", "orders.amount"]),
        ("ORDERS.a", ["ORDERS.amount"]),
        ("nothing.a", []),
        ("zz", []),
    ],
)
def test_what_completes_a_word(grid: Grid, word: str, found: list[str]) -> None:
    assert completions(grid, word) == found


def test_commands_only_begin_a_line(grid: Grid) -> None:
    assert completions(grid, "\\t", "\\t") == ["\\timing"]
    assert completions(grid, "\\t", "SELECT \\t") == []


@pytest.mark.parametrize("word", ["exit", "quit;", "EXIT"])
def test_words_of_other_shells(grid: Grid, word: str) -> None:
    shell = Shell(grid)
    assert shell.feed("help") == HELP
    shell.feed(word)
    assert shell.finished
