"""A data frame over a map is fresh in each query and consistent within it, beside a writer that merges files away."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

import remuda
import remuda.spark
from remuda.errors import SqlError, StorageError
from remuda.spark.frames.lookup_frame import plan_lookup
from remuda.spark.source import planned_map, source_read
from remuda.spark.source.planned_map import PlannedMap
from remuda.storage.folder import execution_pin, kept_versions
from tests.spark.test_forgotten import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid

ROWS = 2_000


@pytest.fixture(autouse=True)
def without_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of old versions go with the last pin or lease, and not after the retention."""
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 0)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda") as opened:
        for name in ("orders", "copies"):
            opened.sql(f"CREATE TABLE {name} (id BIGINT, round BIGINT, PRIMARY KEY (id))")
            opened.sql(f"INSERT INTO {name} SELECT i, 0 FROM generate_series(1, {ROWS}) AS s(i)")
        yield opened


def frame_of(session: SparkSession, grid: Grid, name: str = "orders", **options: str) -> DataFrame:
    return session.read.format("remuda").options(path=str(grid.store.path), map=name, tasks="4", **options).load()


def test_each_query_over_one_frame_sees_the_newest_rows(session: SparkSession, grid: Grid) -> None:
    frame = frame_of(session, grid)
    frame.createOrReplaceTempView("pinned_orders")
    assert frame.count() == ROWS
    for number in (1, 2):
        grid.sql("INSERT INTO orders VALUES (?, 0)", ROWS + number)
        if number == 2:
            grid.checkpoint()
        assert frame.count() == ROWS + number
        assert frame.where(f"id = {ROWS + number}").count() == 1
        assert len(frame.limit(ROWS * 2).collect()) == ROWS + number
        assert session.sql("SELECT COUNT(*) AS n FROM pinned_orders").collect()[0].n == ROWS + number


def test_a_reused_frame_is_not_narrowed_by_the_filters_of_another_query(session: SparkSession, grid: Grid) -> None:
    """Spark keeps the filters that one query pushes down, and hands them to later queries over the frame."""
    before = session.conf.get("spark.sql.python.filterPushdown.enabled")
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = frame_of(session, grid)
        assert frame.where("id = 7").count() == 1
        assert frame.limit(ROWS * 2).count() == ROWS
        both = frame.where("id = 7").union(frame.where("id = 8"))
        assert sorted(row.id for row in both.collect()) == [7, 8]
        assert frame.where("id = 7").join(frame, "round").count() == ROWS
    finally:
        session.conf.set("spark.sql.python.filterPushdown.enabled", before or "false")
    with pytest.raises(Exception, match="filters are not pushed down"):
        frame_of(session, grid, pushFilters="true")


def rewrite_again_and_again(grid: Grid, stop: threading.Event) -> None:
    """Every statement changes all rows of a map, each second one makes the files before it superfluous."""
    number = 0
    while not stop.wait(0.02):
        number += 1
        grid.sql("UPDATE orders SET round = ?", number)
        grid.sql("UPDATE copies SET round = ?", number)
        if number % 2 == 0:
            grid.checkpoint()


SELF_JOIN = """SELECT /*+ %s(b) */ COUNT(*), SUM(IF(a.round = b.round, 0, 1))
FROM moving_orders a JOIN moving_orders b USING (id)"""
UNION = """SELECT COUNT(DISTINCT round), COUNT(*) FROM
(SELECT * FROM moving_orders WHERE id > 10 UNION ALL SELECT * FROM moving_orders WHERE id <= 10)"""
SUB_QUERY = "SELECT COUNT(*) FROM moving_orders WHERE round <> (SELECT MAX(round) FROM moving_orders)"
TWO_MAPS = """SELECT MAX(a.round - b.round) IN (0, 1), COUNT(DISTINCT a.round - b.round), COUNT(*)
FROM moving_orders a JOIN moving_copies b USING (id)"""
"""Between the two statements of a round the maps differ by one."""
CONSISTENT = {
    SELF_JOIN % "MERGE": [(ROWS, 0)],
    SELF_JOIN % "BROADCAST": [(ROWS, 0)],
    UNION: [(1, ROWS)],
    SUB_QUERY: [(0,)],
    TWO_MAPS: [(True, 1, ROWS)],
}


@pytest.mark.parametrize(("adaptive", "queries"), [("true", [*CONSISTENT]), ("false", [SELF_JOIN % "MERGE"])])
def test_all_tasks_of_a_query_read_one_version(
    session: SparkSession, grid: Grid, adaptive: str, queries: list[str]
) -> None:
    before = session.conf.get("spark.sql.adaptive.enabled")
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    for name in ("orders", "copies"):
        frame_of(session, grid, name).createOrReplaceTempView(f"moving_{name}")
    stop = threading.Event()
    writer = threading.Thread(target=rewrite_again_and_again, args=(grid, stop))
    writer.start()
    try:
        for sql in queries:
            assert [tuple(row) for row in session.sql(sql).collect()] == CONSISTENT[sql], sql
    finally:
        stop.set()
        writer.join()
        session.conf.set("spark.sql.adaptive.enabled", before or "true")


def test_two_frames_of_queries_read_one_version(session: SparkSession, grid: Grid) -> None:
    query = "SELECT round, COUNT(*) AS n FROM orders GROUP BY round"
    stop = threading.Event()
    writer = threading.Thread(target=rewrite_again_and_again, args=(grid, stop))
    source = session.read.format("remuda").options(path=str(grid.store.path), query=query)
    writer.start()
    try:
        for _ in range(2):
            (row,) = source.load().union(source.load()).distinct().collect()
            assert row.n == ROWS
    finally:
        stop.set()
        writer.join()


