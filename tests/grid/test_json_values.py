"""What Python values become in a JSON column, by a parameter, a literal and the key-value face alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import remuda
from remuda.errors import SqlError


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE t (id BIGINT, j JSON, PRIMARY KEY (id))")
        yield opened


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (5, "5"),
        (Decimal("1.50"), "1.50"),
        (dt.datetime(2024, 1, 31), '"2024-01-31T00:00:00"'),
        (pd.Timestamp("2024-01-31"), '"2024-01-31T00:00:00"'),
        ({"at": pd.Timestamp("2024-01-31"), "no": pd.NaT}, '{"at":"2024-01-31T00:00:00","no":null}'),
        (np.int64(5), "5"),
        (np.bool_(True), "true"),
        (np.array([1.5, 2.5]), "[1.5,2.5]"),
        ({"n": np.float32(0.5)}, '{"n":0.5}'),
        (pd.NaT, None),
        (pd.NA, None),
    ],
)
def test_a_python_value_for_json(grid: Any, value: Any, stored: str | None) -> None:
    grid.sql("SINK INTO t VALUES (1, ?)", value)
    assert grid.sql("SELECT j FROM t WHERE id = 1").fetchone() == (stored,)
    grid.map("t").put(2, {"j": value})
    assert grid.map("t")[2] == (stored,)


@pytest.mark.parametrize(
    ("literal", "stored"),
    [
        ("5", "5"),
        ("1.5", "1.5"),
        ("TRUE", "true"),
        ("DATE '2024-01-31'", '"2024-01-31"'),
        ("TIMESTAMP '2024-01-31 10:00:00'", '"2024-01-31 10:00:00"'),
        ("INTERVAL '36 hours'", '"1 day 12:00:00"'),
        ("'{\"a\": 1}'", '{"a": 1}'),
    ],
)
def test_a_literal_for_json(grid: Any, literal: str, stored: str) -> None:
    grid.sql(f"SINK INTO t VALUES (1, {literal})")
    assert grid.sql("SELECT j FROM t WHERE id = 1").fetchone() == (stored,)
    assert grid.sql(f"SELECT j = {literal} FROM t WHERE id = 1").fetchone() == (True,)


def test_what_is_no_json(grid: Any) -> None:
    endless: dict[str, Any] = {}
    endless["itself"] = endless
    for value in (object(), endless, "not JSON"):
        with pytest.raises(SqlError, match="is not JSON"):
            grid.sql("SINK INTO t VALUES (1, ?)", value)
    with pytest.raises(SqlError, match=r"INTEGER is not stored in the column j of type JSON[^$]*Use to_json"):
        grid.sql("SINK INTO t SELECT 1, n FROM (VALUES (1)) AS q (n)")
