"""Lookups of data frames in maps, inside the executors, against Spark's own joins and plain dictionaries."""

from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

import remuda
import remuda.spark
from remuda.errors import SqlError
from remuda.spark.frames import lookup_task
from remuda.spark.frames.lookup_frame import plan_lookup
from remuda.spark.source import pinned_read
from remuda.spark.source.planned_map import PlannedMap
from remuda.storage import Store
from tests.spark.test_forgotten import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid

CUSTOMERS = 300


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    """Rows in a segment and in the memtable, some of them changed or deleted since the checkpoint."""
    with remuda.open(tmp_path / "shop.remuda") as opened:
        opened.sql("CREATE TABLE customers (id BIGINT, name VARCHAR, city VARCHAR, score DOUBLE, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_city ON customers (city) TYPE HASH")
        opened.sql("CREATE INDEX by_score ON customers (score) TYPE SORTED")
        opened.sql("CREATE INDEX by_both ON customers (city, score) TYPE HASH")
        opened.sql(
            "INSERT INTO customers SELECT i, 'n' || i, NULLIF('c' || (i % 7), 'c6'), i % 11 "
            f"FROM generate_series(1, {CUSTOMERS}) AS s(i)"
        )
        opened.checkpoint()
        opened.sql("UPDATE customers SET name = 'changed', city = 'c1' WHERE id % 10 = 0")
        opened.sql("DELETE FROM customers WHERE id % 25 = 0")
        opened.sql(f"INSERT INTO customers VALUES ({CUSTOMERS + 1}, 'new', 'c2', 3)")
        yield opened


@pytest.fixture
def orders(session: SparkSession) -> DataFrame:
    """Keys that are there, that are missing and that are NULL; more partitions than rows in some."""
    ids = [*range(1, CUSTOMERS + 10, 3), None, 25, 25]
    rows = [(n, i, f"c{n % 9}", float(n % 13)) for n, i in enumerate(ids)]
    return session.createDataFrame(rows, "n INT, customer BIGINT, town STRING, points DOUBLE").repartition(3)


def path_of(grid: Grid) -> str:
    return str(grid.store.path)


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def joined(session: SparkSession, grid: Grid, orders: DataFrame, on: dict[str, str], how: str) -> DataFrame:
    """Spark's own join, with the columns of the orders and then all of the map."""
    customers = session.read.format("remuda").options(path=path_of(grid), map="customers").load()
    condition = [orders[ours] == customers[theirs] for ours, theirs in on.items()]
    return orders.join(customers, condition, how)


@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize(
    ("on", "index"),
    [
        ({"customer": "id"}, None),
        ({"town": "city"}, "by_city"),
        ({"points": "score"}, "by_score"),
        ({"points": "score", "town": "city"}, "by_both"),
    ],
    ids=["key", "hash", "sorted", "two columns"],
)
def test_a_lookup_gives_what_a_join_gives(
    session: SparkSession, grid: Grid, orders: DataFrame, how: str, on: dict[str, str], index: str | None
) -> None:
    names = ["id", "name", "city", "score"]
    found = remuda.spark.lookup(orders, path_of(grid), "customers", on=on, columns=names, how=how, index=index)
    expected = joined(session, grid, orders, on, how)
    assert found.columns == expected.columns
    assert rows_of(found) == rows_of(expected)
    nullable = {field.name for field in found.schema if field.nullable} - set(orders.columns)
    assert nullable == (set(names) if how == "left" else {"name", "city", "score"})


KEYS = {
    "BOOLEAN": ("BOOLEAN", [True]),
    "TINYINT": ("TINYINT", [-3, 0, 5]),
    "SMALLINT": ("SMALLINT", [-300, 0, 5]),
    "INTEGER": ("INT", [-70_000, 0, 5]),
    "BIGINT": ("BIGINT", [-(2**60), 0, 5]),
    "DECIMAL(20, 4)": ("DECIMAL(20, 4)", [Decimal("-1.5000"), Decimal("12345678901234.0001")]),
    "REAL": ("FLOAT", [-0.0, 1.5, float("inf")]),
    "DOUBLE": ("DOUBLE", [0.1, 1e300, float("-inf")]),
    "VARCHAR": ("STRING", ["", "a", "žluťoučký kůň " * 9]),
    "VARBINARY": ("BINARY", [b"", b"\x00\xff"]),
    "DATE": ("DATE", [dt.date(1900, 1, 1), dt.date(2024, 2, 29)]),
    "TIMESTAMP": ("TIMESTAMP_NTZ", [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 7, 1)]),
    "TIMESTAMP WITH TIME ZONE": ("TIMESTAMP", [dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)]),
}
MISSING = {
    "BOOLEAN": False,
    "DECIMAL(20, 4)": Decimal(7),
    "REAL": 7.0,
    "DOUBLE": 7.0,
    "VARCHAR": "b",
    "VARBINARY": b"b",
    "DATE": dt.date(2000, 1, 1),
    "TIMESTAMP": dt.datetime(2000, 1, 1),
    "TIMESTAMP WITH TIME ZONE": dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
}


