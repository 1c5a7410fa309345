"""The data source: maps and queries read by Spark SQL, DataFrames and streams written into maps."""

from __future__ import annotations

import threading
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

import remuda
import remuda.spark
from remuda.errors import SqlError
from remuda.spark.source.data_source import _OPTIONS, RemudaSource
from remuda.spark.source.source_read import MapReader
from tests.spark.test_forgotten import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ROWS = 5_000


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A map with an index of each kind, most rows in segments and some in the log, some deleted."""
    path = str(tmp_path_factory.mktemp("source") / "shop.remuda")
    with remuda.open(path) as grid:
        grid.sql(
            "CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, price DECIMAL(10, 2), day DATE, "
            "created TIMESTAMP, seen TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))"
        )
        grid.sql("CREATE INDEX orders_customer ON orders (customer) TYPE HASH")
        grid.sql("CREATE INDEX orders_amount ON orders (amount) TYPE SORTED")
        orders = grid.map("orders")
        orders.put_all({number: _order(number) for number in range(ROWS)})
        grid.checkpoint()
        orders.put_all({number: _order(number) for number in range(ROWS, ROWS + 10)})
        grid.sql("DELETE FROM orders WHERE id IN (0, 1, ?)", ROWS + 9)
    return path


def _order(number: int) -> dict[str, Any]:
    return {
        "customer": f"C{number % 50}",
        "amount": None if number % 7 == 0 else number / 4,
        "price": Decimal(number) / 4,
        "day": date(2024, 1, 1 + number % 28),
        "created": datetime(2024, 1, 1, 0, number % 60),
        "seen": datetime(2024, 1, 1, 0, number % 60, tzinfo=UTC),
    }


def orders_of(session: SparkSession, shop: str, **options: str) -> DataFrame:
    return session.read.format("remuda").options(path=shop, map="orders", **options).load()


def test_the_schema_is_that_of_the_map(session: SparkSession, shop: str) -> None:
    schema = orders_of(session, shop).schema
    assert schema.simpleString() == (
        "struct<id:bigint,customer:string,amount:double,price:decimal(10,2),day:date,created:timestamp_ntz,"
        "seen:timestamp>"
    )
    assert [field.nullable for field in schema.fields] == [False, *[True] * 6]


def test_all_rows_are_read_with_their_values(session: SparkSession, shop: str) -> None:
    rows = orders_of(session, shop).collect()
    assert len(rows) == ROWS + 10 - 3
    found = {row.id: row for row in rows}
    seen = datetime(2024, 1, 1, 0, 19, tzinfo=UTC).astimezone().replace(tzinfo=None)
    assert found[4999].asDict() == {"id": 4999, **_order(4999), "seen": seen}
    assert found[ROWS + 3].customer == "C3"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id IN (17, 18, 1, 5003) AND price < 1000", [17, 18]),
        ("customer = 'C3' AND id < 200 AND customer LIKE 'C%'", [3, 53, 103, 153]),
        ("amount >= 10 AND amount < 11 AND amount <=> amount", [40, 41, 43]),
        (
            "day = DATE'2024-01-04' AND created < TIMESTAMP_NTZ'2024-01-01 00:10:00' AND id < 40 AND price >= 0.5",
            [3],
        ),
        ("seen = TIMESTAMP'2024-01-01 00:03:00Z' AND created IS NOT NULL AND price < 10 AND id >= 3", [3]),
    ],
)
def test_filters_find_their_rows(session: SparkSession, shop: str, condition: str, expected: list[int]) -> None:
    found = orders_of(session, shop).where(condition).select("id").collect()
    assert sorted(row.id for row in found) == sorted(expected)


def test_data_frame_can_be_used_again(session: SparkSession, shop: str) -> None:
    """What Spark plans for one use of it must not be what another one reads."""
    orders = orders_of(session, shop)
    assert [row.id for row in orders.where("id = 17").collect()] == [17]
    assert orders.count() == ROWS + 10 - 3
    both = orders.where("id = 17").union(orders.where("id = 18"))
    assert sorted(row.id for row in both.collect()) == [17, 18]
    orders.createOrReplaceTempView("used_again")
    found = session.sql("SELECT a.id, b.id AS other FROM used_again a, used_again b WHERE a.id = 17 AND b.id = 18")
    assert [tuple(row) for row in found.collect()] == [(17, 18)]


def test_the_number_of_tasks_can_be_chosen(session: SparkSession, shop: str) -> None:
    assert orders_of(session, shop, tasks="3").rdd.getNumPartitions() == 3
    for wrong in ("abc", "0", "-1", "1.5", ""):
        with pytest.raises(Exception, match=f"tasks must be a whole number of at least 1, not '{wrong}'"):
            orders_of(session, shop, tasks=wrong).count()


def test_columns_can_be_chosen(session: SparkSession, shop: str) -> None:
    chosen = orders_of(session, shop, columns="amount, ID")
    assert chosen.columns == ["amount", "id"]
    assert chosen.where("id = 40").collect() == [(10.0, 40)]


def test_a_query_is_read(session: SparkSession, shop: str) -> None:
    query = "SELECT customer, COUNT(*) AS orders FROM orders WHERE id < 100 GROUP BY customer"
    found = session.read.format("remuda").options(path=shop, query=query).load()
    assert found.schema.simpleString() == "struct<customer:string,orders:bigint>"
    assert {row.customer: row.orders for row in found.collect()}["C3"] == 2


def test_maps_join_with_what_else_spark_has(session: SparkSession, shop: str) -> None:
    session.createDataFrame([("C3", "Ann"), ("C4", "Bob")], "customer string, name string").createOrReplaceTempView("c")
    orders_of(session, shop).createOrReplaceTempView("orders")
    found = session.sql("SELECT name, COUNT(*) AS n FROM orders JOIN c USING (customer) WHERE id < 100 GROUP BY name")
    assert {row.name: row.n for row in found.collect()} == {"Ann": 2, "Bob": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": "orders"}, "path"),
        ({"path": "/nowhere", "map": "orders"}, "no store"),
        ({"path": None, "map": "ordres"}, "orders"),
        ({"path": None}, "map"),
        ({"path": None, "map": "orders", "colums": "id"}, "unknown option: colums"),
        ({"path": None, "map": "orders", "columns": "id, amont"}, "amount"),
        ({"path": None, "query": "SELECT nothing FROM orders"}, "unknown column: nothing"),
    ],
)
def test_mistakes_are_named(session: SparkSession, shop: str, options: dict[str, str | None], message: str) -> None:
    from remuda.spark.source.data_source import RemudaSource

    given = {name: shop if value is None else value for name, value in options.items()}
    with pytest.raises(remuda.RemudaError, match=message):
        RemudaSource(given).schema()


def test_a_mistake_reaches_the_user_of_spark(session: SparkSession, shop: str) -> None:
    with pytest.raises(Exception, match="unknown column: nothing"):
        session.read.format("remuda").options(path=shop, query="SELECT nothing FROM orders").load()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "target.remuda")
    with remuda.open(path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, name VARCHAR, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX t_name ON t (name) TYPE HASH")
    return path


def numbers(session: SparkSession, start: int, end: int, word: str = "n") -> DataFrame:
    return session.range(start, end, 1, 2).selectExpr("id", f"concat('{word}', id) AS name")


def save(data: DataFrame, path: str, save_mode: str = "append", **options: str) -> None:
    data.write.format("remuda").options(path=path, map="t", **options).mode(save_mode).save()


def names_of(path: str) -> dict[int, str]:
    with remuda.open(path) as grid:
        assert grid.sql("SELECT COUNT(*) FROM t WHERE name = 'n3'").fetchone() in {(0,), (1,)}
        return dict(grid.sql("SELECT id, name FROM t").fetchall())


def test_rows_are_appended_replaced_and_overwritten(session: SparkSession, target: str) -> None:
    save(numbers(session, 0, 10), target)
    save(numbers(session, 10, 20), target)
    assert names_of(target) == {number: f"n{number}" for number in range(20)}
    save(numbers(session, 15, 25, "m"), target, mode="upsert")
    assert names_of(target)[15] == "m15"
    save(numbers(session, 0, 3), target, save_mode="overwrite")
    assert names_of(target) == {0: "n0", 1: "n1", 2: "n2"}


def test_a_key_that_exists_fails_the_whole_append(session: SparkSession, target: str, tmp_path: Path) -> None:
    save(numbers(session, 0, 10), target)
    with pytest.raises(Exception, match="duplicate key"):
        save(numbers(session, 9, 30), target)
    assert len(names_of(target)) == 10
    assert not any((tmp_path / "target.remuda" / "inbox").iterdir())


def test_a_failed_task_leaves_nothing(session: SparkSession, target: str, tmp_path: Path) -> None:
    """Nor does the other one, which Spark does not wait for: it writes its rows when the job has long failed."""
    ended = tmp_path / "ended"

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 7 in batch["id"].to_pylist():
                raise ValueError("no seven")
            yield batch
        time.sleep(1)
        ended.touch()

    data = numbers(session, 0, 10).repartitionByRange(2, "id").mapInArrow(slowly, "id BIGINT, name STRING")
    with pytest.raises(Exception, match="no seven"):
        save(data, target)
    wait_until(ended.exists)
    time.sleep(0.5)
    assert names_of(target) == {}
    assert not any((tmp_path / "target.remuda" / "inbox").iterdir())


def test_a_wrong_schema_is_refused(session: SparkSession, target: str) -> None:
    with pytest.raises(Exception, match="no column nam"):
        save(numbers(session, 0, 10).withColumnRenamed("name", "nam"), target)
    with pytest.raises(Exception, match="BIGINT"):
        save(session.sql("SELECT DATE'2024-01-01' AS id, 'x' AS name"), target)


def test_an_open_grid_takes_over_what_spark_wrote(session: SparkSession, target: str) -> None:
    with remuda.open(target) as grid:
        grid.sql("INSERT INTO t VALUES (100, 'mine')")
        save(numbers(session, 0, 10), target)
        assert grid.sql("SELECT COUNT(*) FROM t").fetchone() == (11,)
        assert grid.sql("SELECT id FROM t WHERE name = 'n3'").fetchall() == [(3,)]
        with pytest.raises(Exception, match="duplicate key in t: id = 9"):
            save(numbers(session, 9, 30), target)
        assert grid.sql("SELECT COUNT(*) FROM t").fetchone() == (11,)


def test_a_map_without_a_key_is_written_with_generated_ones(session: SparkSession, tmp_path: Path) -> None:
    from remuda.spark.source.data_source import RemudaSource

    path = str(tmp_path / "events.remuda")
    with remuda.open(path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, name VARCHAR)")
        grid.sql("INSERT INTO t VALUES (-1, 'mine')")
        for _ in range(2):
            save(numbers(session, 0, 10), path)
        found = grid.sql("SELECT COUNT(*), COUNT(DISTINCT __key), COUNT(DISTINCT id) FROM t").fetchall()
        assert found == [(21, 21, 11)]
        (key,) = grid.sql("SELECT MAX(__key) FROM t WHERE id = 7").fetchall()[0]
        assert grid.sql("SELECT id FROM t WHERE __key = ?", key).fetchall() == [(7,)]
        with pytest.raises(remuda.RemudaError, match="no PRIMARY KEY: a batch that Spark repeats"):
            RemudaSource({"path": path, "map": "t"}).streamWriter(numbers(session, 0, 3).schema, overwrite=False)
        save(numbers(session, 0, 3), path, save_mode="overwrite")
        assert grid.sql("SELECT COUNT(*) FROM t").fetchone() == (3,)


def test_a_missing_key_is_the_same_mistake_as_without_spark(session: SparkSession, target: str) -> None:
    with pytest.raises(Exception, match=r"the key t\.id must not be NULL") as caught:
        save(session.sql("SELECT if(id = 1, NULL, id) AS id, 'n' AS name FROM range(3)"), target)
    assert "ConstraintError" in str(caught.value)


def test_a_stream_commits_each_batch_once(session: SparkSession, target: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    numbers(session, 0, 10).write.parquet(str(source))

    def run() -> None:
        stream = session.readStream.schema("id bigint, name string").parquet(str(source))
        query = (
            stream.writeStream.format("remuda")
            .options(path=target, map="t", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    assert len(names_of(target)) == 10
    numbers(session, 5, 15, "m").write.mode("append").parquet(str(source))
    run()
    found = names_of(target)
    assert len(found) == 15
    assert (found[4], found[5], found[14]) == ("n4", "m5", "m14")
    # As after a crash between the commit of a batch and Spark's note of it.
    last = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    run()
    assert names_of(target) == found


def test_planning_leaves_nothing_behind_but_the_lease(tmp_path: Path) -> None:
    """Planned in one process query after query: readers that stayed open would each read all files to verify them."""
    path = tmp_path / "shop.remuda"
    with remuda.open(path) as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, PRIMARY KEY (id))")
        grid.load("orders", pa.table({"id": range(ROWS)}))
    running = {thread.name for thread in threading.enumerate()}
    reader = MapReader({"path": str(path), "map": "orders"}, 2)
    assert len(reader.partitions()) == 2
    assert {thread.name for thread in threading.enumerate()} == running
    assert [lease.suffix for lease in (path / "readers").iterdir()] == [".until"]


@pytest.mark.parametrize("name", ["columns", "changes", "since"])
def test_options_of_a_map_are_refused_beside_a_query(name: str) -> None:
    """They were left out without a word."""
    with pytest.raises(SqlError, match=f"{name} belongs to the option map"):
        RemudaSource(CaseInsensitiveDict({"path": "shop.remuda", "query": "SELECT 1", name.upper(): "1"}))


def test_the_guide_names_all_options() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0].casefold() for line in guide.splitlines() if line.startswith("| `")]
    assert {name for name in _OPTIONS if not any(f"`{name}`" in row for row in rows)} == set()
