"""Remuda's fragments in Spark tasks, against Spark itself and against a job that does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import remuda
from remuda.bench.case import REMUDA, Case, Setting
from remuda.bench.peers import remuda_peer
from remuda.errors import RemudaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from remuda.bench.peers.spark_peer import SparkPeer

ONE_PERCENT = "SELECT id, amount FROM orders WHERE qty < 1"
GROUPS = {
    "group by 5 values": "SELECT status, COUNT(*), SUM(amount) FROM orders GROUP BY status",
    "group by 100 values": "SELECT qty, COUNT(*), SUM(amount) FROM orders GROUP BY qty",
}
MEETINGS = {
    "millions of groups": (
        "SELECT COUNT(*), MAX(n) FROM (SELECT customer, qty, COUNT(*) AS n FROM orders GROUP BY customer, qty) AS t"
    ),
    "big join, groups": (
        "SELECT a.status, COUNT(*), SUM(b.amount) FROM orders a JOIN orders b ON a.id + 1 = b.id AND a.qty < b.qty "
        "GROUP BY a.status"
    ),
    "window": ("SELECT MAX(t), COUNT(*) FROM (SELECT SUM(qty) OVER (PARTITION BY customer) AS t FROM orders) AS x"),
}
EVERY_ROW = "qty >= 0"
FEW_ROWS = "SELECT id, amount FROM orders WHERE amount < 50"
BY_KEY = "SELECT id, amount * 2 FROM orders WHERE id = 4711"
BY_INDEX = "SELECT id, amount FROM orders WHERE customer = 'C47'"


def cases(setting: Setting) -> Iterator[Case]:
    try:
        spark = setting.peers.find("Spark")
    except RemudaError as error:  # pyspark without a Java
        print(f"Spark is left out: {error}")
        return
    if spark is None:
        return
    path = str(spark.folder / "grid.remuda")
    with remuda_peer.create(path, spark=spark.session) as grid:
        yield from _loads(grid, spark, path)
        grid.load("orders", spark.dataframe, mode="replace")
        grid.sql("SET engine = spark")
        yield from _gathers(grid, spark)
        for title, sql in MEETINGS.items():
            yield _against_spark(f"Spark, rows that meet: {title}", sql, grid, spark)
        source = spark.read_maps(path)
        yield Case(
            "Spark data source: by key",
            {
                REMUDA: lambda: source.where("id = 4711").collect(),
                "Spark Parquet": lambda: spark.dataframe.where("id = 4711").collect(),
            },
        )
        grid.sql("SET engine = auto")
        yield from _without_a_job(grid, spark, path)


def _loads(grid: Any, spark: SparkPeer, path: str) -> Iterator[Case]:
    """Tasks read Parquet files themselves; the rows of a query come through Spark, and those of `df.write` always do.

    "computing" is the query alone, its rows thrown away: the lower bound of each load that asks Spark for them.
    """
    query = spark.dataframe.where(EVERY_ROW)
    yield Case(
        "Spark load, two indexes",
        {
            REMUDA: lambda: grid.load("orders", spark.dataframe, mode="replace"),
            "Spark buckets, sorted": lambda: spark.write_buckets(spark.dataframe),
        },
        same_answers=False,
    )
    yield Case(
        "Spark load of a query, two indexes",
        {
            REMUDA: lambda: grid.load("orders", query, mode="replace"),
            "df.write": lambda: spark.write_map(query, path),
            "Spark buckets, sorted": lambda: spark.write_buckets(query),
            "computing": lambda: spark.compute(query),
        },
        same_answers=False,
    )


def _gathers(grid: Any, spark: SparkPeer) -> Iterator[Case]:
    yield Case(
        "Spark gather: filter 1 %, to Arrow",
        {
            REMUDA: lambda: grid.sql(ONE_PERCENT).to_arrow(),
            "Spark cached": lambda: spark.arrow(ONE_PERCENT, "cached"),
            "Spark Parquet": lambda: spark.arrow(ONE_PERCENT, "parquet"),
        },
    )
    for title, sql in GROUPS.items():
        yield _against_spark(f"Spark gather: {title}", sql, grid, spark)
    yield Case(
        "Spark gather: few rows of two tasks",
        {REMUDA: lambda: grid.sql(FEW_ROWS).fetchall(), "empty job": spark.empty_job},
        same_answers=False,
    )


def _against_spark(name: str, sql: str, grid: Any, spark: SparkPeer) -> Case:
    return Case(
        name,
        {
            REMUDA: lambda: grid.sql(sql).fetchall(),
            "Spark cached": lambda: spark.rows(sql, "cached"),
            "Spark Parquet": lambda: spark.rows(sql, "parquet"),
        },
    )


def _without_a_job(grid: Any, spark: SparkPeer, path: str) -> Iterator[Case]:
    """Measure plans that stay in this process: for these a Spark session must cost nothing."""
    with remuda.open(path, read_only=True) as alone:
        for title, sql in {"key": BY_KEY, "index": BY_INDEX}.items():
            yield Case(
                f"{title}, engine = auto",
                {
                    REMUDA: lambda sql=sql: grid.sql(sql).fetchall(),  # type: ignore[misc]
                    "without Spark": lambda sql=sql: alone.sql(sql).fetchall(),  # type: ignore[misc]
                    "Spark cached": lambda sql=sql: spark.rows(sql, "cached"),  # type: ignore[misc]
                },
            )