@pytest.mark.parametrize(
    ("kind", "zone"),
    [*((kind, "UTC") for kind in KEYS), *((kind, "America/New_York") for kind in KEYS if kind.startswith("TIMESTAMP"))],
)
def test_keys_of_every_type(session: SparkSession, tmp_path: Path, kind: str, zone: str) -> None:
    spark_type, keys = KEYS[kind]
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        with remuda.open(tmp_path / "keys.remuda") as grid:
            grid.sql(f"CREATE TABLE keys (k {kind}, again {kind}, n BIGINT, PRIMARY KEY (k))")
            for number, key in enumerate(keys):
                grid.sql("INSERT INTO keys VALUES (?, ?, ?)", key, key, number)
                grid.checkpoint()
            given = [*keys, None, MISSING.get(kind, 7)]
            frame = session.createDataFrame([(key,) for key in given], f"k {spark_type}")
            found = remuda.spark.lookup(frame, path_of(grid), "keys", on="k").collect()
        assert [row.n for row in found] == [*range(len(keys)), None, None]
        assert [row.again for row in found[: len(keys)]] == [row.k for row in found[: len(keys)]]
        assert [row.again for row in found[len(keys) :]] == [None, None]
    finally:
        session.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_keys_of_another_type_are_compared_exactly(session: SparkSession, grid: Grid) -> None:
    frame = session.createDataFrame([(2.0,), (2.5,), (1e300,), (None,)], "d DOUBLE")
    found = remuda.spark.lookup(frame, path_of(grid), "customers", on={"d": "id"}, columns=["name"])
    assert [row.name for row in found.collect()] == ["n2", None, None, None]


def test_decimals_and_whole_numbers_find_each_other(session: SparkSession, tmp_path: Path) -> None:
    """Spark's own numbers are DECIMAL(2, 1) and INT: the one failed, the other found nothing."""
    with remuda.open(tmp_path / "prices.remuda") as grid:
        grid.sql("CREATE TABLE prices (p DECIMAL(10, 2), n BIGINT, PRIMARY KEY (p))")
        grid.sql("CREATE INDEX by_n ON prices (n) TYPE HASH")
        grid.sql("INSERT INTO prices VALUES (1, 10), (2.5, 20)")
        frame = session.sql("SELECT * FROM VALUES (1, 20.0), (2, 10.5), (NULL, NULL) AS t(i, d)")
        by_key = remuda.spark.lookup(frame, path_of(grid), "prices", on="i", columns=["n"])
        assert [row.n for row in by_key.collect()] == [10, None, None]
        by_index = remuda.spark.lookup(frame, path_of(grid), "prices", on="d", columns=["p"], index="by_n")
        assert [row.p for row in by_index.collect()] == [Decimal("2.50"), None, None]


