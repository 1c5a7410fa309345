"""Statements as other systems have them: each is refused with its SQLSTATE, its place, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import remuda

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from remuda import Grid


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, name VARCHAR, ok BOOLEAN, ts TIMESTAMP, PRIMARY KEY (id))")
        yield grid


HABITS = [
    ("INSERT IGNORE INTO t VALUES (1)", "42601", 8, "Use INSERT INTO ... ON CONFLICT DO NOTHING."),
    ("REPLACE INTO t VALUES (1)", "0A000", 1, "Use SINK INTO, or INSERT ... ON CONFLICT (key) DO UPDATE."),
    ("UPDATE t SET id = 2", "0A000", 14, "INSERT the row under its new key, DELETE the old one."),
    ("SELECT * FROM t WHERE id = 1 && ok", "0A000", 28, "Conditions are joined by AND."),
    ("SELECT * FROM t WHERE ok = 1", "42804", 23, "A BOOLEAN is a condition by itself: write x, or NOT x."),
    (
        "SELECT * FROM t WHERE ts > 1700000000",
        "42804",
        23,
        "Convert seconds since 1970 by to_timestamp(x), or the moment by epoch(x).",
    ),
    ("SELECT strftime('%Y', ts) FROM t", "22007", 17, "The form comes second: strftime(ts, '%Y')."),
    ("SELECT id FROM t, t AS u", "42702", 8, "Write t.id or u.id."),
    ("EXPLAIN ANALYSE SELECT 1", "42601", 9, "ANALYZE"),
    ("CREATE INDEX i ON t (lower(name))", "0A000", 27, "Keep the value in a column of its own, and index that."),
    ("CREATE INDEX i ON t (name) WHERE ok", "0A000", 28, None),
    ("DROP INDEX by_nam", "42704", 12, None),
]


@pytest.mark.parametrize(("text", "sqlstate", "column", "suggestion"), HABITS)
def test_a_habit_is_answered(grid: Grid, text: str, sqlstate: str, column: int, suggestion: str | None) -> None:
    with pytest.raises(remuda.SqlError) as caught:
        grid.sql(text).fetchall()
    error = caught.value
    assert (error.sqlstate, error.suggestion) == (sqlstate, suggestion)
    assert error.position is not None
    assert error.position.column == column


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM t WHERE ts > to_timestamp(1)", "SELECT * FROM t WHERE NOT ok", "SELECT epoch(ts) > 1 FROM t"],
)
def test_what_is_advised_works(grid: Grid, text: str) -> None:
    assert grid.sql(text).fetchall() == []


def test_a_file_in_from_is_told_how_to_be_loaded(grid: Grid) -> None:
    for text in ("SELECT * FROM 'sales.parquet'", "SELECT * FROM read_parquet('sales.parquet')"):
        with pytest.raises(remuda.SqlError) as caught:
            grid.sql(text)
        assert "grid.load(name, path, key=...)" in (caught.value.suggestion or "")


def test_copy_into_no_table_says_what_creates_it(grid: Grid) -> None:
    with pytest.raises(remuda.SqlError, match="unknown table: sales") as caught:
        grid.sql("COPY sales FROM 'sales.parquet'")
    assert "grid.load('sales', 'sales.parquet', key=...)" in (caught.value.suggestion or "")
    with pytest.raises(remuda.SqlError, match="unknown table: tt") as caught:
        grid.sql("COPY tt FROM 'sales.parquet'")


@pytest.mark.parametrize("address", ["s3://bucket/x", "https://example.com/x.parquet"])
def test_a_load_from_an_address_is_left_to_arrow(grid: Grid, address: str) -> None:
    with pytest.raises(remuda.SqlError) as caught:
        grid.load("x", address, key="id")
    assert caught.value.message == f"{address} is an address, and files are loaded from paths"
    assert caught.value.sqlstate == "0A000"
    assert "pyarrow.dataset.dataset(address)" in (caught.value.suggestion or "")


def test_the_advised_dataset_of_an_address_is_loaded(grid: Grid, tmp_path: Path) -> None:
    import pyarrow.dataset as ds

    grid.sql(f"COPY (SELECT 1 AS id) TO '{tmp_path / 'x.parquet'}'")
    assert grid.load("from_address", ds.dataset((tmp_path / "x.parquet").as_uri()), key="id") == 1


def test_the_article_of_a_type(grid: Grid) -> None:
    with pytest.raises(remuda.SqlError, match="a statement is text, not an int"):
        grid.sql(5)  # type: ignore[arg-type]
