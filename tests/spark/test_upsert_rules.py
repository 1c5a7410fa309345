"""One rule for keys that come twice in an upsert, for missing columns and for time zones, whatever brings the rows."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import remuda
import remuda.spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid

ROWS = [
    (1, "old", 1),
    (1, "newest", 3),
    (1, "newer", 2),
    (2, "only", None),
    (3, "of some age", 5),
    (3, "ageless", None),
]
KEPT = [(1, "newest", 3), (2, "only", None), (3, "of some age", 5)]
BEATEN = [(1, "one", 4), (1, "other", 4), (1, "newest", 5)]
"""Whichever tasks the rows come from, two of the same age are refused only where none is newer."""
TIED = [(1, "one", 4), (1, "other", 4), (2, "only", 1)]
COLUMNS = ("id", "name", "ts")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture
def grid(session: SparkSession, tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda", spark=session) as opened:
        opened.sql("CREATE TABLE orders (id BIGINT, name VARCHAR, ts BIGINT, PRIMARY KEY (id))")
        opened.sql("INSERT INTO orders VALUES (1, 'there', 9)")
        yield opened


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    types = (pa.int64(), pa.string(), pa.int64())
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(column, each) for name, column, each in zip(COLUMNS, columns, types, strict=True)})


def frame(session: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    """Each row in a task of its own, so that rows with one key come from different tasks."""
    return session.createDataFrame(rows, "id BIGINT, name STRING, ts BIGINT").repartition(len(rows), "name", "ts")


def by_frame(grid: Grid, session: SparkSession, rows: list[tuple[Any, ...]], order_by: str | None) -> None:
    grid.load("orders", frame(session, rows), mode="upsert", order_by=order_by)


def by_table(grid: Grid, _: SparkSession, rows: list[tuple[Any, ...]], order_by: str | None) -> None:
    grid.load("orders", table(rows), mode="upsert", order_by=order_by)


def by_path(grid: Grid, _: SparkSession, rows: list[tuple[Any, ...]], order_by: str | None) -> None:
    assert grid.store.path is not None
    folder = grid.store.path.with_name("files")
    folder.mkdir(exist_ok=True)
    for number, row in enumerate(rows):
        pq.write_table(table([row]), folder / f"{number}.parquet")
    grid.load("orders", folder, mode="upsert", order_by=order_by)


def by_write(grid: Grid, session: SparkSession, rows: list[tuple[Any, ...]], order_by: str | None) -> None:
    options = {"path": str(grid.store.path), "map": "orders", "mode": "upsert"}
    if order_by is not None:
        options["orderBy"] = order_by
    frame(session, rows).write.format("remuda").options(**options).mode("append").save()


WAYS = [by_frame, by_table, by_path, by_write]


def rows_of(grid: Grid) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in grid.sql("SELECT id, name, ts FROM orders ORDER BY id")]


@pytest.mark.parametrize("load", WAYS)
def test_a_key_that_comes_twice_is_refused_unless_a_column_says_which_row_wins(
    session: SparkSession, grid: Grid, load: Callable[..., None]
) -> None:
    with pytest.raises(Exception, match=r"duplicate key in orders: id = [13]"):
        load(grid, session, ROWS, None)
    assert rows_of(grid) == [(1, "there", 9)]
    load(grid, session, ROWS, "TS")
    assert rows_of(grid) == KEPT
    with pytest.raises(Exception, match="duplicate key in orders: id = 1, twice with the same ts"):
        load(grid, session, TIED, "ts")
    with pytest.raises(Exception, match="orders has no column tss to order by"):
        load(grid, session, ROWS, "tss")
    assert rows_of(grid) == KEPT
    load(grid, session, BEATEN, "ts")
    assert rows_of(grid) == [(1, "newest", 5), *KEPT[1:]]


def test_an_order_without_an_upsert_is_refused(session: SparkSession, grid: Grid) -> None:
    with pytest.raises(Exception, match="order_by says which row of an upsert wins: mode is append"):
        grid.load("orders", table(KEPT), order_by="ts")
    source = frame(session, KEPT).write.format("remuda").options(path=str(grid.store.path), map="orders", orderBy="ts")
    with pytest.raises(Exception, match="orderBy says which row of an upsert wins: mode is append"):
        source.mode("append").save()


def test_columns_that_a_frame_lacks_are_refused_unless_they_shall_be_null(session: SparkSession, grid: Grid) -> None:
    """They were overwritten with NULL silently."""
    lacking = frame(session, [(1, "new", 1)]).drop("ts")
    with pytest.raises(Exception, match="the data lacks columns of orders: ts"):
        grid.load("orders", lacking, mode="upsert")
    write = lacking.write.format("remuda").options(path=str(grid.store.path), map="orders", mode="upsert")
    with pytest.raises(Exception, match="the DataFrame lacks columns of orders: ts"):
        write.mode("append").save()
    with pytest.raises(Exception, match="missing must be one of error, null, not 'maybe'"):
        write.option("missing", "maybe").mode("append").save()
    assert rows_of(grid) == [(1, "there", 9)]
    write.option("missing", "null").mode("append").save()
    assert rows_of(grid) == [(1, "new", None)]


def moments(session: SparkSession) -> DataFrame:
    """Moments of both halves of a year, and one that is midnight in the zone of the session."""
    rows = "VALUES (1L, '2024-07-01 12:00:00'), (2L, '2024-01-15 23:30:00'), (3L, '2024-03-01 00:00:00') AS t(id, text)"
    return session.sql(
        "SELECT id, IF(id = 3, at, NULL) AS day, at, at AS instant "
        f"FROM (SELECT id, CAST(text AS TIMESTAMP) AS at FROM {rows}) ORDER BY id"
    )


def by_files(grid: Grid, data: DataFrame) -> None:
    assert grid.store.path is not None
    files, name = str(grid.store.path.with_name("moments")), "spark.sql.parquet.outputTimestampType"
    before = data.sparkSession.conf.get(name)
    data.sparkSession.conf.set(name, "TIMESTAMP_MICROS")  # what tasks of ours read without Spark
    try:
        data.write.parquet(files)
    finally:
        data.sparkSession.conf.set(name, str(before))
    grid.load("seen", data.sparkSession.read.parquet(files))


def by_stream(grid: Grid, data: DataFrame) -> None:
    assert grid.store.path is not None
    files = str(grid.store.path.with_name("arrived"))
    data.write.parquet(files)
    stream = data.sparkSession.readStream.schema(data.schema).parquet(files).writeStream.format("remuda")
    place = {"path": str(grid.store.path), "map": "seen", "checkpointLocation": f"{files}-done"}
    stream.options(**place).trigger(availableNow=True).start().awaitTermination()


def by_changes(grid: Grid, data: DataFrame) -> None:
    grid.load("seen", data.selectExpr("*", "'i' AS op"), mode="apply", operation="op", order_by="instant")


def by_envelopes(grid: Grid, data: DataFrame) -> None:
    row = "named_struct('id', id, 'day', day, 'at', at, 'instant', instant)"
    grid.load(
        "seen",
        data.selectExpr("'c' AS op", f"IF(id < 0, {row}, NULL) AS before", f"{row} AS after", "id AS ts_ms"),
        mode="apply",
        changes="debezium",
    )


def by_format(grid: Grid, data: DataFrame) -> None:
    data.write.format("remuda").options(path=str(grid.store.path), map="seen").mode("overwrite").save()


def by_function(grid: Grid, data: DataFrame) -> None:
    assert grid.store.path is not None
    remuda.spark.write(data, grid.store.path, "seen", mode="upsert")


def by_load(grid: Grid, data: DataFrame) -> None:
    grid.load("seen", data)


IN_MEMORY = [by_load, by_changes, by_envelopes]
INTO_A_FOLDER = [*IN_MEMORY, by_files, by_format, by_function, by_stream]


@pytest.mark.parametrize(
    ("zone", "in_folder", "load"),
    [
        *(("America/New_York", False, load) for load in IN_MEMORY),
        *(("America/New_York", True, load) for load in INTO_A_FOLDER),
        *(("GMT-3:30", True, load) for load in (by_load, by_format)),
    ],
)
def test_a_moment_becomes_the_clock_of_the_session_as_in_a_cast_of_spark(
    session: SparkSession, tmp_path: Path, zone: str, in_folder: bool, load: Callable[[Grid, DataFrame], None]
) -> None:
    """TIMESTAMP with zone into TIMESTAMP or DATE: the clock of UTC was stored, whatever the session's zone."""
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    folder = tmp_path / "shop.remuda"
    try:
        given = moments(session)
        clocks = given.selectExpr("id", "CAST(day AS DATE) AS day", "CAST(at AS TIMESTAMP_NTZ) AS at").collect()
        expected = [tuple(row) for row in clocks]
        assert expected[0][2] == datetime(2024, 7, 1, 12)
        assert expected[2][1] == date(2024, 3, 1)
        seconds = [tuple(row) for row in given.selectExpr("id", "unix_timestamp(instant)").collect()]
        with remuda.open(folder, spark=session) if in_folder else remuda.open() as grid:
            columns = "id BIGINT, day DATE, at TIMESTAMP, instant TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id)"
            grid.sql(f"CREATE TABLE seen ({columns})")
            load(grid, given)
            found = grid.sql("SELECT id, day, at, instant FROM seen ORDER BY id").fetchall()
            assert [tuple(row)[:3] for row in found] == expected
            assert [(row.id, row.instant.timestamp()) for row in found] == seconds
            if in_folder:
                frame = session.read.format("remuda").options(path=str(folder), map="seen").load()
                assert frame.where("instant = CAST(at AS TIMESTAMP)").count() == 3
    finally:
        session.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_a_moment_that_is_no_midnight_is_no_date(session: SparkSession, grid: Grid) -> None:
    grid.sql("CREATE TABLE days (id BIGINT, day DATE, PRIMARY KEY (id))")
    given = session.sql("SELECT 1L AS id, timestamp'2024-07-01 12:00:00' AS day")
    with pytest.raises(Exception, match=r"days\.day \(DATE\) cannot hold datetime\.datetime\(2024, 7, 1, 12, 0\)"):
        grid.load("days", given)


def test_a_time_without_a_zone_is_refused_where_a_moment_is_stored(session: SparkSession, grid: Grid) -> None:
    """It was stored as the moment of UTC. What Spark casts is that of the session's zone."""
    grid.sql("CREATE TABLE seen (id BIGINT, instant TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))")
    given = session.sql("SELECT 1L AS id, timestamp_ntz'2024-07-01 12:00:00' AS instant")
    for load in (by_load, by_changes, by_format, by_function):
        with pytest.raises(Exception, match=r'\.cast\("timestamp"\)'):
            load(grid, given)
    assert len(grid.map("seen")) == 0
