"""COPY of CSV files: with names in the first line or without, other separators, a text for NULL."""

from __future__ import annotations

from pathlib import Path

import pytest

import remuda
from remuda.errors import SqlError


@pytest.fixture
def grid() -> remuda.Grid:
    opened = remuda.open()
    opened.sql("CREATE TABLE t (id BIGINT, name VARCHAR, qty INTEGER, PRIMARY KEY (id))")
    return opened


def test_file_without_names_in_the_maps_order(grid: remuda.Grid, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("1;ann;5\n2;;-\n3;-;7\n", encoding="utf-8")
    grid.sql(f"COPY t FROM '{file}' (HEADER false, DELIMITER ';', NULL '-')")
    rows = [tuple(row) for row in grid.sql("SELECT id, name, qty FROM t ORDER BY id")]
    assert rows == [(1, "ann", 5), (2, "", None), (3, None, 7)]


def test_format_says_what_the_name_does_not(grid: remuda.Grid, tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("qty|id|name\n5|1|ann\n", encoding="utf-8")
    grid.sql(f"COPY t FROM '{file}' WITH (FORMAT csv, HEADER, DELIMITER '|')")
    assert [tuple(row) for row in grid.sql("SELECT id, name, qty FROM t")] == [(1, "ann", 5)]


def test_written_as_asked(grid: remuda.Grid, tmp_path: Path) -> None:
    grid.sql("INSERT INTO t VALUES (1, 'ann', 5), (2, NULL, NULL)")
    file = tmp_path / "out.csv"
    grid.sql(f"COPY (SELECT id, qty FROM t ORDER BY id) TO '{file}' (HEADER off, DELIMITER ';')")
    assert file.read_text(encoding="utf-8") == "1;5\n2;\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("DELIMITER ';;'", "DELIMITER takes one character"),
        ("FORMAT parquet, HEADER", "HEADER is an option of CSV files"),
        ("FORMAT xml", "FORMAT must be parquet, csv, json, arrow or feather, not xml"),
        ("HEADER maybe", "HEADER must be true, false, on or off, not maybe"),
        ("NULL 5", "a text in quotes"),
    ],
)
def test_wrong_options(grid: remuda.Grid, tmp_path: Path, options: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as failure:
        grid.sql(f"COPY t FROM '{tmp_path / 'rows.csv'}' ({options})")
    assert failure.value.span is not None
