"""SHOW SETTINGS, FUNCTIONS and KEYWORDS say what the engine accepts."""

from __future__ import annotations

import pytest

import remuda
from remuda.errors import SqlError
from remuda.sql.parse.definition_parser import DEFINITIONS
from remuda.sql.vocabulary import KEYWORDS, functions


def test_every_function_is_known_to_the_binder() -> None:
    """A call without arguments may be refused for its arguments, never because the function is unknown."""
    with remuda.open() as grid:
        for name, kind in functions().items():
            text = f"SELECT * FROM {name}()" if kind == "table" else f"SELECT {name}()"
            try:
                grid.sql(text).fetchall()
            except SqlError as error:
                assert "unknown function" not in error.message, name  # noqa: PT017


def test_a_function_that_does_not_exist_is_unknown() -> None:
    with remuda.open() as grid, pytest.raises(SqlError, match="unknown function"):
        grid.sql("SELECT no_such_thing()")


def test_keywords_have_the_words_of_every_statement() -> None:
    refused = {"ALTER", "MERGE", "UPSERT", "BEGIN", "START", "TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT"}
    assert {word for words, _ in DEFINITIONS for word in words} - refused <= set(KEYWORDS)
    assert {"SELECT", "INSERT", "SINK", "WITH", "VALUES", "EXPLAIN", "BIGINT", "DECIMAL", "TABLES"} <= set(KEYWORDS)
    with remuda.open() as grid:
        assert tuple(row.word for row in grid.sql("SHOW KEYWORDS")) == KEYWORDS


def test_settings_are_shown_as_set_takes_them() -> None:
    with remuda.open() as grid:
        before = {row.name: row.value for row in grid.sql("SHOW SETTINGS")}
        for name, value in before.items():
            grid.sql(f"SET {name} = '{value}'")
        assert {row.name: row.value for row in grid.sql("SHOW SETTINGS")} == before
        grid.sql("SET timeout = 2.5")
        grid.sql("SET memory_limit = '1KiB'")
        grid.sql("SET partition_pruning = off")
        shown = {row.name: row.value for row in grid.sql("SHOW SETTINGS")}
        assert (shown["timeout"], shown["memory_limit"], shown["partition_pruning"]) == ("2.5", "1024", "off")
        with grid.session() as other:
            assert {row.name: row.value for row in other.sql("SHOW SETTINGS")} == before
