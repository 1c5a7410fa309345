"""Spark over a store that no executor sees as a folder: tasks fetch segments from an S3 server, through their cache."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import remuda
import remuda.spark
from tests.spark.remote_application import write_of
from tests.storage.s3_server import BUCKET, S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid

ROWS = 5_000
WIDE_ROWS = 400_000
CREATE = "CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, PRIMARY KEY (id))"
PLACE = f"{BUCKET}/shop.remuda"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def shop(spark: SparkSession, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a store that Spark has loaded, by way of a folder that nobody keeps."""
    remuda.spark.register(spark)
    cache = tmp_path_factory.mktemp("loading")
    with remuda.open(s3.uri(PLACE), durability="none", cache=cache, spark=spark) as grid:
        grid.sql(CREATE)
        grid.sql("CREATE INDEX by_customer ON orders (customer) TYPE HASH")
        assert grid.load("orders", orders(spark, 0, ROWS)) == ROWS
    return s3.uri(PLACE)


def orders(spark: SparkSession, first: int, end: int) -> DataFrame:
    return spark.range(first, end, 1, 2).selectExpr("id", "concat('C', id % 50) AS customer", "id / 4 AS amount")


def fetched(cache: Path) -> set[str]:
    """The files of which anything was fetched."""
    return {path.name for path in (cache / "blocks").rglob("*.*") if path.suffix != ".present"}