def test_a_task_that_is_run_again_reads_the_version_of_its_execution(
    session: SparkSession, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Spark runs a lost task, or a second copy of a slow one: in any worker, under the id of the execution."""
    execution = "e" * 32
    reader = source_read.MapReader({"path": str(grid.store.path), "map": "orders"}, 2)
    first, second = reader.partitions()

    def rounds(partition: Any, execution: str | None = execution) -> set[int]:
        monkeypatch.setattr("remuda.spark.source.pinned_read.running_execution", lambda: execution)
        return {value for batch in reader.read(partition) for value in batch.column("round").to_pylist()}

    assert rounds(first) == {0}
    grid.sql("UPDATE orders SET round = 1")
    grid.checkpoint()
    assert rounds(second) == {0}
    assert rounds(first) == {0}
    assert rounds(first, "f" * 32) == {1}
    monkeypatch.setattr("remuda.spark.source.pinned_read._stores", {})  # another worker
    assert rounds(first) == {0}
    assert rounds(second, None) == {0}, "the version that was planned"


def leave(grid: Grid, folder: str) -> None:
    """As if all that keeps files for processes that may come had run out."""
    assert grid.store.path is not None
    for file in (grid.store.path / folder).rglob("*"):
        if file.is_file():
            file.unlink()


def test_a_job_without_an_execution_reads_the_planned_version(session: SparkSession, grid: Grid) -> None:
    frame = frame_of(session, grid)
    rdd = frame.rdd
    assert rdd.count() == ROWS
    grid.sql("INSERT INTO orders VALUES (?, 0)", ROWS + 1)
    grid.checkpoint()
    assert rdd.count() == ROWS
    assert frame.count() == ROWS + 1


def test_a_planned_version_that_is_gone_is_named(session: SparkSession, grid: Grid) -> None:
    grid.checkpoint()
    reader = source_read.MapReader({"path": str(grid.store.path), "map": "orders"}, 1)
    (partition,) = reader.partitions()
    leave(grid, "readers")
    grid.load("orders", frame_of(session, grid).toArrow(), mode="replace")
    leave(grid, "pins")
    leave(grid, "readers")
    grid.load("orders", pa.table({"id": [1], "round": [1]}), mode="replace")
    with pytest.raises(StorageError, match="planned for is gone: make the data frame anew"):
        list(reader.read(partition))


def test_a_frame_outlives_compaction_and_leases(
    session: SparkSession, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died with FileNotFoundError when its lease had run out and the writer had merged the files of its version."""
    monkeypatch.setattr(planned_map, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(execution_pin, "KEPT_SECONDS", 0.0)
    frame = frame_of(session, grid)
    assert frame.count() == ROWS
    for number in range(3):
        grid.sql("UPDATE orders SET round = ?", number)
        grid.load("orders", frame_of(session, grid).toArrow(), mode="replace")
        assert {row.round for row in frame.collect()} == {number}


def test_a_stream_joined_with_a_map_sees_updates_in_the_next_batch(
    session: SparkSession, grid: Grid, tmp_path: Path
) -> None:
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    stream = session.readStream.schema("id BIGINT").json(str(arriving))
    seen: list[int] = []

    def collect(batch: DataFrame, _: int) -> None:
        seen.extend(row.round for row in batch.collect())

    query = stream.join(frame_of(session, grid), "id").writeStream.foreachBatch(collect).start()
    try:
        for number in range(3):
            grid.sql("UPDATE orders SET round = ? WHERE id = 5", number)
            (arriving / f"{number}.json").write_text('{"id": 5}\n')
            wait_until(lambda number=number: len(seen) > number)  # type: ignore[misc]
    finally:
        query.stop()
    assert seen == [0, 1, 2]


def test_a_map_that_was_made_anew_with_other_columns_is_refused(session: SparkSession, grid: Grid) -> None:
    frame = frame_of(session, grid)
    assert frame.count() == ROWS
    grid.sql("DROP TABLE orders")
    with pytest.raises(Exception, match="unknown table: orders"):
        frame.count()
    grid.sql("CREATE TABLE orders (id BIGINT, name VARCHAR, PRIMARY KEY (id))")
    with pytest.raises(Exception, match="made anew with other columns"):
        frame.count()


def test_a_map_that_was_made_anew_with_nulls_is_refused(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark leaves out `IS NULL` of a column that had none when the frame was made, so it would count no row."""
    monkeypatch.setattr("remuda.spark.source.pinned_read.running_execution", lambda: "d" * 32)
    path = str(grid.store.path)
    grid.sql("CREATE TABLE named (id BIGINT, name VARCHAR NOT NULL, PRIMARY KEY (id))")
    reader = source_read.MapReader({"path": path, "map": "named"}, 1)
    (partition,) = reader.partitions()
    frame = StructType([StructField("key", LongType())])
    lookup = plan_lookup(PlannedMap({"path": path, "map": "named"}), frame, "key", None, "inner", None).task
    given = pa.record_batch({"key": pa.array([1])})
    for nullable, fits in (("", False), (" NOT NULL", True)):
        grid.sql("DROP TABLE named")
        grid.sql(f"CREATE TABLE named (id BIGINT, name VARCHAR{nullable}, PRIMARY KEY (id))")
        grid.sql("INSERT INTO named VALUES (1, ?)", "one" if fits else None)
        monkeypatch.setattr("remuda.spark.source.pinned_read._stores", {})
        monkeypatch.setattr("remuda.spark.source.pinned_read.running_execution", lambda name="ab"[fits]: name * 32)
        for read in (lambda: reader.read(partition), lambda: lookup([given])):
            if fits:
                assert [batch.num_rows for batch in read()] == [1]
            else:
                with pytest.raises(SqlError, match="made anew with other columns"):
                    list(read())
