"""Remuda's leaf fragments in Spark tasks, against Spark itself and against a job that does nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.case import REMUDA, Case, Setting
from benchmarks.peers import remuda_peer
from benchmarks.peers.spark_peer import SparkPeer

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERIES = {
    "group by status": "SELECT status, COUNT(*), SUM(amount) FROM orders GROUP BY status",
    "filter 1 %": "SELECT id, amount FROM orders WHERE qty < 1",
}
BY_KEY = "SELECT id, amount * 2 FROM orders WHERE id = 4711"


def cases(setting: Setting) -> Iterator[Case]:
    if not setting.with_spark:
        return
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name:
        spark = SparkPeer(setting.data, Path(name))
        with remuda_peer.create(str(Path(name) / "grid.remuda"), spark=spark.session) as grid:
            yield Case(
                "Spark load, two indexes",
                {
                    REMUDA: lambda: grid.load("orders", spark.dataframe, mode="replace"),
                    "Spark buckets, sorted": spark.write_buckets,
                },
                same_answers=False,
            )
            grid.load("orders", spark.dataframe, mode="replace")
            grid.sql("SET engine = spark")
            for title, sql in QUERIES.items():
                yield Case(
                    f"Spark gather: {title}",
                    {
                        REMUDA: lambda sql=sql: grid.sql(sql).fetchall(),  # type: ignore[misc]
                        "Spark cached": lambda sql=sql: spark.rows(sql, "cached"),  # type: ignore[misc]
                        "Spark Parquet": lambda sql=sql: spark.rows(sql, "parquet"),  # type: ignore[misc]
                    },
                )
            group = QUERIES["group by status"]
            yield Case(
                "Spark gather: against an empty job",
                {REMUDA: lambda: grid.sql(group).fetchall(), "empty job": spark.empty_job},
                same_answers=False,
            )
            source = spark.read_maps(str(Path(name) / "grid.remuda"))
            yield Case(
                "Spark data source: by key",
                {
                    REMUDA: lambda: source.where("id = 4711").collect(),
                    "Spark Parquet": lambda: spark.dataframe.where("id = 4711").collect(),
                },
            )
            grid.sql("SET engine = auto")
            yield Case(
                "key, engine = auto",
                {
                    REMUDA: lambda: grid.sql(BY_KEY).fetchall(),
                    "Spark cached": lambda: spark.rows(BY_KEY, "cached"),
                    "Spark Parquet": lambda: spark.rows(BY_KEY, "parquet"),
                },
            )
        spark.session.stop()
