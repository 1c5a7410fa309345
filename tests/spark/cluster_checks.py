"""What must hold on a cluster whose executors are processes of their own, and may be killed.

Spark allows one master in a process, and the other tests have theirs: `test_cluster` runs these in another one, with
the master in the environment variable REMUDA_TEST_MASTER and the number of its executors in REMUDA_TEST_EXECUTORS. All
share one session.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import remuda
import remuda.spark
from remuda.spark.driver.tasks import run_tasks, slot_count
from tests.harness.shuffled import exchanges, shuffles_for_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid

EXECUTORS = int(os.environ.get("REMUDA_TEST_EXECUTORS", "3"))
ROWS = 300_000
QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For a Java that runs little code of its own, and not for long."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkSession]:
    session = remuda.spark.session(
        master=os.environ["REMUDA_TEST_MASTER"],
        config={
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": QUICK_START,
        },
    )
    wait_for_executors(session)
    session.sparkContext.addPyFile(str(Path(__file__).with_name("worker_functions.py")))
    remuda.spark.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def functions(cluster: SparkSession) -> Any:
    return import_module("worker_functions")


@pytest.fixture
def grid(cluster: SparkSession, tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "grid.remuda", spark=cluster) as opened:
        opened.sql("CREATE TABLE numbers (id BIGINT, third BIGINT, text VARCHAR, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX numbers_text ON numbers (text) TYPE HASH")
        opened.sql("SET engine = spark")
        yield opened


def numbers(cluster: SparkSession, rows: int = ROWS) -> DataFrame:
    return cluster.range(0, rows, 1, EXECUTORS).selectExpr("id", "id % 3 AS third", "concat('row ', id) AS text")


def wait_for_executors(session: SparkSession) -> None:
    """New ones take their time: each starts a Java."""
    for _ in range(600):
        if slot_count(session) >= EXECUTORS:
            return
        time.sleep(0.5)
    pytest.fail("the executors did not come")


def executors(cluster: SparkSession, functions: Any) -> list[int]:
    """The processes of the executors that run tasks at this moment."""
    answers = run_tasks(cluster, functions.executor_process, dict.fromkeys(range(EXECUTORS), b""))
    return sorted({int(answer) for answer in answers})


def kill_one(cluster: SparkSession, functions: Any, after: float) -> threading.Timer:
    """Kills an executor in a while. Whoever asks for its process does so before the work begins."""
    victim = executors(cluster, functions)[0]
    timer = threading.Timer(after, os.kill, (victim, signal.SIGKILL))
    timer.start()
    return timer


def files_in(grid: Grid) -> set[str]:
    assert grid.store.path is not None
    folders = (grid.store.path / "maps", grid.store.path / "inbox")
    return {path.name for folder in folders for path in folder.rglob("*") if path.is_file()}


def check_all(grid: Grid, rows: int = ROWS) -> None:
    found = grid.sql("SELECT third, COUNT(*), SUM(id) FROM numbers GROUP BY third ORDER BY third").fetchall()
    expected = [(third, len(range(third, rows, 3)), sum(range(third, rows, 3))) for third in range(3)]
    assert [tuple(row) for row in found] == expected


def test_executors_are_other_processes(cluster: SparkSession, functions: Any) -> None:
    assert slot_count(cluster) == EXECUTORS
    assert os.getpid() not in executors(cluster, functions)


def test_load_query_and_data_source(cluster: SparkSession, grid: Grid, tmp_path: Path) -> None:
    assert grid.load("numbers", numbers(cluster)) == ROWS
    check_all(grid)
    numbers(cluster).write.parquet(str(tmp_path / "files"))
    assert grid.load("numbers", cluster.read.parquet(str(tmp_path / "files")), mode="replace") == ROWS
    check_all(grid)
    grid.map("numbers").set(ROWS, (ROWS % 3, "late"))
    assert grid.sql("SELECT text FROM numbers").to_arrow().num_rows == ROWS + 1
    source = cluster.read.format("remuda").options(path=str(grid.store.path), map="numbers").load()
    assert [row.id for row in source.where("text = 'row 4711'").collect()] == [4711]
    assert source.count() == ROWS + 1
    grid.sql("DELETE FROM numbers WHERE id < 1000")
    grid.checkpoint()
    assert source.count() == ROWS - 999


def test_a_frame_reads_one_version_though_an_executor_is_killed(
    cluster: SparkSession, functions: Any, grid: Grid
) -> None:
    """The tasks that are run again, in another executor, read what the first ones read."""
    grid.sql("SET engine = local")
    grid.load("numbers", numbers(cluster, 20_000))
    source = cluster.read.format("remuda").options(path=str(grid.store.path), map="numbers").load()
    stop = threading.Event()

    def rewrite() -> None:
        number = 0
        while not stop.wait(0.05):
            number += 1
            grid.sql("UPDATE numbers SET third = ?", number)
            if number % 3 == 0:
                grid.checkpoint()

    def check() -> None:
        one = source.selectExpr("id", "third")
        other = source.selectExpr("id", "third AS again")
        row = one.join(other.hint("merge"), "id").selectExpr("COUNT(*)", "SUM(IF(third = again, 0, 1))").collect()[0]
        assert tuple(row) == (20_000, 0)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        timer = kill_one(cluster, functions, 0.5)
        deadline = time.monotonic() + 15
        while timer.is_alive() or time.monotonic() < deadline:
            check()
        timer.join()
    finally:
        stop.set()
        writer.join()
    wait_for_executors(cluster)


def test_members_are_the_executors(
    cluster: SparkSession, functions: Any, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is lost, and the one that takes its place, change the partition table, and plans are made anew."""

    def members() -> set[str]:
        return {row.member for row in grid.sql("SHOW MEMBERS") if row.partitions is None}

    def wait_until_members_are_not(these: set[str]) -> set[str]:
        for _ in range(600):
            if (found := members()) != these:
                return found
            time.sleep(0.2)
        pytest.fail("the members stayed the same")

    monkeypatch.setattr("remuda.spark.query.shuffle_stages.TASK_BYTES", 500_000)
    wait_for_executors(cluster)
    grid.load("numbers", numbers(cluster))
    before = members()
    assert len(before) == EXECUTORS
    check_all(grid)
    version = grid.cluster.partition_table.version
    plans = {sql for sql, *_ in grid.sql("SHOW PLANS")}
    assert plans
    running = grid.sql("SELECT id FROM numbers")
    found = [row.id for row in running.fetchmany(100)]
    os.kill(executors(cluster, functions)[0], signal.SIGKILL)
    found += [row.id for row in running]
    assert sorted(found) == list(range(ROWS))
    lost = wait_until_members_are_not(before)
    assert grid.cluster.partition_table.version > version
    for _ in range(100):
        if not grid.engine.plans.entries():
            break
        time.sleep(0.1)
    assert [sql for sql, *_ in grid.sql("SHOW PLANS")] == []
    check_all(grid)
    wait_for_executors(cluster)
    replaced = members() if len(lost) == EXECUTORS else wait_until_members_are_not(lost)
    assert len(replaced) == EXECUTORS
    assert len(replaced & before) == EXECUTORS - 1
    check_all(grid)


