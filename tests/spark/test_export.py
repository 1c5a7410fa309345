"""`remuda.spark.export`, and maps as they were: the options `version` and `timestamp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import remuda
import remuda.spark
from remuda.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from remuda.grid import Grid


@pytest.fixture
def grid(tmp_path: Path, spark: SparkSession) -> Iterator[Grid]:
    remuda.spark.register(spark)
    with remuda.open(tmp_path / "shop") as opened:
        opened.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR, at TIMESTAMP)")
        opened.sql("INSERT INTO t VALUES (1, 'a', TIMESTAMP '2024-07-01 12:00:00'), (2, NULL, NULL)")
        opened.checkpoint()
        yield opened


def newest(grid: Grid) -> Any:
    return max(grid.sql("SHOW VERSIONS").fetchall(), key=lambda row: row.version)


def test_a_map_is_exported_as_it_is_and_as_it_was(spark: SparkSession, grid: Grid, tmp_path: Path) -> None:
    before = newest(grid)
    grid.sql("UPDATE t SET v = 'b' WHERE id = 2")
    target = str(tmp_path / "parquet")
    remuda.spark.export(grid.store.path, "t", target, spark=spark)
    rows = pq.read_table(target).sort_by("id")
    assert rows.to_pydict()["v"] == ["a", "b"]
    assert rows.column("at")[0].as_py().isoformat() == "2024-07-01T12:00:00"
    with pytest.raises(PySparkException, match="PATH_ALREADY_EXISTS"):
        remuda.spark.export(grid.store.path, "t", target, spark=spark)
    named = {"mode": "overwrite", "columns": ["id", "v"], "version": before.version}
    remuda.spark.export(grid.store.path, "t", target, spark=spark, **named, options={"compression": "gzip"})
    assert sorted(pq.read_table(target).to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": None},
    ]
    with pytest.raises(SqlError, match="this Spark has no writer for delta"):
        remuda.spark.export(grid.store.path, "t", target, spark=spark, format="delta")


def test_a_frame_reads_a_version_whenever_it_is_used(spark: SparkSession, grid: Grid) -> None:
    before = newest(grid)
    options = {"path": str(grid.store.path), "map": "t"}
    frames = [
        remuda.spark.table(spark, grid.store.path, "t", version=before.version),
        spark.read.format("remuda").options(**options, version=before.version).load(),
        spark.read.format("remuda").options(**options, timestamp=before.committed.isoformat()).load(),
    ]
    grid.sql("UPDATE t SET v = 'b'")
    grid.checkpoint()
    for frame in frames:
        assert sorted((row.id, row.v) for row in frame.collect()) == [(1, "a"), (2, None)]
    assert spark.read.format("remuda").options(**options).load().where("v = 'b'").count() == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"format": "avro"}, "format must be one of parquet, delta, iceberg, not 'avro'"),
        ({"mode": "upsert"}, "mode must be one of errorifexists, overwrite, append, ignore, not 'upsert'"),
        ({"version": 9999}, "there is no version 9999"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    spark: SparkSession, grid: Grid, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(SqlError, match=message):
        remuda.spark.export(grid.store.path, "t", str(tmp_path / "out"), spark=spark, **given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": "t", "version": "1", "timestamp": "2024-01-01"}, "say version or timestamp, not both"),
        ({"map": "t", "version": "one"}, "version is the number of a version, not 'one'"),
        ({"map": "t", "timestamp": "noon"}, "timestamp is a time such as"),
        ({"query": "SELECT 1 AS one", "version": "1"}, "version and timestamp belong to the option map alone"),
    ],
)
def test_moments_that_mean_nothing_are_refused(
    spark: SparkSession, grid: Grid, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        spark.read.format("remuda").options(path=str(grid.store.path), **options).load().collect()
