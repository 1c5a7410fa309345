"""Queries whose rows meet in Spark's tasks: the same answers as here, by files between stages and by its shuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.spark.query import shuffle_stages
from tests.harness.shuffled import exchanges, shuffles_for_nothing
from tests.spark.leftovers import left_behind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.grid import Grid

pytestmark = pytest.mark.spark

ROWS = 60_000
CUSTOMERS = 9_000

HASH, BROADCAST = "HashExchange", "BroadcastExchange"
QUERIES = {
    "many groups": ("SELECT customer, COUNT(*), SUM(amount), AVG(price) FROM orders GROUP BY customer", {HASH}),
    "values counted once": ("SELECT customer, COUNT(DISTINCT day), SUM(price) FROM orders GROUP BY customer", {HASH}),
    "join and groups": (
        "SELECT c.region, COUNT(*), SUM(o.price) FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region",
        {HASH},
    ),
    "full join": (
        "SELECT COUNT(*), COUNT(o.id), SUM(c.id) FROM orders o FULL JOIN customers c ON o.customer = c.id + 7",
        {HASH},
    ),
    "small side to all": (
        "SELECT o.day, COUNT(*) FROM orders o JOIN customers c ON o.customer = c.id AND c.id < 20 GROUP BY o.day",
        {BROADCAST},
    ),
    "anti join": (
        "SELECT COUNT(*), SUM(id) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)",
        {BROADCAST},
    ),
    "window": (
        "SELECT SUM(r) FROM (SELECT RANK() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders) AS x",
        {HASH},
    ),
    "set operation": (
        "SELECT COUNT(*), SUM(k) FROM (SELECT customer AS k FROM orders EXCEPT SELECT id FROM customers) AS x",
        {HASH},
    ),
}
"""Each with the kinds of exchange that its plan has at least. Decimals, as a sum of floating-point numbers depends on
the order in which they are added."""


def fill(grid: Grid, of_orders: int = 271, of_customers: int = 271) -> None:
    """Most rows in segments, some in the log, some replaced and removed there; NULLs among the keys of joins."""
    grid.sql(
        "CREATE TABLE orders (id BIGINT, customer BIGINT, day INTEGER, amount DOUBLE, price DECIMAL(12, 2), "
        f"note VARCHAR, PRIMARY KEY (id)) WITH (partitions = {of_orders})"
    )
    grid.sql(
        "CREATE TABLE customers (id BIGINT, region BIGINT, name VARCHAR, PRIMARY KEY (id)) "
        f"WITH (partitions = {of_customers})"
    )
    random = np.random.default_rng(7)
    customer = pa.array(random.integers(0, CUSTOMERS + 500, ROWS), mask=random.random(ROWS) < 0.05)
    columns = {
        "id": np.arange(ROWS),
        "customer": customer,
        "day": pa.array(random.integers(0, 40, ROWS), pa.int32()),
        "amount": random.integers(0, 500, ROWS) / 4,
        "price": pa.array(random.integers(0, 10**6, ROWS)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
        "note": pa.array([f"note {number % 300}" for number in range(ROWS)]),
    }
    grid.load("orders", pa.table(columns))
    keys = np.arange(CUSTOMERS)
    names = [f"customer {key}" for key in keys]
    grid.load("customers", pa.table({"id": keys, "region": keys % 3_000, "name": names}))
    grid.sql("UPDATE orders SET customer = 4 WHERE id BETWEEN 50 AND 60")
    grid.sql("DELETE FROM customers WHERE id IN (5, 6, 7)")
    grid.sql("INSERT INTO customers VALUES (20000, 1, 'late')")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shuffle") / "grid.remuda"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    with remuda.open(folder) as grid:
        fill(grid)
        return {name: rows_of(grid, sql) for name, (sql, _) in QUERIES.items()}


@pytest.fixture
def grid(
    spark: SparkSession, folder: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Grid]:
    """Tasks of which each has more than one to receive from, and which come in waves."""
    monkeypatch.setattr(shuffle_stages, "TASK_BYTES", 500_000)
    with shuffles_for_nothing(), remuda.open(folder, spark=spark) as opened:
        opened.sql("SET engine = spark")
        yield opened


@pytest.fixture
def reader(
    spark: SparkSession, folder: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Grid]:
    """A grid whose tasks may write nowhere."""
    monkeypatch.setattr(shuffle_stages, "TASK_BYTES", 500_000)
    with shuffles_for_nothing(), remuda.open(folder, spark=spark, read_only=True) as opened:
        opened.sql("SET engine = spark")
        yield opened


def rows_of(grid: Grid, sql: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in grid.sql(sql)), key=repr)


def test_answers_are_those_of_the_local_engine(grid: Grid, expected: dict[str, Any]) -> None:
    for name, (sql, kinds) in QUERIES.items():
        assert kinds <= exchanges(grid, sql), name
        assert rows_of(grid, sql) == expected[name], name
    assert left_behind(grid) == []


def test_tables_of_different_partitions(
    spark: SparkSession, tmp_path: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those joined by the key of both, whose rows lie together where the numbers are the same."""
    monkeypatch.setattr(shuffle_stages, "TASK_BYTES", 500_000)
    by_keys = "SELECT COUNT(*), SUM(c.region) FROM orders o JOIN customers c ON o.id = c.id"
    for of_orders, of_customers in ((1024, 1024), (1024, 7), (5, 271)):
        with shuffles_for_nothing(), remuda.open(tmp_path / f"{of_customers}", spark=spark) as grid:
            fill(grid, of_orders, of_customers)
            here = rows_of(grid, by_keys)
            grid.sql("SET engine = spark")
            moved = bool({HASH, BROADCAST} & exchanges(grid, by_keys))
            assert moved is (of_orders != of_customers)
            assert rows_of(grid, by_keys) == here
            for name in ("many groups", "join and groups", "full join", "set operation"):
                assert rows_of(grid, QUERIES[name][0]) == expected[name], name


