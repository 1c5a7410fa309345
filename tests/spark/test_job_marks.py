"""The jobs of a query carry what the user's thread has set: group, pool, tags and description."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import remuda
import remuda.spark
from remuda.errors import ErrorCode, SqlError
from tests.harness.shuffled import shuffles_for_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.grid import Grid

GROUPED = "SELECT status, SUM(amount)  FROM orders\nGROUP BY status"


@pytest.fixture
def grid(spark: SparkSession, tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda", spark=spark) as opened:
        opened.sql("CREATE TABLE orders (id BIGINT, status VARCHAR, amount BIGINT, PRIMARY KEY (id))")
        rows = range(20_000)
        opened.load("orders", pa.table({"id": rows, "status": [f"S{row % 3}" for row in rows], "amount": rows}))
        opened.sql("SET engine = spark")
        yield opened


def last_job(session: SparkSession, group: str | None) -> Any:
    """What Spark knows of the newest job of a group."""
    tracker = session.sparkContext.statusTracker()
    number = max(tracker.getJobIdsForGroup(group))
    return session.sparkContext._jsc.sc().statusStore().job(number)


def test_jobs_have_the_group_pool_and_description_of_the_thread(spark: SparkSession, grid: Grid) -> None:
    context = spark.sparkContext
    context.setJobGroup("the user's group", "what the user does")
    context.setLocalProperty("spark.scheduler.pool", "the user's pool")
    context.addJobTag("the-users-tag")
    try:
        with shuffles_for_nothing():
            assert len(grid.sql(GROUPED).fetchall()) == 3
        assert context.getLocalProperty("spark.scheduler.pool") == "the user's pool"
        assert set(context.getJobTags()) == {"the-users-tag"}
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]
        context.removeJobTag("the-users-tag")
    job = last_job(spark, "the user's group")
    assert job.description().get() == "what the user does"
    stage = spark.sparkContext._jsc.sc().statusStore().lastStageAttempt(job.stageIds().last())
    assert stage.schedulingPool() == "the user's pool"
    assert "the-users-tag" in job.jobTags().mkString(" ")


def test_the_statement_is_the_description_where_there_is_none(spark: SparkSession, grid: Grid) -> None:
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "another group")
    try:
        assert len(grid.sql(GROUPED).fetchall()) == 3
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    job = last_job(spark, "another group")
    assert job.description().get() == "remuda: SELECT status, SUM(amount) FROM orders GROUP BY status"
    stage = spark.sparkContext._jsc.sc().statusStore().lastStageAttempt(job.stageIds().last())
    assert stage.name() == "remuda: SELECT status, SUM(amount) FROM orders GROUP BY status"


def test_a_statement_that_writes_and_has_a_deadline_has_the_marks_of_its_thread(
    spark: SparkSession, grid: Grid
) -> None:
    """It runs on another thread, which its giver can leave."""
    grid.sql("CREATE TABLE copies (id BIGINT, amount BIGINT, PRIMARY KEY (id))")
    context = spark.sparkContext
    statements = {
        "a write": "INSERT INTO copies SELECT id, amount FROM orders",
        "a new table": "CREATE TABLE more (PRIMARY KEY (id)) AS SELECT id, amount FROM orders",
    }
    for group, statement in statements.items():
        context.setJobGroup(group, "what the user does")
        try:
            with shuffles_for_nothing():
                assert grid.sql(statement, timeout=600.0).update_count == 20_000
        finally:
            for name in ("spark.jobGroup.id", "spark.job.description"):
                context.setLocalProperty(name, None)  # type: ignore[arg-type]
        assert last_job(spark, group).description().get() == "what the user does"


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(0.2)
        yield batch


@pytest.mark.parametrize("write", ["a load", "a load of changes", "a write"])
def test_a_group_cancels_loads_and_writes(spark: SparkSession, grid: Grid, write: str) -> None:
    """None of their rows is there. A cancelled `remuda.spark.write` was a stack of Java."""
    context, outcome = spark.sparkContext, []
    path = grid.store.path
    assert path is not None
    before = [tuple(row) for row in grid.sql("SELECT COUNT(*), SUM(amount) FROM orders")]
    rows = spark.range(0, 4_000, 1, 40).mapInArrow(slowly, "id BIGINT")
    data = rows.selectExpr("id", "'x' AS status", "id AS amount")

    def run() -> None:
        context.setJobGroup("writes to be cancelled", "slow", interruptOnCancel=True)
        try:
            if write == "a load":
                grid.load("orders", data, mode="upsert")
            elif write == "a load of changes":
                grid.load("orders", data.selectExpr("*", "'u' AS op"), mode="apply", operation="op")
            else:
                remuda.spark.write(data, path, "orders", mode="upsert")
        except SqlError as error:
            outcome.append(error.code)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        if context.statusTracker().getActiveJobsIds():
            context.cancelJobGroup("writes to be cancelled")
        thread.join(0.2)
    assert outcome == [ErrorCode.CANCELLED_BY_USER]
    assert [tuple(row) for row in grid.sql("SELECT COUNT(*), SUM(amount) FROM orders")] == before
    assert [each.name for each in (path / "inbox").iterdir() if each.suffix != ".gone"] == []


def test_a_group_cancels_the_jobs_of_queries(spark: SparkSession, grid: Grid) -> None:
    context = spark.sparkContext
    outcome: list[Any] = []
    slow = "SELECT COUNT(*) FROM orders a JOIN orders b ON a.amount * b.amount % 1000003 = a.id - b.id + 17"

    def query() -> None:
        context.setJobGroup("to be cancelled", "slow", interruptOnCancel=True)
        for _ in range(50):  # a query that ended between two cancels is asked again
            try:
                grid.sql(slow).fetchall()
            except SqlError as error:
                outcome.append(error.code)
                return

    thread = threading.Thread(target=query)
    thread.start()
    while thread.is_alive():
        context.cancelJobGroup("to be cancelled")
        thread.join(0.1)
    assert outcome == [ErrorCode.CANCELLED_BY_USER]