@pytest.fixture(scope="module")
def wide(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a store whose columns are each much longer than what is fetched at least, as they are stored."""
    place = f"{BUCKET}/wide.remuda"
    numbers = np.arange(WIDE_ROWS)
    with remuda.open(s3.uri(place), durability="none", cache=tmp_path_factory.mktemp("wide")) as grid:
        grid.sql(
            "CREATE TABLE wide (id BIGINT, a BIGINT, b DOUBLE, c BIGINT, d DOUBLE, PRIMARY KEY (id)) "
            "WITH (compression = 'none')"
        )
        grid.sql("CREATE INDEX by_a ON wide (a) TYPE SORTED")
        columns = {"id": numbers, "a": numbers * 3, "b": numbers / 4, "c": numbers % 7, "d": numbers / 8}
        grid.load("wide", pa.table(columns))
    return place


def traffic(s3: S3Server, place: str) -> int:
    """The bytes of segments that were fetched since the last time."""
    return sum(
        size
        for name, (_, size) in s3.traffic(place).items()
        if name.startswith("maps/") and not name.endswith(".group")
    )


def test_tasks_fetch_the_columns_that_they_read(spark: SparkSession, s3: S3Server, wide: str, tmp_path: Path) -> None:
    column = 8 * WIDE_ROWS
    with remuda.open(s3.uri(wide), read_only=True, cache=tmp_path, spark=spark) as grid:
        grid.sql("SET engine = spark")
        traffic(s3, wide)
        assert "engine: spark" in grid.explain("SELECT SUM(b) FROM wide")
        assert traffic(s3, wide) == 0
        assert grid.sql("SELECT SUM(b) FROM wide").fetchall() == [(float(np.arange(WIDE_ROWS).sum() / 4),)]
        assert column / 2 < traffic(s3, wide) < 1.7 * column
        assert grid.sql("SELECT COUNT(*) FROM wide WHERE d < 0").fetchall() == [(0,)]  # no zone can have any
        assert traffic(s3, wide) < 0.3 * column
        assert grid.sql("SELECT SUM(b) FROM wide WHERE d >= 0").fetchall() == [(float(np.arange(WIDE_ROWS).sum() / 4),)]
        assert column / 2 < traffic(s3, wide) < 1.3 * column


def test_planning_a_read_of_two_rows_fetches_no_row(
    spark: SparkSession, s3: S3Server, wide: str, tmp_path: Path
) -> None:
    remuda.spark.register(spark)
    traffic(s3, wide)
    source = spark.read.format("remuda").options(path=s3.uri(wide), cache=str(tmp_path))
    two = source.option("query", "SELECT * FROM wide WHERE id IN (17, 40000)").load()
    assert two.schema.simpleString() == "struct<id:bigint,a:bigint,b:double,c:bigint,d:double>"
    two._jdf.queryExecution().executedPlan()  # plans the read
    assert traffic(s3, wide) == 0
    assert sorted(row.a for row in two.collect()) == [51, 120_000]
    assert 0 < traffic(s3, wide) < 5 * WIDE_ROWS


def test_tasks_fetch_what_the_query_reads(spark: SparkSession, s3: S3Server, shop: str, tmp_path: Path) -> None:
    with remuda.open(shop, read_only=True, cache=tmp_path, spark=spark) as grid:
        grid.sql("SET engine = spark")
        assert grid.sql("SELECT COUNT(*), SUM(amount) FROM orders").fetchall() == [(ROWS, sum(range(ROWS)) / 4)]
        assert grid.sql("SELECT id FROM orders WHERE customer = 'C3' ORDER BY id LIMIT 2").fetchall() == [(3,), (53,)]
        assert len(grid.sql("SELECT * FROM orders").fetchall()) == ROWS
        assert "engine: spark" in grid.explain("SELECT COUNT(*) FROM orders")
    files = {name.rpartition("/")[2] for name in s3.files(PLACE) if name.startswith("maps/")}
    assert fetched(tmp_path) == {name for name in files if not name.endswith(".group")}


def test_the_data_source_reads_maps_and_queries(spark: SparkSession, shop: str, tmp_path: Path) -> None:
    source = spark.read.format("remuda").options(path=shop, cache=str(tmp_path))
    found = source.options(map="orders").load()
    assert found.schema.simpleString() == "struct<id:bigint,customer:string,amount:double>"
    assert [row.id for row in found.where("id = 17").collect()] == [17]
    assert spark.read.format("remuda").options(path=shop, map="orders", cache=str(tmp_path)).load().count() == ROWS
    query = "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer"
    counted = spark.read.format("remuda").options(path=shop, query=query, cache=str(tmp_path)).load()
    assert {row.n for row in counted.collect()} == {ROWS // 50}
    assert fetched(tmp_path)


def test_data_frames_are_written_by_tasks_that_upload(
    spark: SparkSession, s3: S3Server, shop: str, tmp_path: Path
) -> None:
    byte_range = f"{BUCKET}/written.remuda"
    with remuda.open(s3.uri(byte_range), durability="none", cache=tmp_path) as grid:
        grid.sql(CREATE)
    target = {"path": s3.uri(byte_range), "map": "orders", "cache": str(tmp_path)}
    orders(spark, 0, 100).write.format("remuda").options(**target).mode("append").save()
    with pytest.raises(Exception, match="duplicate key"):
        orders(spark, 99, 200).write.format("remuda").options(**target).mode("append").save()
    orders(spark, 50, 150).write.format("remuda").options(**target, mode="upsert").mode("append").save()
    with remuda.open(s3.uri(byte_range), read_only=True, cache=tmp_path) as grid:
        assert grid.sql("SELECT COUNT(*), MAX(id) FROM orders").fetchall() == [(150, 149)]
    assert not any(name.startswith("inbox/") for name in s3.files(byte_range))


@pytest.mark.parametrize(
    ("kinds", "commits"),
    [
        (("spark", "grid"), 6),
        pytest.param(("spark", "spark", "grid", "grid"), 200, marks=[pytest.mark.slow, pytest.mark.timeout(7200)]),
    ],
    ids=["few", "many"],
)
def test_applications_and_processes_write_one_store(
    s3: S3Server, tmp_path: Path, kinds: tuple[str, ...], commits: int
) -> None:
    """Each writes commit after commit, while a reader sees whole commits of each, in their order, and none is lost."""
    place = f"{BUCKET}/shared{commits}.remuda"
    with remuda.open(s3.uri(place), durability="none", cache=tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id))")
    program = Path(__file__).with_name("remote_application.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    acknowledged = [tmp_path / f"acknowledged-{number}" for number in range(len(kinds))]
    processes = []
    for number, kind in enumerate(kinds):
        given = [s3.uri(place), str(number), str(commits), str(tmp_path / str(number)), kind]
        with acknowledged[number].open("wb") as output:
            processes.append(subprocess.Popen([sys.executable, program, *given], stdout=output, env=environment))
    states = set()
    try:
        with remuda.open(s3.uri(place), read_only=True, cache=tmp_path) as grid:
            while any(process.poll() is None for process in processes):
                before = [told.read_bytes().count(b"done") for told in acknowledged]
                grid.refresh()
                seen = whole_commits(dict(grid.sql("SELECT id, v FROM t").fetchall()), len(kinds), commits)
                assert all(now >= then for now, then in zip(seen, before, strict=True))
                states.add(seen)
                with suppress(subprocess.TimeoutExpired):  # not all the time: the machine is the writers'
                    processes[-1].wait(commits / 400)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * len(kinds)
    assert [told.read_bytes().count(b"done") for told in acknowledged] == [commits] * len(kinds)
    with remuda.open(s3.uri(place), read_only=True, cache=tmp_path) as grid:
        found = dict(grid.sql("SELECT id, v FROM t").fetchall())
    assert whole_commits(found, len(kinds), commits) == (commits,) * len(kinds)
    assert len(states) > 2
    assert not any(name.startswith("inbox/") for name in s3.files(place))


def whole_commits(found: dict[int, int], applications: int, commits: int) -> tuple[int, ...]:
    """Return how many commits of each application there are; all rows of these, and no others, must be there."""
    seen = []
    expected: dict[int, int] = {}
    for number in range(applications):
        writes = [write_of(number, commits, commit) for commit in range(commits)]
        seen.append(sum(keys.stop - 1 in found for _, keys, _ in writes))
        for _, keys, value in writes[: seen[-1]]:
            expected |= dict.fromkeys(keys, value)
    assert found == expected
    return tuple(seen)


def replaced_again_and_again(grid: Grid, stop: threading.Event) -> None:
    """Each load changes all rows, in one commit."""
    number = 0
    while not stop.is_set():
        number += 1
        grid.load("rounds", rounds(number), mode="replace")


def rounds(number: int) -> pa.Table:
    return pa.table({"id": range(200), "round": [number] * 200})


def test_a_frame_over_a_remote_store_is_fresh_in_each_query_and_consistent_within_it(
    spark: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    """It read the version that was there when Spark planned it, and died with that an hour later."""
    remuda.spark.register(spark)
    address = s3.uri(f"{BUCKET}/rounds.remuda")
    with remuda.open(address, durability="none", cache=tmp_path / "writer") as grid:
        grid.sql("CREATE TABLE rounds (id BIGINT, round BIGINT, PRIMARY KEY (id))")
        grid.load("rounds", rounds(0))
        options = {"path": address, "cache": str(tmp_path / "tasks")}
        frame = spark.read.format("remuda").options(**options, map="rounds", tasks="4").load()
        assert {row.round for row in frame.collect()} == {0}
        grid.load("rounds", rounds(1), mode="replace")
        assert {row.round for row in frame.collect()} == {1}
        ids = spark.range(0, 200, 1, 2)
        found = remuda.spark.lookup(ids, address, "rounds", on="id", columns=["round"], cache=options["cache"])
        grouped = spark.read.format("remuda").options(**options, query="SELECT DISTINCT round FROM rounds").load()
        table = remuda.spark.table(spark, address, "rounds", columns=["round"], cache=options["cache"])
        both = frame.union(frame).select("round").union(found.select("round")).union(table).union(grouped)
        stop = threading.Event()
        writer = threading.Thread(target=replaced_again_and_again, args=(grid, stop))
        writer.start()
        try:
            seen = [{row.round for row in both.collect()} for _ in range(4)]
        finally:
            stop.set()
            writer.join()
        assert [len(each) for each in seen] == [1] * 4
        assert len(set().union(*seen)) > 1
        rdd = frame.rdd
        before = {row.round for row in rdd.collect()}
        grid.load("rounds", rounds(-1), mode="replace")
        assert {row.round for row in rdd.collect()} == before, "a job without an execution reads what was planned"
        assert {row.round for row in frame.collect()} == {-1}