def test_answers_by_the_shuffle_of_spark(reader: Grid, expected: dict[str, Any]) -> None:
    for name in ("join and groups", "small side to all"):
        assert rows_of(reader, QUERIES[name][0]) == expected[name], name


def test_order_over_joined_rows(grid: Grid) -> None:
    sql = (
        "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id AND c.region < 900 "
        "ORDER BY c.name DESC, o.id"
    )
    assert exchanges(grid, sql)
    found = grid.sql(sql).to_arrow()
    grid.sql("SET engine = local")
    assert found.equals(grid.sql(sql).to_arrow())


def test_parameters_and_writes_after_the_plan_was_made(grid: Grid) -> None:
    sql = (
        "SELECT c.name, COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer = c.id "
        "WHERE c.id > ? GROUP BY c.name"
    )
    assert exchanges(grid, sql)
    before = sorted(tuple(row) for row in grid.sql(sql, CUSTOMERS - 3))
    grid.sql("INSERT INTO customers VALUES (30000, 1, 'later')")
    after = sorted(tuple(row) for row in grid.sql(sql, CUSTOMERS - 3))
    grid.sql("DELETE FROM customers WHERE id = 30000")
    assert after == sorted([*before, ("later", 1)])


@pytest.mark.spark
@pytest.mark.parametrize("which", ["grid", "reader"])
def test_error_of_a_stage_is_the_error_of_the_query(which: str, request: pytest.FixtureRequest) -> None:
    grid = request.getfixturevalue(which)
    sql = "SELECT customer, COUNT(DISTINCT 10 / (id - 59999)) FROM orders GROUP BY customer"
    assert exchanges(grid, sql) == {HASH}
    with pytest.raises(SqlError, match="division by zero") as caught:
        grid.sql(sql).fetchall()
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert left_behind(grid) == []


def test_memory_limit_holds_in_tasks(grid: Grid) -> None:
    grid.sql("SET memory_limit = '10kB'")
    with pytest.raises(SqlError, match="needs more memory than the limit of 10 kB"):
        grid.sql("SELECT day, MEDIAN(amount) FROM orders GROUP BY day").fetchall()


@pytest.mark.parametrize("query", ["many groups", "full join", "window"])
def test_tasks_spill_beyond_the_memory_limit(grid: Grid, expected: dict[str, Any], query: str) -> None:
    grid.sql("SET memory_limit = '300kB'")
    assert rows_of(grid, QUERIES[query][0]) == expected[query]
    assert left_behind(grid) == []


def test_timeout_between_stages(grid: Grid) -> None:
    grid.sql("SET timeout = 0.001")
    with pytest.raises(SqlError) as caught:
        grid.sql(QUERIES["window"][0]).fetchall()
    assert caught.value.code is ErrorCode.TIMEOUT
    assert left_behind(grid) == []


@pytest.mark.spark
@pytest.mark.parametrize("which", ["grid", "reader"])
def test_drawn_numbers_are_sent_once(which: str, request: pytest.FixtureRequest) -> None:
    """Every row arrives somewhere, and once, though nobody can say again where it belongs."""
    grid = request.getfixturevalue(which)
    sql = "SELECT SUM(n) FROM (SELECT k, COUNT(*) AS n FROM (SELECT random() AS k FROM orders) AS x GROUP BY k) AS y"
    assert HASH in exchanges(grid, sql)
    assert [tuple(row) for row in grid.sql(sql)] == [(ROWS,)]


def test_explain_says_how(grid: Grid) -> None:
    text = grid.explain(QUERIES["join and groups"][0])
    assert "HashExchange [PARTITIONED by " in text
    assert text.endswith("engine: spark, by shuffle   (SET engine = spark)")
    assert grid.explain("SELECT id FROM orders WHERE day = 1").endswith("engine: spark   (SET engine = spark)")
