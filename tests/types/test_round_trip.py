"""Every type of a column: written, read, exported, loaded and opened again, always the same value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.errors import SqlError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127],
    "SMALLINT": [-(2**15), 2**15 - 1],
    "INTEGER": [-(2**31), 2**31 - 1],
    "BIGINT": [-(2**63), 2**63 - 1],
    "DECIMAL(10, 2)": [Decimal("-99999999.99"), Decimal("0.01")],
    "DECIMAL(38, 10)": [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001")],
    "REAL": [0.5, math.inf],
    "DOUBLE": [0.1, -1e300],
    "VARCHAR": ["", "Ünïcode 🐎 'quoted'"],
    "VARBINARY": [b"", b"\x00\xff"],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "TIME": [dt.time(0), dt.time(23, 59, 59, 999_999)],
    "TIMESTAMP": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)],
    "TIMESTAMP WITH TIME ZONE": [dt.datetime(2024, 1, 1, 5, 30, tzinfo=EAST), dt.datetime(1969, 1, 1, tzinfo=dt.UTC)],
    "JSON": ['{"a": [1, 2.5, null]}', '"text"'],
}


def written(grid: Any, type_: str) -> list[tuple[int, Any]]:
    grid.sql(f"CREATE TABLE source (id INTEGER, value {type_}, PRIMARY KEY (id))")
    rows = list(enumerate([*VALUES[type_], None]))
    for row in rows:
        assert grid.sql("INSERT INTO source VALUES (?, ?)", *row).update_count == 1
    return rows


def read(grid: Any, name: str) -> list[tuple[int, Any]]:
    return [tuple(row) for row in grid.sql(f"SELECT id, value FROM {name} ORDER BY id")]


@pytest.mark.parametrize("type_", VALUES)
def test_values_come_back(type_: str, tmp_path: Path) -> None:
    path = str(tmp_path / "types.remuda")
    with remuda.open(path) as grid:
        rows = written(grid, type_)
        assert read(grid, "source") == rows
        for number, value in rows[:-1]:
            found = [row.id for row in grid.sql("SELECT id FROM source WHERE value = ?", value)]
            assert found == [number]
        table = grid.sql("SELECT id, value FROM source").to_arrow()
        grid.sql(f"CREATE TABLE target (id INTEGER, value {type_}, PRIMARY KEY (id))")
        grid.load("target", table)
        assert read(grid, "target") == rows
    with remuda.open(path) as grid:
        result = grid.sql("SELECT value FROM target")
        assert str(result.columns[0].type) == type_
        assert read(grid, "source") == read(grid, "target") == rows


@pytest.mark.parametrize("type_", VALUES)
def test_a_value_of_each_type_is_a_key(type_: str) -> None:
    with remuda.open(members=2) as grid:
        grid.sql(f"CREATE TABLE keyed (id {type_}, n INTEGER, PRIMARY KEY (id))")
        for number, value in enumerate(VALUES[type_]):
            grid.sql("INSERT INTO keyed VALUES (?, ?)", value, number)
        for number, value in enumerate(VALUES[type_]):
            assert [row.n for row in grid.sql("SELECT n FROM keyed WHERE id = ?", value)] == [number]


@pytest.mark.parametrize("type_", [type_ for type_ in VALUES if type_ != "TIME"])  # which Spark has behind a setting
def test_spark_has_the_type(type_: str, spark: SparkSession) -> None:
    with remuda.open() as grid:
        rows = written(grid, type_)
        result = grid.sql("SELECT value FROM source")
        named = result.columns[0].type.spark
        table = grid.sql("SELECT value FROM source ORDER BY id").to_arrow()
        frame = spark.createDataFrame(table, schema=f"value {named}")
        assert frame.schema[0].dataType.simpleString() == named
        assert frame.toArrow().column(0).to_pylist() == table.column(0).to_pylist()
        assert frame.count() == len(rows)


def test_json_is_checked_when_it_is_loaded() -> None:
    import pyarrow as pa

    with remuda.open() as grid:
        grid.sql("CREATE TABLE events (id BIGINT, body JSON, PRIMARY KEY (id))")
        with pytest.raises(SqlError, match=r"events\.body.*'\{', row 2"):
            grid.load("events", pa.table({"id": [1, 2], "body": ["{}", "{"]}))
        assert read_count(grid) == 0
        grid.load("events", pa.table({"id": [1, 2], "body": ["{}", None]}))
        assert read_count(grid) == 2
        grid.map("events").put(3, {"body": "[1]"})
        with pytest.raises(SqlError, match="is not JSON"):
            grid.map("events").put(4, {"body": "[1"})


def read_count(grid: Any) -> int:
    return int(next(iter(grid.sql("SELECT COUNT(*) FROM events")))[0])
