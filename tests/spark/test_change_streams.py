"""`spark.readStream.format("remuda")` and the option `changes`: versions of a map as they come."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import PySparkException

import remuda
import remuda.spark
from remuda.storage.folder import kept_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid


@pytest.fixture
def grid(tmp_path: Path, spark: SparkSession) -> Iterator[Grid]:
    remuda.spark.register(spark)
    with remuda.open(tmp_path / "shop", partitions=7) as opened:
        opened.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR)")
        yield opened


def committed(grid: Grid, *statements: str) -> int:
    for statement in statements:
        grid.sql(statement)
    grid.checkpoint()
    return max(row.version for row in grid.sql("SHOW VERSIONS"))


def reader(spark: SparkSession, grid: Grid, **options: Any) -> DataFrame:
    return spark.readStream.format("remuda").options(path=str(grid.store.path), map="t", **options).load()


class Target:
    """What a stream's batches make of a plain dictionary, which fails where a change does not fit."""

    def __init__(self, frame: DataFrame, checkpoint: Path) -> None:
        self.frame = frame
        self.checkpoint = checkpoint
        self.rows: dict[int, str | None] = {}
        self.changes: list[tuple[Any, ...]] = []

    def run(self) -> None:
        """Read all there is, from where the checkpoint says."""
        writer = self.frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    def _take(self, batch: DataFrame, _number: int) -> None:
        rows = batch.collect()
        self.changes += [(row._change_type, row.id, row.v, row._commit_version) for row in rows]
        for row in rows:
            if row._change_type in {"delete", "update_preimage"}:
                assert self.rows.pop(row.id) == row.v
        for row in rows:
            if row._change_type in {"insert", "update_postimage"}:
                assert row.id not in self.rows
                self.rows[row.id] = row.v


def test_a_stream_delivers_changes_across_restarts(spark: SparkSession, grid: Grid, tmp_path: Path) -> None:
    first = committed(grid, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    target = Target(reader(spark, grid, changes="delta"), tmp_path / "checkpoint")
    target.run()
    assert sorted(target.changes) == [("insert", 1, "a", first), ("insert", 2, "b", first), ("insert", 3, None, first)]
    target.changes.clear()
    target.run()
    assert target.changes == []
    second = committed(grid, "UPDATE t SET v = 'c' WHERE id = 2", "DELETE FROM t WHERE id = 3")
    grid.sql("INSERT INTO t VALUES (4, 'only in the log')")
    target.run()
    expected = {("update_preimage", 2, "b"), ("update_postimage", 2, "c"), ("delete", 3, None)}
    assert set(target.changes) == {(*each, second) for each in expected}
    assert target.rows == {1: "a", 2: "c"}


@pytest.mark.slow
def test_random_writes_arrive_exactly(spark: SparkSession, grid: Grid, tmp_path: Path) -> None:
    draw = random.Random(5)
    target = Target(reader(spark, grid, changes="delta", tasks=3), tmp_path / "checkpoint")
    for step in range(8):
        for _ in range(draw.randrange(1, 3)):
            values = ", ".join(f"({key}, 'v{step}')" for key in draw.sample(range(30), 12))
            committed(grid, f"SINK INTO t VALUES {values}", f"DELETE FROM t WHERE id % 7 = {draw.randrange(7)}")
        target.run()
        assert target.rows == dict(grid.sql("SELECT id, v FROM t").fetchall())


def test_a_feed_is_applied_to_another_map(spark: SparkSession, grid: Grid, tmp_path: Path) -> None:
    grid.sql("CREATE TABLE copy (id BIGINT PRIMARY KEY, v VARCHAR)")
    committed(grid, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    options = {"path": str(grid.store.path), "map": "copy", "mode": "apply", "changes": "delta"}
    for _ in range(2):
        writer = reader(spark, grid, changes="delta").writeStream.format("remuda").options(**options)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        assert sorted(grid.sql("SELECT * FROM copy").fetchall()) == sorted(grid.sql("SELECT * FROM t").fetchall())
        committed(grid, "DELETE FROM t WHERE id = 1", "UPDATE t SET v = 'z'", "SINK INTO t VALUES (3, 'c')")


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="PySpark 4.1 runs one batch, the one that was begun")
def test_a_batch_that_was_begun_is_not_the_last(spark: SparkSession, grid: Grid, tmp_path: Path) -> None:
    """A stream ends with the version that was the newest at its start, whatever a killed driver has left to do."""
    grid.sql("CREATE TABLE copy (id BIGINT PRIMARY KEY, v VARCHAR)")
    options = {"path": str(grid.store.path), "map": "copy", "mode": "apply", "changes": "delta"}
    checkpoint = tmp_path / "checkpoint"
    for step in range(3):
        committed(grid, f"SINK INTO t VALUES (1, 'v{step}'), ({step + 2}, 'w')", f"DELETE FROM t WHERE id = {step + 1}")
        writer = reader(spark, grid, changes="delta").writeStream.format("remuda").options(**options)
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        assert sorted(grid.sql("SELECT * FROM copy").fetchall()) == sorted(grid.sql("SELECT * FROM t").fetchall())
        for path in (checkpoint / "commits").glob(f"*{step}*"):
            path.unlink()


def test_rows_alone_are_for_maps_that_only_grow(spark: SparkSession, grid: Grid, tmp_path: Path) -> None:
    def run() -> list[Any]:
        rows: list[Any] = []
        writer = reader(spark, grid, since="newest" if since_newest else "0", columns="v").writeStream
        writer = writer.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        return rows

    since_newest = True
    committed(grid, "INSERT INTO t VALUES (1, 'a')")
    assert run() == []
    committed(grid, "INSERT INTO t VALUES (2, 'b')")
    assert run() == [("b",)]
    committed(grid, "UPDATE t SET v = 'c' WHERE id = 2")
    with pytest.raises(PySparkException, match="rows of t were updated or deleted"):
        run()


def test_versions_that_are_gone_are_named(
    spark: SparkSession, grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(grid, "INSERT INTO t VALUES (1, 'a')")
    target = Target(reader(spark, grid, changes="delta"), tmp_path / "checkpoint")
    target.run()
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 0)
    committed(grid, "INSERT INTO t VALUES (2, 'b')")
    committed(grid, "INSERT INTO t VALUES (3, 'c')")
    grid.sql("VACUUM")
    with pytest.raises(PySparkException, match=r"the changes of t after version \d+ are not known any more"):
        target.run()


def test_a_query_reads_the_changes_since_a_version(spark: SparkSession, grid: Grid) -> None:
    since = committed(grid, "INSERT INTO t VALUES (1, 'a')")
    committed(grid, "INSERT INTO t VALUES (2, 'b')")
    options = {"path": str(grid.store.path), "map": "t", "changes": "delta"}
    frame = spark.read.format("remuda").options(**options, since=since).load()
    assert frame.columns == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [(row.id, row._change_type) for row in frame.collect()] == [(2, "insert")]
    assert spark.read.format("remuda").options(**options).load().count() == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes": "debezium"}, "are read as delta, not as 'debezium'"),
        ({"changes": "delta", "since": "yesterday"}, 'since is the number of a version, 0 or "newest"'),
        ({"since": "1"}, "since belongs to the changes of a map"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    spark: SparkSession, grid: Grid, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        spark.read.format("remuda").options(path=str(grid.store.path), map="t", **options).load().collect()
