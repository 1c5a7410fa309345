"""Statements of extreme size and shape are answered or refused."""

from __future__ import annotations

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from tests.hostile.processes import run_apart


@pytest.fixture
def grid() -> remuda.Grid:
    opened = remuda.open()
    opened.sql("CREATE TABLE t (id BIGINT, s VARCHAR, PRIMARY KEY (id))")
    opened.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return opened


def test_ten_megabytes_of_text(grid: remuda.Grid) -> None:
    text = "it''s " * 2_000_000
    (row,) = grid.sql(f"SELECT length('{text}') FROM t WHERE id = 1").fetchall()
    assert row[0] == 10_000_000


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT " + "+".join(["1"] * 5_000_000),
        "SELECT " + "(" * 5_000_000 + "1" + ")" * 5_000_000,
        "/*" * 5_000_000,
        "SELECT id FROM t WHERE id IN (" + ",".join(map(str, range(1_300_000))) + ")",
        "INSERT INTO t VALUES " + ",".join(f"({number},'x')" for number in range(1_000_000)),
        "\n" * 10_000_000,
        "SELECT " + "x" * 10_000_000,
    ],
    ids=["sum", "parentheses", "comments", "list", "rows", "lines", "name"],
)
def test_ten_megabytes_of_code_are_refused(grid: remuda.Grid, statement: str) -> None:
    with pytest.raises(SqlError, match="characters outside of quotes") as caught:
        grid.sql(statement)
    assert caught.value.code is ErrorCode.PARSING
    assert len(str(caught.value)) < 1_000


def test_thousands_of_parameters_and_columns(grid: remuda.Grid) -> None:
    marks = ",".join("?" * 10_000)
    assert grid.sql(f"SELECT count(*) FROM t WHERE id IN ({marks})", *range(10_000)).fetchone()[0] == 2
    grid.sql("CREATE TABLE wide (" + ",".join(f"c{number} BIGINT" for number in range(1_000)) + ", PRIMARY KEY (c0))")
    grid.sql(f"INSERT INTO wide VALUES ({','.join('?' * 1_000)})", *range(1_000))
    assert tuple(grid.sql("SELECT * FROM wide").fetchone()) == tuple(range(1_000))
    names = [f"c{number}" for number in range(1_000)]
    assert tuple(grid.sql(f"SELECT {', '.join(names)} FROM wide").fetchone()) == tuple(range(1_000))


@pytest.mark.parametrize("levels", [64, 3_000, 100_000])
@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        ("(", "1", ")"),
        ("-(", "1", ")"),
        ("CASE WHEN id = 1 THEN ", "1", " ELSE 2 END"),
        ("coalesce(", "id", ", 1)"),
        ("(SELECT ", "1", ")"),
    ],
)
def test_nesting(levels: int, before: str, middle: str, after: str) -> None:
    body = f"""
grid.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
print(grid.sql("SELECT " + {before!r} * {levels} + {middle!r} + {after!r} * {levels} + " FROM t").fetchall())
"""
    answer = run_apart(body)
    assert answer == "[]" or answer.startswith("refused 1008"), answer
    if levels == 64:
        assert answer == "[]"
