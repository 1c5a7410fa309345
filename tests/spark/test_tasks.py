"""Tasks on chosen slots, on a real Spark: results, errors, cancellation, reuse of workers."""

from __future__ import annotations

import pickle
import re
import threading
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from remuda.errors import ErrorCode, Span, SqlError, StorageError
from remuda.spark.driver import tasks
from remuda.spark.driver.tasks import cancel_tasks, run_tasks, slot_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def functions(spark: SparkSession) -> Any:
    """The module as workers see it: Spark puts the files it is handed on the path, here and there."""
    spark.sparkContext.addPyFile(str(Path(__file__).with_name("worker_functions.py")))
    return import_module("worker_functions")


def test_slots_are_the_cores(spark: SparkSession) -> None:
    assert slot_count(spark) == 2


def test_results_come_in_order_of_slots(spark: SparkSession, functions: Any) -> None:
    answers = list(run_tasks(spark, functions.echo, {1: b"one", 0: b"zero"}))
    assert answers[::2] == [b"zero", b"one"]


def test_only_named_slots_run(spark: SparkSession, functions: Any) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup()
    assert next(run_tasks(spark, functions.echo, {1: b"one"})) == b"one"
    (job,) = set(tracker.getJobIdsForGroup()) - set(before)
    information = tracker.getJobInfo(job)
    assert information is not None
    stages = [tracker.getStageInfo(stage) for stage in information.stageIds]
    assert [stage.numTasks for stage in stages if stage is not None] == [1]


def test_no_payload_starts_no_job(spark: SparkSession, functions: Any) -> None:
    assert list(run_tasks(spark, functions.broken, {})) == []


def test_slot_beyond_the_cores_still_runs(spark: SparkSession, functions: Any) -> None:
    """Executors may have left since the slots were counted; the task then waits for a core."""
    assert next(run_tasks(spark, functions.echo, {6: b"six"})) == b"six"


def test_payload_larger_than_the_broadcast_threshold(spark: SparkSession, functions: Any) -> None:
    payload = bytes(3 << 20)
    assert list(run_tasks(spark, functions.echo, {0: payload, 1: b"small"}))[::2] == [payload, b"small"]


def test_a_task_is_sent_its_own_payload_and_no_other(
    spark: SparkSession, functions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function goes to every task: it has what they share, and no payload."""
    sent: list[int] = []
    run = tasks.run_partitions

    def counted(session: SparkSession, rdd: Any, partitions: Any, function: Any, **options: Any) -> Any:
        sent.append(len(pickle.dumps(function)))
        return run(session, rdd, partitions, function, **options)

    monkeypatch.setattr(tasks, "run_partitions", counted)
    payloads = {number: bytes(200_000) for number in range(4)}
    answers = list(run_tasks(spark, functions.joined, payloads, shared=(b"shared ",)))
    assert answers == [b"shared " + payload for payload in payloads.values()]
    assert sent[0] < 1_000


def test_workers_are_used_again(spark: SparkSession, functions: Any) -> None:
    processes = {list(run_tasks(spark, functions.echo, {0: b""}))[1] for _ in range(10)}
    assert len(processes) <= slot_count(spark)


def test_worker_heap_is_frozen_after_its_first_task(spark: SparkSession, functions: Any) -> None:
    for _ in range(3):
        run_tasks(spark, functions.echo, {0: b"", 1: b""})
    assert min(map(int, run_tasks(spark, functions.frozen_objects, {0: b"", 1: b""}))) > 10_000


def test_sql_error_of_a_task_arrives_whole(spark: SparkSession, functions: Any) -> None:
    with pytest.raises(SqlError) as caught:
        run_tasks(spark, functions.divide, {0: b"1", 1: b"0"})
    error = caught.value
    assert (error.code, error.message) == (ErrorCode.DATA_EXCEPTION, "division by zero")
    assert (error.span, error.suggestion) == (Span(7, 12), "NULLIF")


def test_storage_error_of_a_task_arrives_whole(spark: SparkSession, functions: Any) -> None:
    with pytest.raises(StorageError, match=r"bad checksum \(some/file, offset 42\)") as caught:
        run_tasks(spark, functions.damaged, {0: b"some/file"})
    assert (caught.value.path, caught.value.offset) == ("some/file", 42)


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        ("broken", ErrorCode.GENERIC, "a Spark job failed: ValueError: cannot read it"),
        ("missing", ErrorCode.CONNECTION_PROBLEM, "Spark's Python workers cannot import remuda"),
        ("leave", ErrorCode.CONNECTION_PROBLEM, "a Spark job lost a worker: Python worker exited unexpectedly"),
    ],
)
def test_other_failures_are_told_in_one_line(
    spark: SparkSession, functions: Any, function: str, code: ErrorCode, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        run_tasks(spark, getattr(functions, function), {0: b"it"})
    assert caught.value.code is code
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    # A traceback has the line first and Spark's own words, with the stack of the task, below it.
    (note,) = caught.value.__notes__
    assert note.startswith("What Spark said:\n")
    assert len(note.splitlines()) > 3
    told = "".join(traceback.format_exception(caught.value))
    assert told.index(message) < told.index(note)
    assert told.count("Traceback (most recent call last)") == 1 + note.count("Traceback (most recent call last)")
    assert next(run_tasks(spark, functions.echo, {0: b"after"})) == b"after"


def test_each_job_is_logged(spark: SparkSession, functions: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "remuda.spark")
    spark.sparkContext.setJobDescription("count the ways")
    try:
        answers = list(run_tasks(spark, functions.echo, {0: b"ab", 1: b"c"}))
    finally:
        spark.sparkContext.setJobDescription("")
    (record,) = [record for record in caplog.records if record.name == "remuda.spark"]
    size = sum(map(len, answers))
    assert re.fullmatch(rf"count the ways: 2 tasks, [\d.]+ s, {size} bytes through the driver", record.getMessage())


def test_cancelled_by_tag(spark: SparkSession, functions: Any) -> None:
    """Tasks that are not cancelled end a minute later, with answers and without an error."""
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getActiveJobsIds())

    def cancel_what_has_begun() -> None:
        while not set(tracker.getActiveJobsIds()) - before:
            threading.Event().wait(0.01)
        cancel_tasks(spark, "query 7")

    canceller = threading.Thread(target=cancel_what_has_begun)
    canceller.start()
    with pytest.raises(SqlError) as caught:
        run_tasks(spark, functions.sleep, {0: b"60", 1: b"60"}, tag="query 7")
    canceller.join()
    assert caught.value.code is ErrorCode.CANCELLED_BY_USER
    assert next(run_tasks(spark, functions.echo, {0: b"after"}, tag="query 8")) == b"after"


def test_tag_is_taken_off_again(spark: SparkSession, functions: Any) -> None:
    run_tasks(spark, functions.echo, {0: b""}, tag="query 9")
    assert "query 9" not in spark.sparkContext.getJobTags()
