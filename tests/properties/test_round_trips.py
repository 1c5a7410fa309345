"""Rows of every type through files and back: COPY TO, then COPY FROM or `Grid.load`, with block borders everywhere.

DuckDB writes files that Remuda reads, and reads those that Remuda writes.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import remuda
from remuda.grid.files import csv_files, json_files

TYPES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "INTEGER": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**63 - 1, -(2**63), 2**53 + 1]),
    "DECIMAL(38, 10)": st.decimals(-(10**28) + 1, 10**28 - 1, places=10),
    "DECIMAL(38, 0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "DECIMAL(5, 5)": st.decimals("-0.99999", "0.99999", places=5),
    "REAL": st.floats(width=32),
    "DOUBLE": st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308]),
    "VARCHAR": st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.text('",\n\r\t;\\{}[]:0x NULnul\0é😀', max_size=30)
    | st.sampled_from(
        ["", "NULL", "null", "NaN", "007", "1.50", "2024-01-01", "true", "x" * 300, '"', '""', "\n", ","]
    ),
    "VARBINARY": st.binary(max_size=20),
    "DATE": st.dates(),
    "TIME": st.times(),
    "TIMESTAMP": st.datetimes(),
    "TIMESTAMP WITH TIME ZONE": st.datetimes(timezones=st.just(dt.UTC)),
    "JSON": st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=8)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ).flatmap(lambda value: st.sampled_from([json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)])),
}
COLUMNS = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(TYPES))
ROWS = st.lists(st.tuples(*(st.none() | values for values in TYPES.values())), max_size=8)


def _equal(values: Any) -> str:
    """The rows in one order, in a form in which NaN and -0.0 are themselves."""
    return repr(sorted(map(tuple, values), key=repr))


@given(
    ROWS,
    st.sampled_from(["csv", "json", "parquet", "arrow", "feather"]),
    st.sampled_from([1, 3, 16, 64, 200, 1 << 20]),
    st.booleans(),
    st.sampled_from([",", ";", "\t", ".", " "]),
)
def test_rows_come_back_as_they_were(
    rows: list[tuple[Any, ...]], kind: str, block: int, header: bool, delimiter: str
) -> None:
    options = f"(HEADER {header}, DELIMITER '{delimiter}')" if kind == "csv" else ""
    with (
        tempfile.TemporaryDirectory() as folder,
        remuda.open() as grid,
        patch.object(csv_files, "CSV_BLOCK", max(block, 4)),
        patch.object(json_files, "JSON_BLOCK", block),
        patch.object(json_files, "JSON_CHUNK", max(block // 2, 1)),
    ):
        path = Path(folder) / f"rows.{kind}"
        for name in ("given", "copied", "loaded"):
            grid.sql(f"CREATE TABLE {name} ({COLUMNS})")
        for row in rows:
            grid.sql(f"INSERT INTO given VALUES ({', '.join('?' * len(row))})", *row)
        wanted = _equal(grid.sql("SELECT * FROM given"))
        assert grid.sql(f"COPY given TO '{path}' {options}").update_count == len(rows)
        assert grid.sql(f"COPY copied FROM '{path}' {options}").update_count == len(rows)
        assert _equal(grid.sql("SELECT * FROM copied")) == wanted
        if not options:
            assert grid.load("loaded", path) == len(rows)
            assert _equal(grid.sql("SELECT * FROM loaded")) == wanted


@given(st.lists(st.none() | TYPES["VARCHAR"], max_size=8), st.sampled_from([8, 1 << 20]))
def test_one_column_of_text(values: list[str | None], block: int) -> None:
    """A line of nothing is a row."""
    with (
        tempfile.TemporaryDirectory() as folder,
        remuda.open() as grid,
        patch.object(csv_files, "CSV_BLOCK", block),
    ):
        path = Path(folder) / "rows.csv"
        grid.sql("CREATE TABLE given (s VARCHAR)")
        grid.sql("CREATE TABLE found (s VARCHAR)")
        for value in values:
            grid.sql("INSERT INTO given VALUES (?)", value)
        grid.sql(f"COPY given TO '{path}'")
        grid.sql(f"COPY found FROM '{path}'")
        assert _equal(grid.sql("SELECT s FROM found")) == _equal((value,) for value in values)


_SHARED = [type_ for type_ in TYPES if type_ not in {"VARBINARY", "JSON"}]
"""DuckDB writes bytes in another form, and a document as an object."""
_DUCKDB = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ"}


def _for_duckdb(value: Any) -> Any:
    """DuckDB's text has no NUL in CSV, and its calendar no leap into the years before 1 when it shows an instant."""
    return value.replace("\0", "") if isinstance(value, str) else value


SHARED_ROWS = st.lists(
    st.tuples(*(st.none() | TYPES[type_].map(_for_duckdb) for type_ in _SHARED)), min_size=1, max_size=6
)


def _open_duckdb(columns: str) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"CREATE TABLE rows ({columns})")
    return database


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@given(rows=SHARED_ROWS, block=st.sampled_from([16, 100, 1 << 20]))
def test_files_of_duckdb(kind: str, rows: list[tuple[Any, ...]], block: int) -> None:
    types = [(f"c{number}", type_) for number, type_ in enumerate(_SHARED)]
    with (
        tempfile.TemporaryDirectory() as folder,
        _open_duckdb(", ".join(f"{name} {_DUCKDB.get(type_, type_)}" for name, type_ in types)) as database,
        remuda.open() as grid,
        patch.object(csv_files, "CSV_BLOCK", block),
        patch.object(json_files, "JSON_BLOCK", block),
    ):
        path = Path(folder) / f"rows.{kind}"
        for name in ("given", "found"):
            grid.sql(f"CREATE TABLE {name} ({', '.join(f'{name} {type_}' for name, type_ in types)})")
        for row in rows:
            grid.sql(f"INSERT INTO given VALUES ({', '.join('?' * len(row))})", *row)
            database.execute(f"INSERT INTO rows VALUES ({', '.join('?' * len(row))})", row)
        wanted = _equal(grid.sql("SELECT * FROM given"))
        database.execute(f"COPY rows TO '{path}' (FORMAT {kind})")
        assert grid.load("found", path) == len(rows)
        assert _equal(grid.sql("SELECT * FROM found")) == wanted
        ours = Path(folder) / f"ours.{kind}"
        grid.sql(f"COPY given TO '{ours}'")
        named = "{" + ", ".join(f"{name}: '{_DUCKDB.get(type_, type_)}'" for name, type_ in types) + "}"
        read = {
            "csv": f"read_csv('{ours}', columns = {named}, header = true, quote = '\"', escape = '\"', "
            "allow_quoted_nulls = false)",
            "json": f"read_json('{ours}', columns = {named}, format = 'newline_delimited')",
            "parquet": f"read_parquet('{ours}')",
        }[kind]
        theirs = database.execute(f"SELECT * FROM {read}").fetchall()
        mine = database.execute("SELECT * FROM rows").fetchall()
        assert _equal(theirs) == _equal(mine)
