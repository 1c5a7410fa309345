"""One rule for keys that come twice in an upsert, for missing columns and for time zones, whatever brings the rows."""

from __future__ import annotations

from datetime import datetime
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


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_a_moment_becomes_the_clock_of_the_session_as_in_a_cast_of_spark(
    session: SparkSession, grid: Grid, tmp_path: Path, zone: str
) -> None:
    """TIMESTAMP with zone into TIMESTAMP: the clock of UTC was stored, whatever the session's zone."""
    grid.sql("CREATE TABLE seen (id BIGINT, at TIMESTAMP, instant TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))")
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        moments = "VALUES (1L, '2024-07-01 12:00:00'), (2L, '2024-01-15 23:30:00') AS t(id, at)"
        given = session.sql(f"SELECT id, CAST(at AS TIMESTAMP) AS at, CAST(at AS TIMESTAMP) AS instant FROM {moments}")
        expected = {row.id: row.clock for row in given.selectExpr("id", "CAST(at AS TIMESTAMP_NTZ) AS clock").collect()}
        assert expected[1] == datetime(2024, 7, 1, 12)
        given.write.parquet(str(tmp_path / "moments"))
        files = session.read.parquet(str(tmp_path / "moments"))
        instants = []
        for load in (
            lambda: grid.load("seen", given, mode="replace"),
            lambda: grid.load("seen", files, mode="replace"),
            lambda: (
                given.write.format("remuda").options(path=str(grid.store.path), map="seen").mode("overwrite").save()
            ),
        ):
            load()
            assert {row.id: row.at for row in grid.sql("SELECT id, at FROM seen")} == expected
            instants.append([row.instant for row in grid.sql("SELECT instant FROM seen ORDER BY id")])
        assert instants[0] == instants[1] == instants[2]
        assert (
            session.read.format("remuda")
            .options(path=str(grid.store.path), map="seen")
            .load()
            .where("instant = CAST(at AS TIMESTAMP)")
            .count()
            == 2
        )
    finally:
        session.conf.set("spark.sql.session.timeZone", before or "UTC")
