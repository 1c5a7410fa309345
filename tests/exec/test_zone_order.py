"""The first rows of an order are right though most zones are left out by their zones; and most are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.exec.scan import zone_order
from remuda.optimizer import cost

ROWS = 80_000
COLUMNS = ("whole", "number", "moment", "price")
START = datetime(2024, 1, 1)


def _rows() -> dict[str, list[Any]]:
    random = np.random.default_rng(7)
    number = (random.normal(size=ROWS) * 1e6).tolist()
    whole: list[int | None] = random.integers(-(2**62), 2**62, ROWS).tolist()
    for place in random.integers(0, ROWS, 30).tolist():
        number[place] = math.nan
    for place in random.integers(0, ROWS, 50).tolist():
        whole[place] = None
    seconds = random.integers(0, 10**8, ROWS).tolist()
    return {
        "id": list(range(ROWS)),
        "whole": whole,
        "number": number,
        "moment": [START + timedelta(seconds=each) for each in seconds],
        "price": [Decimal(each).scaleb(-2) for each in random.integers(-(10**9), 10**9, ROWS).tolist()],
    }


@pytest.fixture(scope="module")
def grid() -> Iterator[remuda.Grid]:
    """With rows in a segment, some hidden by the log, the first of every order among them, and rows in the log."""
    with remuda.open() as opened:
        opened.sql(
            "CREATE TABLE m (id BIGINT, whole BIGINT, number DOUBLE, moment TIMESTAMP, price DECIMAL(12, 2),"
            " PRIMARY KEY (id))"
        )
        schema = pa.schema(
            [
                ("id", pa.int64()),
                ("whole", pa.int64()),
                ("number", pa.float64()),
                ("moment", pa.timestamp("us")),
                ("price", pa.decimal128(12, 2)),
            ]
        )
        opened.load("m", pa.table(_rows(), schema))
        for column in COLUMNS:
            for direction in ("ASC", "DESC"):
                ends = opened.sql(f"SELECT id FROM m WHERE {column} IS NOT NULL ORDER BY {column} {direction} LIMIT 3")
                for row in ends.fetchall()[::2]:
                    opened.sql("DELETE FROM m WHERE id = ?", row[0])
        for number in range(20):
            moment = START + timedelta(seconds=number)
            opened.sql("SINK INTO m VALUES (?, ?, ?, ?, ?)", number * 7, number, -1e9 - number, moment, Decimal(number))
        yield opened


def _place(value: Any, *, descending: bool, nulls_first: bool) -> tuple[Any, ...]:
    if value is None:
        return (0 if nulls_first else 2, 0, 0)
    if isinstance(value, datetime):
        value = (value - START).total_seconds()
    is_nan = value != value
    rank, value = (1, 0) if is_nan else (0, value)
    return (1, -rank, -value) if descending else (1, rank, value)


@pytest.fixture(scope="module")
def stored(grid: remuda.Grid) -> pa.Table:
    return grid.sql("SELECT * FROM m").to_arrow()


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize(("column", "nulls"), [("whole", "FIRST"), *((column, "LAST") for column in COLUMNS)])
def test_the_first_rows(
    grid: remuda.Grid, stored: pa.Table, monkeypatch: pytest.MonkeyPatch, column: str, nulls: str, direction: str
) -> None:
    first = {"descending": direction == "DESC", "nulls_first": nulls == "FIRST"}
    pairs = zip(stored.column(column).to_pylist(), stored.column("id").to_pylist(), strict=True)
    ids = [id_ for _, id_ in sorted((_place(value, **first), id_) for value, id_ in pairs)]
    for condition, expected in (("TRUE", ids), ("id % 97 = 5", [id_ for id_ in ids if id_ % 97 == 5])):
        text = f"SELECT id, {column} FROM m WHERE {condition} ORDER BY {column} {direction} NULLS {nulls}, id"
        for zones, count, skipped in ((64, 1, 0), (64, 10, 0), (1, 10, 45), (2, 700, 100)):
            monkeypatch.setattr(zone_order, "FIRST_ZONES", zones)
            found = grid.sql(f"{text} LIMIT {count} OFFSET {skipped}").fetchall()
            assert [row[0] for row in found] == expected[skipped : skipped + count]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few zones there are."""
    monkeypatch.setattr(cost, "ZONES_FOR_EACH", 0)


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_few_zones_are_read(direction: str) -> None:
    """The rows of each partition stand in the order of their keys."""
    with remuda.open(partitions=1) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.load("m", pa.table({"id": np.arange(ROWS), "n": np.arange(ROWS)}))
        lines = opened.sql(
            f"EXPLAIN ANALYZE SELECT id, n FROM m WHERE id % 2 = 0 ORDER BY n {direction} LIMIT 5"
        ).fetchall()
        read = [int(found[1]) for (line,) in lines if (found := re.search(r"rows read=(\d+)", line))]
        assert read
        assert max(read) <= 2 * 8192


