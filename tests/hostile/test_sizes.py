"""Results that explode in size are refused before they are made."""

from __future__ import annotations

from typing import Any

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from tests.hostile.processes import run_apart

TABLE = """
grid.sql("CREATE TABLE t (id BIGINT, s VARCHAR, PRIMARY KEY (id))")
grid.sql("INSERT INTO t SELECT i, repeat('ab', 15) FROM generate_series(1, 100) AS g(i)")
"""

OF_ONE = {
    "replace": "replace(repeat('x', 60000000), 'x', repeat('y', 60000000))",
    "replace by a column": "replace(repeat('x', 1000000), 'x', repeat('y', i * 1000000))",
    "regexp_replace": "regexp_replace(repeat('x', 1000000), 'x', repeat('y', 60000), 'g')",
    "regexp_replace of nothing": "regexp_replace(repeat('x', 1000000), '', repeat('y', 60000), 'g')",
    "regexp_replace of groups": r"regexp_replace(repeat('x', 60000000), '(.*)', repeat('\1', 1000), 'g')",
    "repeat": "repeat('xyz', 9223372036854775807)",
    "lpad": "lpad('x', 9223372036854775807)",
    "concat": "concat(repeat('x', 60000000), repeat('x', 60000000))",
    "concat_ws": "concat_ws(repeat('x', 60000000), 'a', 'b', 'c')",
    "||": "repeat('x', 60000000) || repeat('x', 60000000)",
    "overlay": "overlay(repeat('x', 60000000) PLACING repeat('y', 60000000) FROM 1)",
}


@pytest.mark.parametrize("name", OF_ONE)
def test_one_text_that_is_too_long(name: str) -> None:
    """In both evaluations: of one row, and of a column."""
    made = OF_ONE[name]
    for statement in (
        f"SELECT length({made}) FROM (SELECT 1 AS i) q",
        f"SELECT length({made}) FROM generate_series(1, 1) AS g(i)",
    ):
        answer = run_apart(f"print(grid.sql({statement!r}).fetchall())")
        assert answer.startswith("refused 2000 "), answer


OF_A_BATCH = {
    "replace": "replace(repeat(s, 1000), 'a', repeat('y', 10000))",
    "regexp_replace": "regexp_replace(repeat(s, 1000), 'a', repeat('y', 10000), 'g')",
    "repeat": "repeat(s, 2000000)",
    "repeat by a column": "repeat(s, 1000000 + id)",
    "lpad": "lpad(s, 67000000)",
    "lpad by two": "lpad(s, 67000000, 'ab')",
    "concat": "concat(repeat(s, 300000), repeat(s, 300000), repeat(s, 300000))",
    "||": "repeat(s, 400000) || repeat(s, 400000)",
    "concat_ws": "concat_ws(',', repeat(s, 500000), repeat(s, 500000))",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_A_BATCH)
def test_texts_of_a_batch_beyond_an_array(name: str) -> None:
    answer = run_apart(f'{TABLE}print(grid.sql("SELECT sum(length({OF_A_BATCH[name]})) FROM t").fetchall())', 12 << 30)
    assert answer.startswith("refused 2000 "), answer


OF_A_LIMIT = {
    "replace": "replace(repeat(s, 100), 'a', repeat('y', 1000))",
    "regexp_replace": "regexp_replace(repeat(s, 100), 'a', repeat('y', 1000), 'g')",
    "repeat": "repeat(s, 20000)",
    "repeat by a column": "repeat(s, 20000 + id)",
    "lpad": "lpad(s, 600000)",
    "lpad by two": "lpad(s, 600000, 'ab')",
    "concat": "concat(repeat(s, 7000), repeat(s, 7000), repeat(s, 7000))",
    "||": "repeat(s, 10000) || repeat(s, 10000)",
    "concat_ws": "concat_ws(',', repeat(s, 10000), repeat(s, 10000))",
    "string_agg": "string_agg(repeat(s, 15000), ',')",
}
"""Texts of 60 MB, of parts that have less than 50 MB each."""


@pytest.mark.parametrize("name", OF_A_LIMIT)
def test_texts_count_against_the_memory_limit(name: str) -> None:
    made = OF_A_LIMIT[name]
    measured = f"length({made})" if name == "string_agg" else f"sum(length({made}))"
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, s VARCHAR, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t SELECT i, repeat('ab', 15) FROM generate_series(1, 100) AS g(i)")
        assert grid.sql(f"SELECT {measured} FROM t").fetchone()[0] > 44_000_000
        grid.sql("SET memory_limit = '50MB'")
        with pytest.raises(SqlError, match="more memory than the limit") as caught:
            grid.sql(f"SELECT {measured} FROM t").fetchall()
        assert caught.value.code is ErrorCode.DATA_EXCEPTION


@pytest.mark.slow
def test_string_agg_beyond_an_array() -> None:
    answer = run_apart(
        f'{TABLE}print(grid.sql("SELECT string_agg(repeat(s, 1000000), id) FROM t").fetchall())', 12 << 30
    )
    assert answer.startswith("refused"), answer