def test_a_key_of_several_columns(session: SparkSession, tmp_path: Path) -> None:
    with remuda.open(tmp_path / "lines.remuda") as grid:
        grid.sql("CREATE TABLE lines (o BIGINT, l INTEGER, v VARCHAR, PRIMARY KEY (o, l))")
        grid.sql("INSERT INTO lines VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c')")
        frame = session.createDataFrame([(1, 2), (2, 1), (2, 2), (None, 1)], "l INT, o BIGINT")
        renamed = frame.toDF("line", "order")
        for each, on in (
            (frame, ["l", "o"]),
            (renamed, {"line": "l", "order": "o"}),
            (renamed.select("order", "line"), ["order", "line"]),
        ):
            found = remuda.spark.lookup(each, path_of(grid), "lines", on=on)
            assert [row.v for row in found.collect()] == ["c", "b", None, None]
        with pytest.raises(SqlError, match="say which is which by a dictionary"):
            remuda.spark.lookup(frame.toDF("line", "o"), path_of(grid), "lines", on=["line", "o"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "nothing"}, "the DataFrame has no column nothing"),
        ({"on": "town"}, "the keys are VARCHAR, and id is BIGINT: cast them first"),
        ({"on": ["customer", "n"]}, "needs columns for id, and on has 2"),
        ({"on": {"customer": "name"}}, "needs its columns id, and on has name"),
        ({"on": "customer", "how": "outer"}, "how must be one of left, inner, not 'outer'"),
        ({"on": "customer", "columns": ["nmae"]}, "customers has no column nmae"),
        ({"on": "customer", "columns": "name"}, "columns are a list of names"),
        ({"on": "customer", "columns": {"name": "TOWN"}}, "the frame has a column TOWN already"),
        ({"on": "town", "index": "by_town"}, "customers has no index by_town"),
    ],
)
def test_what_cannot_be_is_refused_before_a_task_runs(
    grid: Grid, orders: DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SqlError, match=message):
        remuda.spark.lookup(orders, path_of(grid), "customers", **options)


def test_frames_and_maps_that_cannot_be_looked_up_are_refused(grid: Grid, orders: DataFrame) -> None:
    with pytest.raises(SqlError, match="unknown table: custmers"):
        remuda.spark.lookup(orders, path_of(grid), "custmers", on="customer")
    with pytest.raises(SqlError, match="more than one column n: rename"):
        remuda.spark.lookup(orders.select("n", "n", "customer"), path_of(grid), "customers", on="customer")
    nested = orders.select(f.array("n").alias("ns"), f.expr("interval 1 month").alias("m"))
    with pytest.raises(SqlError, match="which is no key"):
        remuda.spark.lookup(nested, path_of(grid), "customers", on="m")
    grid.sql("CREATE TABLE keyless (v BIGINT)")
    with pytest.raises(SqlError, match="keyless has no PRIMARY KEY"):
        remuda.spark.lookup(orders, path_of(grid), "keyless", on="customer")


def test_partitions_without_rows(session: SparkSession, grid: Grid, orders: DataFrame) -> None:
    few = orders.where("n < 2").repartition(8)
    assert remuda.spark.lookup(few, path_of(grid), "customers", on="customer").count() == 2
    none = orders.where("n < 0")
    assert remuda.spark.lookup(none, path_of(grid), "customers", on="customer", how="inner").collect() == []
    only = remuda.spark.lookup(orders, path_of(grid), "customers", on="customer", columns=[], how="inner")
    assert only.columns == orders.columns
    assert only.count() == joined(session, grid, orders, {"customer": "id"}, "inner").count()


