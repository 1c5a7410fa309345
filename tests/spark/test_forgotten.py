"""What nobody asks for any more: results that are dropped unread, loads whose process was killed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.spark.query import shuffle_stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from remuda.grid import Grid

ROWS = 200_000


@pytest.fixture(scope="module")
def grid(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with remuda.open(tmp_path_factory.mktemp("forgotten") / "grid.remuda", spark=spark) as opened:
        opened.sql("CREATE TABLE numbers (id BIGINT, text VARCHAR, PRIMARY KEY (id))")
        opened.load("numbers", spark.range(ROWS).selectExpr("id", "concat('row ', id) AS text"))
        opened.sql("SET engine = spark")
        yield opened


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(5_000):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("it did not come about")


def is_quiet(spark: SparkSession, grid: Grid) -> bool:
    """No job, no thread that waits for one, and no files of answers."""
    assert grid.store.path is not None
    return (
        not spark.sparkContext.statusTracker().getActiveJobsIds()
        and not any(len(each.name) > 32 and each.name.startswith("remuda-") for each in threading.enumerate())
        and not any((grid.store.path / "inbox").iterdir())
    )


@pytest.mark.parametrize("read", [0, 1])
@pytest.mark.parametrize("closed", [False, True])
def test_a_result_that_is_dropped_or_closed_ends_its_job(
    spark: SparkSession, grid: Grid, monkeypatch: pytest.MonkeyPatch, read: int, closed: bool
) -> None:
    """Unread, the job is just beginning; after the first row it waits to be asked for its next wave."""
    monkeypatch.setattr(shuffle_stages, "TASK_BYTES", 200_000)
    result = grid.sql("SELECT id, text FROM numbers")
    assert len(result.fetchmany(read)) == read
    assert not is_quiet(spark, grid)
    if closed:
        result.close()
    del result
    gc.collect()
    wait_until(lambda: is_quiet(spark, grid))


LOADING = """
import sys, time, remuda, remuda.spark

def slowly(batches):
    for batch in batches:
        time.sleep(0.5)
        yield batch

spark = remuda.spark.session("local[2]")
grid = remuda.open(sys.argv[1], spark=spark)
grid.sql("CREATE TABLE numbers (id BIGINT, PRIMARY KEY (id))")
grid.sql("INSERT INTO numbers VALUES (-1)")
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
grid.load("numbers", spark.range(0, 4_000_000, 1, 2).mapInArrow(slowly, "id bigint"))
"""


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_of_its_load(tmp_path: Path) -> None:
    """The next one to open the folder for writing removes what tasks have written; the tasks die with their Spark."""
    path, root = tmp_path / "grid.remuda", Path(str(remuda.__file__)).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.Popen([sys.executable, "-c", LOADING, str(path)], env=environment)
    try:
        wait_until(lambda: any((path / "inbox").glob("own-*")))
        time.sleep(2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with remuda.open(path) as grid:
        assert grid.sql("SELECT id FROM numbers").fetchall() == [(-1,)]
        assert list((path / "inbox").iterdir()) == []
    time.sleep(5)
    assert list((path / "inbox").iterdir()) == []
    assert [each.name for each in (path / "maps").rglob("*") if each.name.startswith("load")] == []