def test_executor_killed_during_queries(cluster: SparkSession, functions: Any, grid: Grid) -> None:
    grid.load("numbers", numbers(cluster))
    timer = kill_one(cluster, functions, 0.5)
    deadline = time.monotonic() + 20
    while timer.is_alive() or time.monotonic() < deadline:
        check_all(grid)
        assert grid.sql("SELECT text FROM numbers WHERE third > 0").to_arrow().num_rows == ROWS * 2 // 3
    timer.join()
    wait_for_executors(cluster)
    check_all(grid)


def test_executor_killed_between_stages(cluster: SparkSession, functions: Any, grid: Grid) -> None:
    """What is in files is not lost with the executor; what Spark's own shuffle has lost it makes anew."""
    sql = "SELECT MAX(n), COUNT(*), SUM(k) FROM (SELECT id % 99991 AS k, COUNT(*) AS n FROM numbers GROUP BY 1) AS t"
    grid.load("numbers", numbers(cluster))
    with shuffles_for_nothing(), remuda.open(grid.store.path, spark=cluster, read_only=True) as reader:
        reader.sql("SET engine = spark")
        for each in (grid, reader):
            wait_for_executors(cluster)
            assert exchanges(each, sql) == {"HashExchange"}
            timer = kill_one(cluster, functions, 0.5)
            deadline = time.monotonic() + 15
            while timer.is_alive() or time.monotonic() < deadline:
                assert [tuple(row) for row in each.sql(sql)] == [(4, 99991, 99991 * 99990 // 2)]
            timer.join()


def test_executor_killed_during_a_load(cluster: SparkSession, functions: Any, grid: Grid) -> None:
    def slowly(batches: Any) -> Any:
        import time

        for batch in batches:
            time.sleep(1)
            yield batch

    wait_for_executors(cluster)
    slow = numbers(cluster).mapInArrow(slowly, "id bigint, third bigint, text string")
    timer = kill_one(cluster, functions, 2)
    assert grid.load("numbers", slow) == ROWS
    timer.join()
    check_all(grid)
    segments = {name.partition(".")[0] for name in files_in(grid) if name.startswith("load")}
    (store_map,) = (grid.store.map(definition) for definition in grid.store.catalog.maps.values())
    assert segments == {each.segment.id for each in store_map.stored}


@pytest.mark.parametrize("write", ["df.write", "remuda.spark.write", "grid.load", "a stream"])
def test_changes_are_exact_though_an_executor_is_killed(
    cluster: SparkSession, functions: Any, grid: Grid, tmp_path: Path, write: str
) -> None:
    """Its tasks are run again, in another executor: what they had written before counts once, or not at all."""

    def slowly(batches: Any) -> Any:
        import time

        for batch in batches:
            time.sleep(1.5)
            yield batch

    wait_for_executors(cluster)
    cluster.range(0, 3_000, 1, 3).selectExpr("id", "0L AS third", "'old' AS text").write.parquet(str(tmp_path / "old"))
    grid.load("numbers", cluster.read.parquet(str(tmp_path / "old")))
    changed = "IF(n % 2 = 0, 'd', 'u') AS op, n % 1000 + 500 * CAST(n / 1000 AS INT) AS id, n AS third"
    given = cluster.range(0, 4_000, 1, EXECUTORS * 2).withColumnRenamed("id", "n")
    given.selectExpr(*changed.split(", "), "'new' AS text").write.parquet(str(tmp_path / "changes"))
    source = (
        cluster.readStream.schema("op STRING, id BIGINT, third BIGINT, text STRING")
        if write == "a stream"
        else cluster.read
    )
    frame = source.parquet(str(tmp_path / "changes"))
    data = frame.mapInArrow(slowly, frame.schema)
    path, words = str(grid.store.path), {"mode": "apply", "operation": "op", "orderBy": "third"}
    timer = kill_one(cluster, functions, 2)
    if write == "grid.load":
        grid.load("numbers", data, mode="apply", operation="op", order_by="third")
    elif write == "remuda.spark.write":
        remuda.spark.write(data, path, "numbers", **words)
    elif write == "df.write":
        data.write.format("remuda").options(path=path, map="numbers", **words).mode("append").save()
    else:
        stream = data.writeStream.format("remuda").options(path=path, map="numbers", **words)
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        stream.start().awaitTermination()
    timer.join()
    model: dict[int, tuple[int, str]] = dict.fromkeys(range(3000), (0, "old"))
    last = {n % 1000 + 500 * (n // 1000): n for n in range(4_000)}
    for number, n in last.items():
        if n % 2:
            model[number] = (n, "new")
        else:
            model.pop(number)
    found = {row.id: (row.third, row.text) for row in grid.sql("SELECT id, third, text FROM numbers")}
    assert found == model
    assert len(grid.sql("SELECT id FROM numbers WHERE text = 'new'").fetchall()) == sum(n % 2 for n in last.values())
    wait_for_executors(cluster)


def test_load_that_fails_leaves_no_trace(cluster: SparkSession, grid: Grid) -> None:
    before = files_in(grid)
    broken = numbers(cluster).selectExpr("id", "if(id = 777, raise_error('no such number'), 1) AS third")
    with pytest.raises(remuda.RemudaError, match="no such number"):
        grid.load("numbers", broken)
    assert files_in(grid) == before
    assert grid.map("numbers").size() == 0


def test_cluster_writes_nothing_beside_pyspark(cluster: SparkSession) -> None:
    import pyspark

    assert not (Path(str(pyspark.__file__)).parent / "work").exists()
