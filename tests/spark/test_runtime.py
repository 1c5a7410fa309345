"""Queries whose leaves run in Spark tasks: large results, early ends, orders, errors, the choice of engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.spark.driver.executors import ExecutorWatch
from remuda.spark.driver.tasks import run_tasks, slot_count
from remuda.spark.query import answers, shuffle_stages, stage_job
from tests.spark.leftovers import left_behind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from remuda.grid import Grid

ROWS = 400_000


@pytest.fixture(scope="module")
def grid(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """Most rows in segments, some in the log."""
    with remuda.open(tmp_path_factory.mktemp("runtime") / "grid.remuda", spark=spark) as opened:
        opened.sql("CREATE TABLE numbers (id BIGINT, third BIGINT, text VARCHAR, PRIMARY KEY (id))")
        opened.load("numbers", spark.range(ROWS).selectExpr("id", "id % 3 AS third", "concat('row ', id) AS text"))
        opened.map("numbers").put_all({number: (number % 3, "late") for number in range(ROWS, ROWS + 10)})
        opened.sql("SET engine = spark")
        yield opened


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a result a hundred times as large."""
    monkeypatch.setattr(shuffle_stages, "TASK_BYTES", 1_000_000)


def jobs_of(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup())


def test_large_result_in_one_wave(spark: SparkSession, grid: Grid) -> None:
    before = jobs_of(spark)
    table = grid.sql("SELECT id, text FROM numbers").to_arrow()
    assert len(jobs_of(spark) - before) == 1
    assert sorted(table["id"].to_pylist()) == list(range(ROWS + 10))
    assert left_behind(grid) == []


@pytest.mark.usefixtures("small_tasks")
def test_large_result_in_waves(spark: SparkSession, grid: Grid) -> None:
    before = jobs_of(spark)
    table = grid.sql("SELECT id, text FROM numbers").to_arrow()
    assert len(jobs_of(spark) - before) > 2
    assert sorted(table["id"].to_pylist()) == list(range(ROWS + 10))
    assert left_behind(grid) == []


@pytest.mark.usefixtures("small_tasks")
def test_reader_that_stops_early_stops_the_work(spark: SparkSession, grid: Grid) -> None:
    before = jobs_of(spark)
    result = grid.sql("SELECT id, text FROM numbers WHERE third < 2")
    assert next(iter(result)) is not None
    result.close()
    assert left_behind(grid) == []
    assert len(jobs_of(spark) - before) <= 2


def test_tasks_send_no_more_than_their_limit_through_the_driver(
    spark: SparkSession, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured on what the job hands to the driver, of a result of several MB in two tasks."""
    sent: list[int] = []

    def counted(*arguments: Any, **options: Any) -> Iterator[bytes]:
        for answer in run_tasks(*arguments, **options):
            sent.append(len(answer))
            yield answer

    monkeypatch.setattr(stage_job, "run_tasks", counted)
    table = grid.sql("SELECT id, text FROM numbers").to_arrow()
    assert table.nbytes > 4 * answers.INLINE_BYTES
    assert 0 < sum(sent) <= slot_count(spark) * answers.INLINE_BYTES
    assert left_behind(grid) == []


def test_a_limit_gives_so_many_rows(grid: Grid) -> None:
    assert len(grid.sql("SELECT id, text FROM numbers LIMIT 7").fetchall()) == 7


@pytest.mark.usefixtures("small_tasks")
def test_order_is_kept_over_all_tasks(grid: Grid) -> None:
    found = grid.sql("SELECT id FROM numbers WHERE third = 1 ORDER BY id DESC").to_arrow()["id"].to_pylist()
    assert found == [number for number in range(ROWS + 9, -1, -1) if number % 3 == 1]
    assert left_behind(grid) == []


def test_groups_of_rows_that_tasks_read(grid: Grid) -> None:
    found = grid.sql("SELECT third, COUNT(*), SUM(id) FROM numbers GROUP BY third ORDER BY third").fetchall()
    numbers = range(ROWS + 10)
    assert [tuple(row) for row in found] == [
        (third, len(numbers[third::3]), sum(numbers[third::3])) for third in range(3)
    ]


@pytest.mark.usefixtures("small_tasks")
def test_error_of_a_task_is_the_error_of_the_query(grid: Grid) -> None:
    with pytest.raises(SqlError, match="division by zero") as caught:
        grid.sql("SELECT id, 1 / (id - 399999) FROM numbers").fetchall()
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert left_behind(grid) == []


def test_timeout_cancels_the_job(spark: SparkSession, grid: Grid) -> None:
    grid.sql("SET timeout = 0.001")
    try:
        with pytest.raises(SqlError) as caught:
            grid.sql("SELECT text, COUNT(*) FROM numbers GROUP BY text").fetchall()
    finally:
        grid.sql("SET timeout = off")
    assert caught.value.code is ErrorCode.TIMEOUT
    assert left_behind(grid) == []
    assert len(grid.sql("SELECT id FROM numbers WHERE id < 5").fetchall()) == 5


def test_explain_says_which_engine_and_why(grid: Grid) -> None:
    query = "SELECT text FROM numbers WHERE third = 1"
    assert grid.explain(query).endswith("engine: spark   (SET engine = spark)")
    grid.sql("SET engine = auto")
    try:
        last = grid.explain(query).splitlines()[-1]
        document = grid.sql(f"EXPLAIN (FORMAT JSON) {query}").fetchall()[0][0]
    finally:
        grid.sql("SET engine = spark")
    assert last.startswith("engine: local   (local cost≈")
    assert "spark cost≈" in last
    assert '"engine": "local' in document


def test_executors_that_come_make_plans_anew(spark: SparkSession, grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.spark.driver.executors._PERIOD", 0.0)
    watch = ExecutorWatch(spark)
    assert watch.slots == 2
    assert not watch.has_changed()
    version = grid.cluster.partition_table.version
    query = "SELECT id FROM numbers WHERE id < 3"
    assert len(grid.sql(query).fetchall()) == 3
    assert grid.cluster.partition_table.version == version
    grid.cluster.renew()
    assert grid.cluster.partition_table.version == version + 1
    assert len(grid.sql(query).fetchall()) == 3