def test_texts_below_the_limits_are_made() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, s VARCHAR, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t SELECT i, 'ab' FROM generate_series(1, 50) AS g(i)")
        for made, length in {
            "replace(repeat(s, 1000), 'a', 'xyz')": 4_000,
            "regexp_replace(repeat(s, 1000), '(a)', '<\\1>', 'g')": 4_000,
            "repeat(s, 100000)": 200_000,
            "lpad(s, 100000, 'é')": 100_000,
            "repeat(s, 1000) || repeat(s, 1000)": 4_000,
            "concat(s, NULL, repeat(s, 1000))": 2_002,
        }.items():
            assert grid.sql(f"SELECT sum(length({made})) FROM t").fetchone()[0] == 50 * length
            grid.sql("SET memory_limit = '100MB'")
            assert grid.sql(f"SELECT sum(length({made})) FROM t").fetchone()[0] == 50 * length


def test_create_table_as_of_a_cross_join() -> None:
    answer = run_apart(
        f"""{TABLE}
grid.sql("SET memory_limit = '50MB'")
grid.sql("CREATE TABLE big AS SELECT a.id AS x, b.id AS y, c.id AS z, d.id AS w FROM t a, t b, t c, t d")
""",
        3 << 30,
    )
    assert answer.startswith("refused 2000 the new table needs more memory"), answer


def test_create_table_as_beyond_the_memory_of_the_process() -> None:
    answer = run_apart(
        f"""{TABLE}
grid.sql("CREATE TABLE big AS SELECT a.id AS x, repeat(b.s, 1000) AS y FROM t a, t b, t c, t d")
""",
        2 << 30,
    )
    assert answer.startswith("refused 2000 "), answer


@pytest.mark.parametrize("value", [10**5_000, -(10**5_000), 10**38], ids=["many", "negative", "one too many"])
def test_integers_of_thousands_of_digits(value: int) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, d DECIMAL(38, 0), x DOUBLE, PRIMARY KEY (id))")
        for statement in (
            "SELECT ?",
            "SELECT ? + 1",
            "SELECT id FROM t WHERE d = ?",
            "SELECT id FROM t WHERE x < ?",
            "INSERT INTO t (id) VALUES (?)",
            "INSERT INTO t (id, d) VALUES (1, ?)",
            "SELECT CAST(? AS VARCHAR)",
        ):
            message = _refused(grid, statement, value)
            assert message is None or len(message) < 1_000


def _refused(grid: Any, statement: str, value: int) -> str | None:
    """The error in full; None where there is an answer. Nothing but Remuda's error is allowed."""
    try:
        grid.sql(statement, value).fetchall()
    except SqlError as error:
        return str(error)
    return None


LONG = "x" * 1_000_000
QUOTING: dict[str, tuple[str, list[Any]]] = {
    "integer": ("SELECT CAST(? AS BIGINT)", [LONG]),
    "decimal": ("SELECT CAST(? AS DECIMAL(10, 2))", [LONG]),
    "boolean": ("SELECT CAST(? AS BOOLEAN)", [LONG]),
    "date": ("SELECT CAST(? AS DATE)", [LONG]),
    "time": ("SELECT CAST(? AS TIME)", [LONG]),
    "interval": ("SELECT CAST(? AS INTERVAL DAY TO SECOND)", [LONG]),
    "json": ("SELECT CAST(? AS JSON)", [LONG]),
    "deep json": ("SELECT CAST(? AS JSON)", ["[" * 100_000]),
    "path": ("SELECT json_extract(CAST('{}' AS JSON), ?)", ["$." + "[" * 100_000]),
    "unhex": ("SELECT unhex(?)", [LONG]),
    "form": ("SELECT strptime(?, ?)", [LONG, "%Y" + "-" * 9_000]),
    "stored": ("INSERT INTO t (id) VALUES (?)", [LONG]),
    "duplicate": ("INSERT INTO u VALUES (?), (?)", [LONG, LONG]),
    "damaged": ("INSERT INTO u VALUES (?)", [LONG + "\ud800"]),
    "number": (f"SELECT {'9' * 5_000}", []),
    "constant": (f"SELECT CAST('{LONG}' AS BIGINT)", []),
    "compared": (f"SELECT id FROM t WHERE id = '{LONG}'", []),
    "format": ("SELECT to_char(TIMESTAMP '2024-01-01', ?)", ["YYYY" * 1_000_000]),
}


@pytest.mark.parametrize("name", QUOTING)
def test_messages_quote_the_beginning_of_a_value(name: str) -> None:
    statement, values = QUOTING[name]
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE u (k VARCHAR, PRIMARY KEY (k))")
        with pytest.raises(SqlError) as caught:
            grid.sql(statement, *values).fetchall()
        assert len(caught.value.message) < 700
        assert len(str(caught.value)) < 1_500