def test_explain_names_the_access_path(grid: Grid, orders: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    remuda.spark.lookup(orders, path_of(grid), "customers", on="customer").explain()
    assert "remuda_lookup customers by key (id)" in capsys.readouterr().out
    remuda.spark.lookup(orders, path_of(grid), "customers", on="town", index="by_city").explain()
    assert "remuda_lookup customers by index by_city (city)" in capsys.readouterr().out


def test_each_execution_looks_up_in_the_newest_version(grid: Grid, orders: DataFrame) -> None:
    found = remuda.spark.lookup(orders, path_of(grid), "customers", on="customer", columns=["name"], how="inner")
    for number in range(3):
        grid.sql("UPDATE customers SET name = ?", f"round {number}")
        if number == 1:
            grid.checkpoint()
        assert {row.name for row in found.collect()} == {f"round {number}"}


def test_all_tasks_of_an_execution_look_up_in_one_version(session: SparkSession, grid: Grid) -> None:
    stop = threading.Event()

    def rewrite() -> None:
        number = 0
        while not stop.wait(0.02):
            number += 1
            grid.sql("UPDATE customers SET score = ?", float(number))
            if number % 2 == 0:
                grid.checkpoint()

    keys = session.range(1, CUSTOMERS, numPartitions=8).withColumnRenamed("id", "k")
    found = remuda.spark.lookup(keys, path_of(grid), "customers", on="k", columns=["score"], how="inner")
    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        seen = []
        for _ in range(3):
            twice = found.union(found.repartition(3)).select("score").distinct().collect()
            seen += [row.score for row in twice]
            assert len(twice) == 1
    finally:
        stop.set()
        writer.join()
    assert seen == sorted(seen)


def test_a_job_without_an_execution_looks_up_in_the_planned_version(grid: Grid, orders: DataFrame) -> None:
    found = remuda.spark.lookup(orders, path_of(grid), "customers", on="customer", columns=["name"], how="inner")
    rdd = found.rdd
    before = rdd.map(lambda row: row.name).collect()
    grid.sql("UPDATE customers SET name = 'later'")
    grid.checkpoint()
    assert rdd.map(lambda row: row.name).collect() == before
    assert {row.name for row in found.collect()} == {"later"}


def test_a_stream_sees_updates_in_the_next_batch(session: SparkSession, grid: Grid, tmp_path: Path) -> None:
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    stream = session.readStream.schema("k BIGINT").json(str(arriving))
    seen: list[str] = []

    def collect(batch: DataFrame, _: int) -> None:
        seen.extend(row.name for row in batch.collect())

    enriched = remuda.spark.lookup(stream, path_of(grid), "customers", on="k", columns=["name"])
    query = enriched.writeStream.foreachBatch(collect).start()
    try:
        for number in range(3):
            grid.sql("UPDATE customers SET name = ? WHERE id = 5", f"round {number}")
            (arriving / f"{number}.json").write_text('{"k": 5}\n')
            wait_until(lambda number=number: len(seen) > number)  # type: ignore[misc]
    finally:
        query.stop()
    assert seen == ["round 0", "round 1", "round 2"]


def test_a_map_that_was_made_anew_is_refused(grid: Grid, orders: DataFrame) -> None:
    found = remuda.spark.lookup(orders, path_of(grid), "customers", on="customer", columns=["name"])
    by_city = remuda.spark.lookup(orders, path_of(grid), "customers", on="town", index="by_city", columns=["name"])
    grid.sql("DROP INDEX by_city")
    with pytest.raises(Exception, match="made anew with other columns"):
        by_city.collect()
    grid.sql("DROP TABLE customers")
    grid.sql("CREATE TABLE customers (id BIGINT, name BIGINT, PRIMARY KEY (id))")
    with pytest.raises(Exception, match="made anew with other columns"):
        found.collect()


ORDERS = StructType(
    [StructField("n", IntegerType()), StructField("customer", LongType()), StructField("town", StringType())]
)


def test_a_worker_opens_a_store_once(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of one execution share the store and its state, those of the next one the mapped segments."""
    planned = PlannedMap({"path": path_of(grid), "map": "customers"})
    task = plan_lookup(planned, ORDERS, "customer", ["name"], "left", None).task
    batch = pa.record_batch({"n": pa.array([1], pa.int32()), "customer": [1], "town": ["c1"]})
    opened: list[Any] = []
    real = Store.open

    def counted(*arguments: Any, **options: Any) -> Store:
        opened.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(Store, "open", counted)
    monkeypatch.setattr(pinned_read, "_stores", {})
    for execution in ("e" * 32, "e" * 32, "f" * 32):
        monkeypatch.setattr(pinned_read, "running_execution", lambda execution=execution: execution)
        (found,) = task([batch])
        assert found.column(3).to_pylist() == ["n1"]
    assert list(task([])) == []
    assert len(opened) == 1


@pytest.mark.parametrize("how", ["left", "inner"])
def test_many_rows_of_one_key_come_in_slices(grid: Grid, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(lookup_task, "_MOST_ROWS", 100)
    monkeypatch.setattr(lookup_task, "_FIRST_KEYS", 2)
    towns = [f"c{n % 9}" for n in range(100)]
    batch = pa.record_batch(
        {"n": pa.array(range(100), pa.int32()), "customer": pa.nulls(100, pa.int64()), "town": towns}
    )
    planned = PlannedMap({"path": path_of(grid), "map": "customers"})
    task = plan_lookup(planned, ORDERS, "town", ["id"], how, "by_city").task
    batches = list(task([batch]))
    whole = pa.Table.from_batches(batches)
    found = list(zip(whole.column(0).to_pylist(), whole.column(3).to_pylist(), strict=True))
    of_city: dict[str, list[int]] = {}
    for row in grid.sql("SELECT city, id FROM customers WHERE city IS NOT NULL"):
        of_city.setdefault(row.city, []).append(row.id)
    absent = [None] if how == "left" else []
    expected = [(n, i) for n, town in enumerate(towns) for i in of_city.get(town, absent)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert len(batches) > 10
    assert max(each.num_rows for each in batches) < len(found) // 4
