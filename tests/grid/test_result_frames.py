"""Results as pandas and Polars data frames, dictionaries and JSON: exact values in types that can be used."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

import remuda
from remuda.errors import SqlError

BIG = 2**63 - 1


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql(
            "CREATE TABLE m (id BIGINT, n BIGINT, d DATE, p DECIMAL(12, 2), t TIME, b BOOLEAN, PRIMARY KEY (id))"
        )
        rows = [
            (1, BIG, dt.date(2024, 2, 29), Decimal("1.25"), dt.time(1, 2, 3, 4), True),
            (2, BIG - 2, dt.date(1, 1, 1), Decimal("-0.10"), dt.time(0), False),
            (3, 7, dt.date(9999, 12, 31), Decimal("9999999999.99"), dt.time(23, 59, 59, 999999), True),
        ]
        for row in rows:
            opened.sql("INSERT INTO m VALUES (?, ?, ?, ?, ?, ?)", *row)
        yield opened


def series(grid: Any, expression: str, where: str = "true") -> pd.Series:
    return grid.sql(f"SELECT {expression} AS x FROM m WHERE {where} ORDER BY id").df()["x"]


def test_a_sum_of_integers_is_int64_where_it_fits(grid: Any) -> None:
    fits = grid.sql("SELECT SUM(n) AS x FROM m WHERE id = 3").df()["x"]
    assert (str(fits.dtype), fits.tolist()) == ("int64", [7])
    at_the_end = grid.sql("SELECT SUM(n) AS x FROM m WHERE id = 1").df()["x"]
    assert (str(at_the_end.dtype), at_the_end.tolist()) == ("int64", [BIG])
    beyond = grid.sql("SELECT SUM(n) AS x FROM m").df()["x"]
    assert str(beyond.dtype) == "decimal128(38, 0)[pyarrow]"
    assert beyond.tolist() == [Decimal(BIG) + (BIG - 2) + 7]
    nothing = grid.sql("SELECT SUM(n) AS x FROM m WHERE false").df()["x"]
    assert (str(nothing.dtype), nothing.isna().tolist()) == ("Int64", [True])
    least = grid.sql("SELECT SUM(-n - 1) AS x FROM m WHERE id = 1").df()["x"]
    assert (str(least.dtype), least.tolist()) == ("int64", [-(2**63)])


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("n", "int64"),
        ("NULLIF(n, 7)", "Int64"),
        ("CAST(NULLIF(n % 5, 2) AS TINYINT)", "Int8"),
        ("d", "datetime64[ms]"),
        ("NULLIF(d, DATE '2024-02-29')", "datetime64[ms]"),
        ("p", "decimal128(12, 2)[pyarrow]"),
        ("t", "time64[us][pyarrow]"),
        ("b", "bool"),
        ("NULLIF(b, false)", "boolean"),
        ("CAST(n AS DOUBLE)", "float64"),
    ],
)
def test_no_column_of_numbers_or_moments_is_an_object(grid: Any, expression: str, dtype: str) -> None:
    found = series(grid, expression)
    assert str(found.dtype) == dtype
    expected = [row[0] for row in grid.sql(f"SELECT {expression} FROM m ORDER BY id")]
    values = [None if pd.isna(value) else value for value in found.tolist()]
    assert [value.date() if isinstance(value, dt.datetime) else value for value in values] == [
        pd.Timestamp(value).date() if isinstance(value, dt.date) else value for value in expected
    ]


def test_numbers_can_be_computed_with_and_compared(grid: Any) -> None:
    frame = grid.sql("SELECT id, p, d, SUM(n) OVER () AS total, COUNT(*) OVER () AS rows FROM m ORDER BY id").df()
    assert [pd.api.types.is_numeric_dtype(frame[name]) for name in frame] == [True, True, False, True, True]
    plotted = grid.sql("SELECT id, SUM(n % 5) AS total, COUNT(*) AS rows FROM m GROUP BY id").df()
    assert plotted.select_dtypes("number").columns.tolist() == ["id", "total", "rows"], "what DataFrame.plot takes"
    assert frame["p"].astype(float).tolist() == [1.25, -0.1, 9999999999.99]
    assert frame["p"].sum() == Decimal("10000000001.14")
    assert (frame["d"] > "2000-01-01").tolist() == [True, False, True]


def test_two_columns_of_one_name(grid: Any) -> None:
    text = "SELECT id AS a, id + 1 AS a, 5 AS b FROM m ORDER BY id"
    frame = grid.sql(text).df()
    assert frame.columns.tolist() == ["a", "a", "b"]
    assert frame.iloc[:, 1].tolist() == [2, 3, 4]
    assert grid.sql(text).arrow().column_names == ["a", "a", "b"]
    for read in ("pl", "dicts", "json"):
        result = grid.sql(text)
        with pytest.raises(SqlError, match="two columns are called a"):
            getattr(result, read)()
        assert len(result.fetchall()) == 3, "nothing was read"


def test_frames_without_rows_and_without_columns(grid: Any) -> None:
    frame = grid.sql("SELECT id, d, p, SUM(n) AS s FROM m WHERE false GROUP BY id, d, p").df()
    assert (frame.columns.tolist(), len(frame)) == (["id", "d", "p", "s"], 0)
    assert grid.sql("DELETE FROM m WHERE false").df().shape == (0, 0)


def test_polars_keeps_decimals_and_dates(grid: Any) -> None:
    frame = grid.sql("SELECT d, p, SUM(n) OVER () AS s FROM m ORDER BY id").pl()
    assert [str(dtype) for dtype in frame.dtypes] == [
        "Date",
        "Decimal(precision=12, scale=2)",
        "Decimal(precision=38, scale=0)",
    ]
    assert frame["s"].to_list()[0] == Decimal(BIG) + (BIG - 2) + 7


def test_dictionaries_and_json(grid: Any) -> None:
    rest = "x'0aff' AS raw, 'naïve' AS s, NULL AS nothing, CAST('NaN' AS DOUBLE) AS nan"
    text = f"SELECT id, d, p, t, b, {rest} FROM m WHERE id = 1"
    (row,) = grid.sql(text).dicts()
    assert (row["d"], row["p"], row["raw"], row["nothing"]) == (dt.date(2024, 2, 29), Decimal("1.25"), b"\n\xff", None)
    assert json.loads(grid.sql(text).json()) == [
        {
            "id": 1,
            "d": "2024-02-29",
            "p": "1.25",
            "t": "01:02:03.000004",
            "b": True,
            "raw": "0aff",
            "s": "naïve",
            "nothing": None,
            "nan": "NaN",
        }
    ]
    assert grid.sql("SELECT id FROM m WHERE false").json() == "[]"