def test_a_join_whose_other_side_is_kept_sees_all_rows() -> None:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE k (k BIGINT, PRIMARY KEY (k))")
        opened.load("m", pa.table({"id": np.arange(ROWS), "n": np.arange(ROWS)}))
        opened.load("k", pa.table({"k": np.arange(3)}))
        text = "SELECT k, n FROM m RIGHT JOIN k ON m.id = k.k ORDER BY n DESC LIMIT 10"
        assert sorted(opened.sql(text).fetchall()) == [(0, 0), (1, 1), (2, 2)]


def test_every_type_that_can_be_ordered() -> None:
    """Those without zones are read as a whole."""
    numbers = np.arange(ROWS)
    columns = {
        "json": ("JSON", pa.array([f'{{"a": {number}}}' for number in numbers.tolist()])),
        "flag": ("BOOLEAN", pa.array((numbers % 2 == 0).tolist())),
        "raw": ("VARBINARY", pa.array([str(number).encode() for number in numbers.tolist()])),
        "clock": ("TIME", pa.array(numbers * 1_000).cast(pa.time64("us"))),
        "text": ("VARCHAR", pa.array([f"s{number}" for number in numbers.tolist()])),
        "instant": ("TIMESTAMP WITH TIME ZONE", pa.array(numbers * 10**9).cast(pa.timestamp("us", "UTC"))),
        "short": ("REAL", pa.array(numbers.astype(np.float32) - 100)),
        "day": ("DATE", pa.array(numbers.astype(np.int32)).cast(pa.date32())),
    }
    with remuda.open() as opened:
        declared = ", ".join(f"{name} {sql_type}" for name, (sql_type, _) in columns.items())
        opened.sql(f"CREATE TABLE m (id BIGINT, {declared}, PRIMARY KEY (id))")
        opened.load("m", pa.table({"id": numbers} | {name: array for name, (_, array) in columns.items()}))
        for order in [*columns, "day - DATE '2000-01-01'", "CAST(id AS INTEGER) * INTERVAL '1' DAY"]:
            for direction in ("ASC", "DESC"):
                text = f"SELECT id FROM m ORDER BY {order} {direction}, id"
                every = opened.sql(text).to_arrow().column("id").to_pylist()
                assert [row[0] for row in opened.sql(f"{text} LIMIT 7").fetchall()] == every[:7]


def test_where_many_zones_would_be_needed_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "ZONES_FOR_EACH", 4)
    with remuda.open(partitions=1) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.load("m", pa.table({"id": np.arange(ROWS), "n": np.arange(ROWS)}))
        for count, least, most in ((2, 1, 3 * 8192), (3, ROWS, ROWS)):
            lines = opened.sql(f"EXPLAIN ANALYZE SELECT id, n FROM m ORDER BY n LIMIT {count}").fetchall()
            read = [int(found[1]) for (line,) in lines if (found := re.search(r"rows read=(\d+)", line))]
            assert least <= max(read) <= most
