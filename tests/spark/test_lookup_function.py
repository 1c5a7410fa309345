"""The SQL function `remuda_lookup`, against Spark's own joins."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

import remuda
import remuda.spark
from remuda.spark.frames import lookup_function

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.grid import Grid


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture
def grid(session: SparkSession, tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda") as opened:
        opened.sql(
            "CREATE TABLE customers (id BIGINT, name VARCHAR, city VARCHAR, balance DECIMAL(10, 2), born DATE, "
            "seen TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))"
        )
        opened.sql("CREATE INDEX by_city ON customers (city) TYPE HASH")
        opened.sql(
            "INSERT INTO customers SELECT i, 'n' || i, 'c' || (i % 5), i / 4, DATE '2000-01-01' + i, "
            "TIMESTAMP WITH TIME ZONE '2024-03-10 12:00:00+00' FROM generate_series(1, 40) AS s(i)"
        )
        opened.checkpoint()
        opened.sql("UPDATE customers SET name = 'changed', city = NULL WHERE id % 9 = 0")
        rows = [(n, k, f"c{n % 7}") for n, k in enumerate([*range(0, 60, 2), None])]
        frame = session.createDataFrame(rows, "n INT, k BIGINT, town STRING").repartition(3)
        frame.createOrReplaceTempView("lookup_orders")
        customers = session.read.format("remuda").options(path=str(opened.store.path), map="customers").load()
        customers.createOrReplaceTempView("lookup_customers")
        yield opened


def rows_of(session: SparkSession, sql: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in session.sql(sql).collect()), key=repr)


def call(grid: Grid, arguments: str, table: str = "lookup_orders") -> str:
    return f"SELECT * FROM remuda_lookup(TABLE({table}), '{grid.store.path}', 'customers', {arguments})"


@pytest.mark.parametrize(
    ("arguments", "join"),
    [
        ("map('k', 'id')", "SELECT o.*, c.name, city, balance, born, seen FROM {} ON k = id"),
        ("'k', columns => 'name, born', how => 'inner'", "SELECT o.*, name, born FROM {inner} ON k = id"),
        (
            "'town', columns => map('id', 'customer'), index => 'by_city'",
            "SELECT o.*, id FROM {} ON town = city",
        ),
        ("'town', columns => array(), index => 'by_city', how => 'inner'", "SELECT o.* FROM {inner} ON town = city"),
    ],
)
def test_the_function_gives_what_a_join_gives(session: SparkSession, grid: Grid, arguments: str, join: str) -> None:
    expected = join.format(
        "lookup_orders o LEFT JOIN lookup_customers c", inner="lookup_orders o JOIN lookup_customers c"
    )
    assert rows_of(session, call(grid, arguments)) == rows_of(session, expected)


def test_rows_beyond_one_batch_and_partitions_without_rows(session: SparkSession, grid: Grid) -> None:
    many = lookup_function._ROWS * 2 + 5
    session.range(many, numPartitions=1).createOrReplaceTempView("lookup_many")
    by_id = "'id', columns => 'name'"
    assert rows_of(session, f"SELECT COUNT(*), COUNT(name) FROM ({call(grid, by_id, 'lookup_many')})") == [(many, 40)]
    session.range(3, numPartitions=5).createOrReplaceTempView("lookup_few")
    assert len(rows_of(session, call(grid, by_id, "lookup_few"))) == 3


def test_each_query_sees_the_newest_version(session: SparkSession, grid: Grid) -> None:
    session.sql(call(grid, "'k', how => 'inner'")).createOrReplaceTempView("lookup_view")
    for number in range(2):
        grid.sql("UPDATE customers SET name = ?", f"round {number}")
        assert rows_of(session, "SELECT DISTINCT name FROM lookup_view") == [(f"round {number}",)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_keys_that_are_moments(session: SparkSession, tmp_path: Path, zone: str) -> None:
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    try:
        with remuda.open(tmp_path / "moments.remuda") as grid:
            grid.sql("CREATE TABLE customers (at TIMESTAMP WITH TIME ZONE, n BIGINT, PRIMARY KEY (at))")
            grid.sql("INSERT INTO customers VALUES (?, 1)", moment)
            session.createDataFrame([(moment,), (None,)], "at TIMESTAMP").createOrReplaceTempView("lookup_moments")
            looked_up = call(grid, "'at'", "lookup_moments")
            assert rows_of(session, f"SELECT n FROM ({looked_up})") == [(1,), (None,)]
    finally:
        session.conf.set("spark.sql.session.timeZone", before or "UTC")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'nothing'", "the DataFrame has no column nothing"),
        ("'town'", "the keys are VARCHAR, and id is BIGINT: cast them first"),
        ("'k', how => 'outer'", "how must be one of left, inner"),
        ("'k', columns => map('name', 'town')", "the frame has a column town already"),
        ("CAST(NULL AS STRING)", "on of remuda_lookup is a constant"),
    ],
)
def test_what_cannot_be_is_refused_when_the_query_is_planned(
    session: SparkSession, grid: Grid, arguments: str, message: str
) -> None:
    with pytest.raises(Exception, match=message):
        session.sql(call(grid, arguments))
