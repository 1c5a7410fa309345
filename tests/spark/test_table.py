"""Maps as data frames by `remuda.spark.table`, against the rows of the map and what Spark makes of their size."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import remuda
import remuda.spark
from remuda.errors import SqlError
from remuda.spark.frames.map_frame import _estimate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid

ROWS = 1_000


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda") as opened:
        opened.sql(
            "CREATE TABLE orders (id BIGINT, status VARCHAR, amount DECIMAL(10, 2), ts TIMESTAMP WITH TIME ZONE, "
            "PRIMARY KEY (id))"
        )
        opened.sql(
            "INSERT INTO orders SELECT i, NULLIF('s' || (i % 4), 's3'), i / 8, TIMESTAMP '2024-01-01 00:00:00' "
            f"FROM generate_series(1, {ROWS}) AS s(i)"
        )
        opened.checkpoint()
        opened.sql("DELETE FROM orders WHERE id % 10 = 0")
        opened.sql("UPDATE orders SET status = 'late' WHERE id = 7")
        yield opened


def explained(frame: DataFrame, capsys: pytest.CaptureFixture[str], mode: str = "simple") -> str:
    capsys.readouterr()
    frame.explain(mode)
    return capsys.readouterr().out


@pytest.mark.parametrize("tasks", [None, 1, 7, 1_000])
def test_the_frame_has_the_rows_of_the_map(spark: SparkSession, grid: Grid, tasks: int | None) -> None:
    frame = remuda.spark.table(spark, str(grid.store.path), "orders", tasks=tasks)
    plain = spark.read.format("remuda").options(path=str(grid.store.path), map="orders").load()
    assert frame.schema == plain.schema
    assert sorted(frame.collect()) == sorted(plain.collect())
    assert frame.rdd.getNumPartitions() == min(tasks or spark.sparkContext.defaultParallelism, grid.store.partitions)


def test_columns_are_pruned_and_ordered(spark: SparkSession, grid: Grid, capsys: pytest.CaptureFixture[str]) -> None:
    frame = remuda.spark.table(spark, str(grid.store.path), "orders", columns=["amount", "ID"])
    assert frame.columns == ["amount", "id"]
    expected = grid.sql("SELECT amount, id FROM orders").fetchall()
    assert sorted(tuple(row) for row in frame.collect()) == sorted(tuple(row) for row in expected)
    assert "remuda_table orders full scan (amount, id)" in explained(frame, capsys)


def test_each_query_reads_the_newest_version(spark: SparkSession, grid: Grid) -> None:
    frame = remuda.spark.table(spark, str(grid.store.path), "orders", columns=["id"])
    before = frame.count()
    grid.sql("INSERT INTO orders (id) VALUES (?)", ROWS + 1)
    assert frame.count() == before + 1
    assert frame.where(f"id = {ROWS + 1}").count() == 1
    grid.sql("DROP TABLE orders")
    grid.sql("CREATE TABLE orders (id VARCHAR, PRIMARY KEY (id))")
    with pytest.raises(Exception, match="made anew with other columns"):
        frame.count()


def size_of(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> float:
    """The bytes that Spark expects of the root of the plan."""
    found = re.search(r"sizeInBytes=([\d.]+) (\w*B)", explained(frame, capsys, "cost"))
    assert found is not None
    return float(found[1]) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(found[2])


def test_a_small_map_is_broadcast_and_a_large_one_is_not(
    spark: SparkSession, grid: Grid, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(grid.store.path)
    grid.sql("CREATE TABLE events (id BIGINT, n BIGINT, PRIMARY KEY (id))")
    grid.load("events", pa.table({"id": pa.array(range(300_000)), "n": pa.array(range(300_000))}))
    small = remuda.spark.table(spark, path, "orders", columns=["id", "amount"])
    large = remuda.spark.table(spark, path, "events")
    joined = large.join(small, "id")
    assert size_of(small, capsys) == pytest.approx(900 * (8 + 8 + 16), rel=0.5)
    assert size_of(large, capsys) == pytest.approx(300_000 * 24, rel=0.5)
    assert re.search(r"BroadcastHashJoin .*BuildRight", explained(joined, capsys))
    assert joined.count() == 900
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10000")
    try:
        assert "BroadcastHashJoin" not in explained(large.join(small, "id"), capsys)
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before or "10m")


@pytest.mark.parametrize("size", [0, 100, 10**7, 10**8, 10**9, 10**10])
def test_spark_counts_the_size_that_is_meant(
    spark: SparkSession, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    step, binaries = _estimate(size, 4)
    assert step * 4 <= 1_000_004
    rows = spark.range(0, step * 4, 1, 4).where(f"id % {step} = 0")
    if binaries:
        fields = ", ".join(f"b{number}: BINARY" for number in range(binaries))
        rows = rows.selectExpr("id", f"CAST(NULL AS STRUCT<{fields}>) AS width")
    assert size_of(rows, capsys) == pytest.approx(max(size, 32), rel=0.25)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["amuont"]}, "orders has no column amuont"),
        ({"columns": "amount"}, "columns are a list of names"),
        ({"columns": []}, "a frame has at least one column"),
        ({"version": 99}, "there is no version 99"),
        ({"tasks": 0}, "tasks must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_is_refused(spark: SparkSession, grid: Grid, options: dict[str, object], message: str) -> None:
    with pytest.raises(SqlError, match=message):
        remuda.spark.table(spark, str(grid.store.path), "orders", **options)
