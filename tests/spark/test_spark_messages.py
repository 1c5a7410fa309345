"""Mistakes and failures around Spark: each has one sentence that names the cause and the cure."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import remuda
import remuda.spark
from remuda.errors import ErrorCode, SqlError
from remuda.spark.driver.tasks import as_sql_error
from remuda.spark.source.source_read import MapReader, QueryReader
from remuda.spark.source.source_write import Target
from remuda.storage.folder.delivery import FolderInbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSourceReader

    from remuda.grid import Grid


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda") as opened:
        opened.sql("CREATE TABLE orders (id BIGINT, amount BIGINT, PRIMARY KEY (id))")
        opened.sql("INSERT INTO orders VALUES (1, 10), (2, 20)")
        yield opened


def rows_of(grid: Grid) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in grid.sql("SELECT id, amount FROM orders ORDER BY id")]


def new_rows(session: SparkSession) -> DataFrame:
    return session.range(2, 4).selectExpr("id", "id * 100 AS amount")


def test_two_modes_that_contradict_each_other_are_refused(session: SparkSession, grid: Grid) -> None:
    """It replaced the map silently."""
    write = new_rows(session).write.format("remuda").options(path=str(grid.store.path), map="orders", mode="upsert")
    with pytest.raises(
        Exception, match='the mode "overwrite" replaces all rows, and the option mode = upsert does not'
    ):
        write.mode("overwrite").save()
    assert rows_of(grid) == [(1, 10), (2, 20)]
    write.mode("append").save()
    assert rows_of(grid) == [(1, 10), (2, 200), (3, 300)]


@pytest.mark.parametrize("option", ["columns", "version", "timestamp", "since"])
def test_what_says_how_to_read_is_refused_in_a_write(session: SparkSession, grid: Grid, option: str) -> None:
    """It was ignored: the rows of all columns went into the newest version."""
    write = new_rows(session).write.format("remuda").options(path=str(grid.store.path), map="orders", mode="upsert")
    with pytest.raises(Exception, match=f"{option} says what is read, and this is a write"):
        write.option(option, "1").mode("append").save()
    assert rows_of(grid) == [(1, 10), (2, 20)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ""}, "columns is the name of a column, or a list of names, not ''"),
        ({"columns": "id, ID"}, "columns name id twice"),
        ({"soleWriter": "maybe"}, "soleWriter is true or false, not 'maybe'"),
        ({"mergeSchema": "true"}, "mergeSchema: a table keeps its columns"),
        ({"map": "totals"}, r"totals is a view: .*\n.*SELECT \* FROM totals"),
    ],
)
def test_values_of_options_that_mean_nothing_are_named(
    session: SparkSession, grid: Grid, options: dict[str, str], message: str
) -> None:
    grid.sql("CREATE VIEW totals AS SELECT COUNT(*) AS n FROM orders")
    with pytest.raises(Exception, match=message):
        session.read.format("remuda").options(**{"path": str(grid.store.path), "map": "orders", **options}).load()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE spark_t USING remuda OPTIONS (path '{path}', map 'orders')",
        "CREATE TABLE spark_t (id BIGINT, amount BIGINT) USING remuda OPTIONS (path '{path}', map 'orders')",
        "CREATE TABLE spark_t (id BIGINT, amount BIGINT) USING remuda OPTIONS (map 'orders') LOCATION '{path}'",
        "CREATE TABLE spark_t USING remuda OPTIONS (path '{path}', map 'orders') AS SELECT 9L AS id, 9L AS amount",
    ],
)
def test_a_table_of_spark_is_refused_with_what_to_write_instead(
    session: SparkSession, grid: Grid, statement: str
) -> None:
    """Spark asks us only where it needs the columns: a table with columns is refused when it is used."""

    def create_and_read() -> None:
        session.sql(statement.format(path=grid.store.path))
        session.sql("SELECT * FROM spark_t").collect()

    try:
        with pytest.raises(Exception, match="CREATE TEMPORARY VIEW v USING remuda OPTIONS"):
            create_and_read()
    finally:
        session.sql("DROP TABLE IF EXISTS spark_t")
    session.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW spark_v USING remuda OPTIONS (path '{grid.store.path}', map 'orders')"
    )
    assert session.sql("SELECT SUM(amount) AS total FROM spark_v").collect()[0].total == 30


def test_reading_a_query_as_a_stream_is_refused_in_one_sentence(session: SparkSession, grid: Grid) -> None:
    options = {"path": str(grid.store.path), "query": "SELECT * FROM orders"}
    query = session.readStream.format("remuda").options(**options).load().writeStream.format("noop").start()
    with pytest.raises(Exception, match="a stream reads the versions of a map"):
        query.awaitTermination(60)


@pytest.mark.parametrize(("folder", "name"), [("_delta_log", "Delta"), ("metadata", "Iceberg"), (".hoodie", "Hudi")])
def test_the_folder_of_another_format_is_named(session: SparkSession, tmp_path: Path, folder: str, name: str) -> None:
    (tmp_path / folder).mkdir()
    with pytest.raises(Exception, match=f"is a table of {name}, not a folder of Remuda"):
        session.read.format("remuda").options(path=str(tmp_path), map="orders").load()


def test_executors_that_do_not_see_the_folder(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/proc/self/cwd` is another folder in each process: the driver sees the store, and the workers do not."""
    monkeypatch.chdir(tmp_path)
    with remuda.open("/proc/self/cwd/shop.remuda", spark=session) as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, amount BIGINT, PRIMARY KEY (id))")
        grid.load("orders", pa.table({"id": range(20_000), "amount": range(20_000)}))
        grid.sql("SET engine = spark")
        cure = "the executors do not see /proc/self/cwd/shop.remuda: use a shared file system or s3://"
        with pytest.raises(SqlError, match=cure):
            grid.sql("SELECT SUM(amount) FROM orders").fetchall()
        with pytest.raises(SqlError, match=cure):
            grid.load("orders", new_rows(session), mode="upsert")
        with pytest.raises(SqlError, match=cure):
            grid.load("orders", new_rows(session).selectExpr("*", "'i' AS op"), mode="apply", operation="op")
        frame = remuda.spark.table(session, "/proc/self/cwd/shop.remuda", "orders")
        for rows in (frame, frame.rdd):
            with pytest.raises(Exception, match=cure):
                rows.count()


