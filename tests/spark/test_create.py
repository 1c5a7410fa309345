"""Maps that data frames create: by `df.write`, by `remuda.spark.write`, by `grid.load`, by a stream."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import remuda
import remuda.spark
from tests.storage.s3_server import BUCKET, S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

REQUEST = {"key": "id", "indexes": "customer HASH, amount SORTED", "json": "address, tags, names, doc"}
TYPES = {
    "id": "BIGINT",
    "customer": "VARCHAR",
    "amount": "DECIMAL(10, 2)",
    "at": "TIMESTAMP WITH TIME ZONE",
    "clock": "TIMESTAMP",
    "address": "JSON",
    "tags": "JSON",
    "names": "JSON",
    "doc": "JSON",
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def frame(session: SparkSession, rows: int = 100) -> DataFrame:
    """Of each kind of column; every tenth row has NULL in all but its key."""
    return session.range(0, rows, 1, 3).selectExpr(
        "id",
        *(
            f"IF(id % 10 = 9, NULL, {value}) AS {name}"
            for name, value in {
                "customer": "concat('C', id % 7)",
                "amount": "CAST(id / 4 AS DECIMAL(10, 2))",
                "at": "timestamp'2024-07-01 12:00:00 UTC'",
                "clock": "timestamp_ntz'2024-07-01 12:00:00'",
                "address": "named_struct('town', concat('T', id), 'day', date'2024-07-01', 'lines', array(id, NULL))",
                "tags": "map('id', id)",
                "names": "array('a', NULL)",
                "doc": "parse_json(concat('{\"n\": ', id, '}'))",
            }.items()
        ),
    )


def expected(number: int) -> tuple[Any, ...]:
    if number % 10 == 9:
        return (number, *[None] * 8)
    return (
        number,
        f"C{number % 7}",
        Decimal(number).scaleb(0) / 4,
        datetime(2024, 7, 1, 12, tzinfo=UTC),
        datetime(2024, 7, 1, 12),
        f'{{"town":"T{number}","day":"2024-07-01","lines":[{number},null]}}',
        f'{{"id":{number}}}',
        '["a",null]',
        f'{{"n":{number}}}',
    )


def by_write(data: DataFrame, path: str, **request: Any) -> None:
    data.write.format("remuda").options(path=path, map="orders", **request).mode("append").save()


def by_overwrite(data: DataFrame, path: str, **request: Any) -> None:
    data.write.format("remuda").options(path=path, map="orders", **request).mode("overwrite").save()


def by_function(data: DataFrame, path: str, **request: Any) -> None:
    remuda.spark.write(data, path, "orders", **request)


def by_load(data: DataFrame, path: str, **request: Any) -> None:
    with remuda.open(path, spark=data.sparkSession) as grid:
        grid.load("orders", data, **request)


WAYS = [by_write, by_overwrite, by_function, by_load]


def tables(path: str) -> list[Any]:
    with remuda.open(path, read_only=True) as grid:
        return grid.sql("SHOW TABLES").fetchall()


@pytest.mark.parametrize("write", WAYS)
def test_a_data_frame_creates_its_map(session: SparkSession, tmp_path: Path, write: Callable[..., None]) -> None:
    path = str(tmp_path / "shop.remuda")
    write(frame(session), path, **REQUEST, partitions=31)
    with remuda.open(path) as grid:
        found = grid.sql("SELECT * FROM orders ORDER BY id").fetchall()
        assert [tuple(row) for row in found] == [expected(number) for number in range(100)]
        (definition,) = grid.store.catalog.maps.values()
        assert definition.partitions == 31
        assert {column.name: str(column.type) for column in definition.columns} == TYPES
        assert [column.name for column in definition.columns if not column.nullable] == ["id"]
        assert [tuple(row) for row in grid.sql("SHOW INDEXES")] == [
            ("orders", "orders_customer", "HASH", "customer"),
            ("orders", "orders_amount", "SORTED", "amount"),
        ]
        count = sum(number % 7 == 3 and number % 10 != 9 for number in range(100))
        assert grid.sql("SELECT COUNT(*) FROM orders WHERE customer = 'C3'").fetchall() == [(count,)]


TYPED = {
    "true": ("BOOLEAN", "boolean", True),
    "CAST(1 AS TINYINT)": ("TINYINT", "tinyint", 1),
    "CAST(1 AS SMALLINT)": ("SMALLINT", "smallint", 1),
    "1": ("INTEGER", "int", 1),
    "1L": ("BIGINT", "bigint", 1),
    "CAST(1.5 AS FLOAT)": ("REAL", "float", 1.5),
    "CAST(1.5 AS DOUBLE)": ("DOUBLE", "double", 1.5),
    "CAST(1.5 AS DECIMAL(38, 10))": ("DECIMAL(38, 10)", "decimal(38,10)", Decimal("1.5")),
    "'a'": ("VARCHAR", "string", "a"),
    "CAST('a' AS VARCHAR(3))": ("VARCHAR", "string", "a"),
    "X'00'": ("VARBINARY", "binary", b"\0"),
    "date'2024-07-01'": ("DATE", "date", date(2024, 7, 1)),
    "time'12:30:00.25'": ("TIME", "time(6)", time(12, 30, 0, 250_000)),
    "timestamp_ntz'2024-07-01 12:00:00'": ("TIMESTAMP", "timestamp_ntz", datetime(2024, 7, 1, 12)),
    "timestamp'2024-07-01 12:00:00'": ("TIMESTAMP WITH TIME ZONE", "timestamp", datetime(2024, 7, 1, 12)),
    "CAST(NULL AS VOID)": ("VARCHAR", "string", None),
}
"""What a value of Spark is in a map that is created, and in a frame over it."""


def test_each_type_goes_into_a_map_and_comes_out(session: SparkSession, tmp_path: Path) -> None:
    """A TIME could be written and not be read."""
    names = [f"c{number}" for number in range(len(TYPED))]
    columns = [f"{value} AS {name}" for value, name in zip(TYPED, names, strict=True)]
    data = session.sql(f"SELECT 1L AS id, {', '.join(columns)}")
    place = {"path": str(tmp_path / "shop.remuda"), "map": "orders"}
    for write in (by_load, by_write):
        write(data, place["path"], key="id", mode="upsert")
        with remuda.open(place["path"]) as grid:
            held = [str(column.type) for column in grid.sql(f"SELECT {', '.join(names)} FROM orders").columns]
            assert held == [type_ for type_, _, _ in TYPED.values()]
            frames = [
                session.read.format("remuda").options(**place).load(),
                session.read.format("remuda").options(path=place["path"], query="SELECT * FROM orders").load(),
                remuda.spark.table(session, **place),
                remuda.spark.lookup(session.range(1, 2), **place, on="id"),
            ]
            for frame in frames:
                assert [field.dataType.simpleString() for field in frame.schema][1:] == [
                    type_ for _, type_, _ in TYPED.values()
                ]
                assert [tuple(row)[1:] for row in frame.collect()] == [tuple(value for _, _, value in TYPED.values())]
            if write is by_load:
                grid.sql("DROP TABLE orders")


@pytest.mark.parametrize("type_", ["DAY", "MONTH"])
@pytest.mark.parametrize("write", [by_write, by_load])
def test_an_interval_goes_into_no_map(
    session: SparkSession, tmp_path: Path, write: Callable[..., None], type_: str
) -> None:
    with pytest.raises(Exception, match=r"pause is an INTERVAL, which no table holds|cast\(\"string\"\)"):
        write(session.sql(f"SELECT 1L AS id, INTERVAL '1' {type_} AS pause"), str(tmp_path / "shop.remuda"), key="id")


@pytest.mark.parametrize("write", [by_write, by_function])
def test_a_map_is_created_in_a_folder_that_this_process_has_open(
    session: SparkSession, tmp_path: Path, write: Callable[..., None]
) -> None:
    path = str(tmp_path / "shop.remuda")
    with remuda.open(path) as grid:
        with pytest.raises(Exception, match="unknown table: orders"):
            write(frame(session), path)
        write(frame(session), path, **REQUEST)
        assert len(grid.map("orders")) == 100
        write(frame(session, 150).where("id >= 100"), path, key="id")
        write(frame(session, 50), path, mode="upsert", indexes=REQUEST["indexes"])
        assert len(grid.map("orders")) == 150
        assert tuple(grid.sql("SELECT * FROM orders WHERE id = 120").fetchone()) == expected(120)


@pytest.mark.parametrize(
    ("write", "request_", "message"),
    [
        (by_write, {"key": "id"}, r"the column address is struct<.*\n.*json=\"address\""),
        (by_function, {**REQUEST, "json": "address, tags, names"}, r"the column doc is struct<variant: binary>"),
        (by_load, {**REQUEST, "key": "number"}, "the data has no column number, which is to be the key"),
        (by_write, {**REQUEST, "indexes": "colour HASH"}, "orders has no column colour for the index"),
        (by_write, {**REQUEST, "key": "customer"}, r"the key orders\.customer must not be NULL"),
        (by_function, {**REQUEST, "key": "customer"}, r"the key orders\.customer must not be NULL"),
        (by_load, {**REQUEST, "key": "customer"}, r"the key orders\.customer must not be NULL"),
    ],
)
def test_a_refused_write_creates_nothing(
    session: SparkSession, tmp_path: Path, write: Callable[..., None], request_: dict[str, str], message: str
) -> None:
    path = str(tmp_path / "shop.remuda")
    # One customer is NULL and none comes twice: of two errors, the task that fails first would tell its own.
    rows = frame(session).where("id BETWEEN 3 AND 9")
    with pytest.raises(Exception, match=message):
        write(rows, path, **request_)
    assert not (tmp_path / "shop.remuda" / "MANIFEST").exists() or tables(path) == []


@pytest.mark.parametrize("write", [by_write, by_function])
def test_what_contradicts_the_map_that_is_there_is_refused(
    session: SparkSession, tmp_path: Path, write: Callable[..., None]
) -> None:
    path = str(tmp_path / "shop.remuda")
    write(frame(session), path, **REQUEST)
    with pytest.raises(Exception, match=r"the key of orders is \(id\), not \(customer\)"):
        write(frame(session), path, key="customer")
    with pytest.raises(Exception, match=r"orders is there already, and has no SORTED index on \(clock\)"):
        write(frame(session), path, indexes="clock SORTED")
    with pytest.raises(Exception, match=r"orders has 271 partitions, which stay as they are, not 31"):
        write(frame(session), path, partitions=31)
    other = frame(session).selectExpr("* EXCEPT (amount)", "'x' AS amount")
    with pytest.raises(Exception, match=r"orders\.amount is DECIMAL\(10, 2\), the DataFrame's amount is string"):
        write(other, path)
    with remuda.open(path, read_only=True) as grid:
        assert len(grid.map("orders")) == 100


def test_words_that_are_none_are_refused(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "shop.remuda")
    with pytest.raises(Exception, match="partitions must be a whole number from 1 to 65536, not 'many'"):
        by_write(frame(session), path, **REQUEST, partitions="many")
    with pytest.raises(Exception, match="index types are SORTED and HASH"):
        by_write(frame(session), path, **REQUEST | {"indexes": "customer BLOOM"})
    with pytest.raises(Exception, match="key is a text or a list of texts, not 7"):
        by_function(frame(session), path, key=7)
    with pytest.raises(Exception, match="mode must be one of append, upsert, apply"):
        by_function(frame(session), path, **REQUEST, mode="merge")
    assert not (tmp_path / "shop.remuda").exists()


def test_a_stream_creates_its_map(session: SparkSession, tmp_path: Path) -> None:
    path, source = str(tmp_path / "shop.remuda"), str(tmp_path / "source")
    frame(session).write.parquet(source)
    stream = session.readStream.schema(frame(session).schema).parquet(source).writeStream.format("remuda")
    stream.options(path=path, map="orders", checkpointLocation=str(tmp_path / "checkpoint"), **REQUEST).trigger(
        availableNow=True
    ).start().awaitTermination()
    with remuda.open(path) as grid:
        found = grid.sql("SELECT * FROM orders ORDER BY id").fetchall()
        assert [tuple(row) for row in found] == [expected(number) for number in range(100)]


def test_tables_of_sparks_catalog_are_still_refused(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "shop.remuda")
    options = f"USING remuda OPTIONS (path '{path}', map 'orders', key 'id')"
    for statement in (f"CREATE TABLE kept {options} AS SELECT 1L AS id", f"CREATE TABLE kept {options}"):
        with pytest.raises(Exception, match="is not kept in Spark's catalog"):
            session.sql(statement)
    with pytest.raises(Exception, match="is not kept in Spark's catalog"):
        session.range(3).write.format("remuda").saveAsTable("kept")
    # With options it is a write like any other: Spark does not say that it is to be a table.
    session.range(3).write.format("remuda").options(path=path, map="orders", key="id").saveAsTable("kept")
    assert len(tables(path)) == 1
    with pytest.raises(Exception, match="is not kept in Spark's catalog"):
        session.table("kept").count()
    session.sql("DROP TABLE kept")


def test_insert_into_a_temporary_view_appends(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "shop.remuda")
    by_write(session.range(3), path, key="id")
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW into_view USING remuda OPTIONS (path '{path}', map 'orders')")
    session.sql("INSERT INTO into_view SELECT id + 3 FROM range(2)")
    assert session.table("into_view").count() == 5
    with pytest.raises(Exception, match="duplicate key in orders: id = 3"):
        session.sql("INSERT INTO into_view SELECT 3L")
    session.catalog.dropTempView("into_view")


def test_rows_are_brought_to_the_task_of_their_partitions(session: SparkSession, tmp_path: Path) -> None:
    """Segments of disjoint ranges: a key is looked for in one of them."""
    data = session.range(0, 20_000, 1, 5).selectExpr("id AS a", "concat('K', id) AS b")
    remuda.spark.write(data, tmp_path / "shop.remuda", "t", key=["a", "b"])
    with remuda.open(tmp_path / "shop.remuda") as grid:
        (definition,) = grid.store.catalog.maps.values()
        segments = sorted(
            (each.segment.first_partition, each.segment.last_partition) for each in grid.store.map(definition).stored
        )
        assert len(segments) == 2
        assert segments[0][1] < segments[1][0]
        assert len(grid.map("t")) == 20_000


@pytest.mark.parametrize("write", [by_write, by_function])
def test_a_map_is_created_in_a_remote_store(
    session: SparkSession, s3: S3Server, tmp_path: Path, write: Callable[..., None]
) -> None:
    place = s3.uri(f"{BUCKET}/{write.__name__}.remuda")
    write(frame(session), place, **REQUEST, partitions=31, cache=str(tmp_path))
    write(frame(session, 120).where("id >= 90"), place, mode="upsert", cache=str(tmp_path))
    with remuda.open(place, read_only=True, cache=tmp_path) as grid:
        (definition,) = grid.store.catalog.maps.values()
        assert definition.partitions == 31
        found = grid.sql("SELECT * FROM orders ORDER BY id").fetchall()
        assert [tuple(row) for row in found] == [expected(number) for number in range(120)]