def test_tasks_of_the_data_source_that_do_not_see_the_folder(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(grid.store.path)
    reader = MapReader({"path": path, "map": "orders"}, 1)
    (partition,) = reader.partitions()
    target = Target(FolderInbox(path), grid.store.catalog.maps[next(iter(grid.store.catalog.maps))], "append", ("id",))
    grid.close()
    Path(path).rename(tmp_path / "elsewhere")
    monkeypatch.setattr("remuda.spark.source.pinned_read.running_execution", lambda: "a" * 32)
    for work in (lambda: list(reader.read(partition)), lambda: target.write("load", iter(()))):
        with pytest.raises(
            SqlError, match=r"the executors do not see .*shop.remuda: use a shared file system or s3://"
        ):
            work()


@pytest.mark.parametrize("execution", [None, "b" * 32])
def test_a_relative_path_is_that_of_the_driver(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execution: str | None
) -> None:
    """An executor of a cluster has a working directory of its own, in which the folder was looked for."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert grid.store.path is not None
    monkeypatch.chdir(grid.store.path.parent)
    readers: list[DataSourceReader] = [
        MapReader({"path": grid.store.path.name, "map": "orders"}, 1),
        QueryReader({"path": grid.store.path.name, "query": "SELECT id FROM orders LIMIT 5"}, 1),
    ]
    partitions = [(reader, reader.partitions()[0]) for reader in readers]
    monkeypatch.chdir(elsewhere)
    for module in ("pinned_read", "source_read"):
        monkeypatch.setattr(f"remuda.spark.source.{module}.running_execution", lambda: execution)
    for reader, partition in partitions:
        assert sum(batch.num_rows for batch in reader.read(partition)) == 2


def test_a_module_that_executors_lack_is_named(session: SparkSession) -> None:
    def needs(_: Any) -> list[Any]:
        import a_module_that_no_executor_has  # type: ignore[import-not-found]  # noqa: F401

        return []

    with pytest.raises(Exception, match="a_module_that_no_executor_has") as caught:
        session.sparkContext.runJob(session.sparkContext.parallelize([1], 1), needs)
    error = as_sql_error(caught.value)  # type: ignore[arg-type]
    assert error.code is ErrorCode.CONNECTION_PROBLEM
    assert "Spark's Python workers cannot import a_module_that_no_executor_has" in str(error)
    assert "Install a_module_that_no_executor_has on the executors" in str(error)


def test_a_write_that_is_refused_begins_with_our_line(session: SparkSession, grid: Grid) -> None:
    """Whether the driver or the commit refuses it, what Spark said stands below."""
    path = grid.store.path
    with pytest.raises(SqlError) as caught:
        remuda.spark.write(session.range(1, 3).selectExpr("id", "id AS amount"), path, "orders")
    assert str(caught.value).splitlines()[0] == "[2000 DATA_EXCEPTION] duplicate key in orders: id = 1"
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert any("PYTHON_DATA_SOURCE_ERROR" in note for note in caught.value.__notes__)
    with pytest.raises(SqlError) as caught:
        remuda.spark.write(session.range(7, 9), path, "orders", mode="upsert")
    assert str(caught.value).splitlines() == [
        "[2000 DATA_EXCEPTION] the DataFrame lacks columns of orders: amount",
        '  option("missing", "null") writes NULL for them.',
    ]
    assert rows_of(grid) == [(1, 10), (2, 20)]


def test_a_thread_that_registers_the_format_can_write(session: SparkSession, grid: Grid) -> None:
    failures: list[BaseException] = []

    def write() -> None:
        try:
            remuda.spark.register(session)
            new_rows(session).write.format("remuda").options(
                path=str(grid.store.path), map="orders", mode="upsert"
            ).mode("append").save()
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert failures == []
    assert rows_of(grid) == [(1, 10), (2, 200), (3, 300)]


STOPPED = """
import sys, remuda, remuda.spark
from remuda.errors import RemudaError
spark = remuda.spark.session("local[1]")
frame = spark.range(3)
with remuda.open(sys.argv[1], spark=spark) as grid:
    grid.sql("CREATE TABLE numbers (id BIGINT, PRIMARY KEY (id))")
    grid.sql("INSERT INTO numbers VALUES (7)")
    grid.sql("SET engine = spark")
    spark.stop()
    for work in (
        lambda: grid.sql("SELECT COUNT(*) FROM numbers").fetchall(),
        lambda: grid.load("numbers", frame),
        lambda: remuda.spark.register(spark),
        lambda: remuda.open(sys.argv[1] + "2", spark=spark),
    ):
        try:
            work()
        except RemudaError as error:
            print(error.sqlstate, str(error).splitlines()[0])
    grid.sql("SET engine = local")
    print(grid.sql("SELECT id FROM numbers").fetchall()[0].id)
"""


def test_a_stopped_session_is_named(tmp_path: Path) -> None:
    """It was a bare AttributeError or AssertionError. In a process of its own: the other tests share their session."""
    root = Path(remuda.__file__).parents[1]
    answer = subprocess.run(
        [sys.executable, "-c", STOPPED, str(tmp_path / "shop.remuda")],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = answer.stdout.splitlines()
    assert len(lines) == 5, answer.stderr[-2_000:]
    assert all("08003" in line and "the Spark session is stopped" in line for line in lines[:4]), lines
    assert lines[4] == "7"


OTHERS = """
import sys, remuda.spark
from pyspark.sql import SparkSession
from remuda.errors import RemudaError
theirs = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "America/New_York").getOrCreate()
before = (theirs.conf.getAll, theirs.sparkContext.getConf().getAll())
same = remuda.spark.session("local[1]")
remuda.spark.register(same)
print(same is theirs or same.sparkContext is theirs.sparkContext)
print((same.conf.getAll, same.sparkContext.getConf().getAll()) == before, theirs.conf.get("spark.sql.session.timeZone"))
try:
    remuda.spark.session("local[1]", config={"spark.sql.session.timeZone": "UTC"})
except RemudaError as error:
    print(error)
print(theirs.conf.get("spark.sql.session.timeZone"))
"""


def test_a_session_of_another_owner_keeps_its_settings(tmp_path: Path) -> None:
    root = Path(remuda.__file__).parents[1]
    answer = subprocess.run(
        [sys.executable, "-c", OTHERS],
        env={**os.environ, "PYTHONPATH": str(root), "JAVA_HOME": _java_home()},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    same, settings, refusal, zone = answer.stdout.splitlines()
    assert (same, settings, zone) == ("True", "True America/New_York", "America/New_York"), answer.stderr[-2_000:]
    assert "in which spark.sql.session.timeZone is America/New_York, not UTC" in refusal


def _java_home() -> str:
    from remuda.spark.driver.java import find_java, home_for_spark

    return str(home_for_spark(find_java()))


def test_a_remote_grid_is_called_by_its_address(tmp_path: Path) -> None:
    import pyarrow.fs as pf

    files = pf.SubTreeFileSystem(str(tmp_path), pf.LocalFileSystem())
    with remuda.open("shop.remuda", filesystem=files, durability="none", cache=tmp_path / "cache") as grid:
        assert repr(grid) == "<Grid shop.remuda>"
