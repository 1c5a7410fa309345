"""The option `query`: which queries tasks share, and that the answer is the grid's own on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import types

import remuda
from remuda.errors import SqlError
from remuda.spark.source import pinned_read, shared_query, source_read
from remuda.spark.source.data_source import RemudaSource
from remuda.spark.source.source_read import QueryReader, query_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.grid import Grid

ROWS = 3_000
TYPES = [
    "BOOLEAN",
    "SMALLINT",
    "INTEGER",
    "TINYINT",
    "DECIMAL(20, 4)",
    "REAL",
    "DOUBLE",
    "VARCHAR",
    "VARBINARY",
    "DATE",
]
TYPES += ["TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME", "JSON"]


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Grid]:
    """Rows in a segment and in the memtable; tasks run in this process, in one execution."""
    monkeypatch.setattr(shared_query, "LEAST_ROWS", 1_000)
    for module in (pinned_read, source_read):
        monkeypatch.setattr(module, "running_execution", lambda: "e" * 32)
    monkeypatch.setattr(pinned_read, "_stores", {})
    with remuda.open(tmp_path / "shop.remuda") as opened:
        opened.sql("CREATE TABLE orders (id BIGINT, status VARCHAR, amount DOUBLE, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_status ON orders (status) TYPE HASH")
        opened.sql(
            "INSERT INTO orders SELECT i, CASE WHEN i = 7 THEN 'odd' ELSE 's' || (i % 4) END, i / 8.0 "
            f"FROM generate_series(1, {ROWS}) AS s(i)"
        )
        opened.checkpoint()
        opened.sql("CREATE VIEW cheap AS SELECT id FROM orders WHERE amount < 50")
        opened.sql("DELETE FROM orders WHERE id % 10 = 0")
        opened.sql("UPDATE orders SET amount = NULL WHERE id % 11 = 0")
        yield opened


def options_of(grid: Grid, query: str, **options: str) -> dict[str, str]:
    return {"path": str(grid.store.path), "query": query, **options}


def read(reader: QueryReader) -> tuple[int, list[tuple[Any, ...]]]:
    """The number of tasks, and the rows that they give."""
    partitions = reader.partitions()
    tables = [pa.table(batch) for partition in partitions for batch in reader.read(partition)]
    rows = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    return len(partitions), rows


SHARED = [
    "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 100",
    "SELECT * FROM orders",
    "SELECT UPPER(status) AS u, id FROM orders WHERE status LIKE 's1%' OR amount IS NULL",
    "SELECT id FROM (SELECT id, amount + 1 AS more FROM orders) AS t WHERE more < 50",
    "SELECT id FROM orders WHERE amount < 0",
]
ALONE = [
    "SELECT id, amount FROM orders WHERE id = 8",
    "SELECT id FROM orders WHERE status = 'odd'",
    "SELECT COUNT(*) AS n, SUM(amount) AS total FROM orders",
    "SELECT status, COUNT(*) AS n FROM orders GROUP BY status",
    "SELECT id FROM orders ORDER BY amount LIMIT 5",
    "SELECT DISTINCT status FROM orders",
    "SELECT a.id FROM orders a JOIN orders b ON a.id + 1 = b.id",
    "SELECT id FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
    "SELECT id FROM orders UNION ALL SELECT id FROM orders",
    "SELECT id FROM orders WHERE now() > TIMESTAMP WITH TIME ZONE '2000-01-01 00:00:00+00'",
    "SELECT id FROM cheap",
    "SHOW TABLES",
]


@pytest.mark.parametrize(("query", "tasks"), [*((query, 3) for query in SHARED), *((query, 1) for query in ALONE)])
def test_the_answer_is_that_of_the_grid(grid: Grid, query: str, tasks: int) -> None:
    count, rows = read(QueryReader(options_of(grid, query), 3))
    result = grid.sql(query)
    columns = [(column.name, column.type) for column in result.columns]
    assert count == tasks
    assert sorted(rows, key=repr) == sorted((tuple(row) for row in result), key=repr)
    assert [(column.name, column.type) for column in query_columns(options_of(grid, query))] == columns


def test_a_small_map_is_read_by_one_task_unless_more_are_asked_for(grid: Grid) -> None:
    grid.sql("CREATE TABLE few (k BIGINT, PRIMARY KEY (k))")
    grid.sql("INSERT INTO few VALUES (1), (2), (3)")
    assert read(QueryReader(options_of(grid, "SELECT k FROM few"), 3))[0] == 1
    count, rows = read(QueryReader(options_of(grid, "SELECT k FROM few", tasks="2"), 3))
    assert (count, sorted(rows)) == (2, [(1,), (2,), (3,)])


def test_the_columns_of_a_query_are_known_without_running_it(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups and sums ran twice: once for their columns, when the frame was made."""
    started: list[str] = []
    monkeypatch.setattr(type(grid.engine), "start", lambda *_, **__: started.append("a query"))
    assert [column.name for column in query_columns(options_of(grid, ALONE[3]))] == ["status", "n"]
    assert started == []


def test_tasks_read_the_version_of_their_execution(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = QueryReader(options_of(grid, "SELECT amount FROM orders"), 2)
    first, second = reader.partitions()
    rows = sum(batch.num_rows for batch in reader.read(first))
    grid.sql("UPDATE orders SET amount = -1")
    assert {amount for batch in reader.read(second) for amount in batch.column(0).to_pylist()} != {-1.0}
    monkeypatch.setattr(pinned_read, "running_execution", lambda: "f" * 32)
    found = [amount for batch in reader.read(first) for amount in batch.column(0).to_pylist()]
    assert found == [-1.0] * rows


def test_a_map_that_was_made_anew_is_refused(grid: Grid) -> None:
    reader = QueryReader(options_of(grid, "SELECT * FROM orders"), 2)
    (first, _) = reader.partitions()
    grid.sql("DROP TABLE orders")
    grid.sql("CREATE TABLE orders (id BIGINT, v BIGINT, PRIMARY KEY (id))")
    with pytest.raises(SqlError, match="made anew with other columns"):
        list(reader.read(first))


@pytest.mark.parametrize("query", ["SELECT nothing FROM orders", "SELECT id FROM orders WHERE id = ?", "SELEC 1"])
def test_what_is_wrong_with_a_query_is_told_when_the_frame_is_made(grid: Grid, query: str) -> None:
    with pytest.raises(SqlError) as caught:
        query_columns(options_of(grid, query))
    assert caught.value.text == query


def test_tasks_of_spark_share_a_query(spark: SparkSession, grid: Grid) -> None:
    query = "SELECT id, amount FROM orders WHERE amount > 10 OR amount IS NULL"
    frame = spark.read.format("remuda").options(**options_of(grid, query, tasks="4")).load()
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(map(repr, map(tuple, frame.collect()))) == sorted(map(repr, map(tuple, grid.sql(query))))
    grid.sql("INSERT INTO orders VALUES (?, 'new', 11)", ROWS + 1)
    assert frame.where(f"id = {ROWS + 1}").count() == 1


@pytest.mark.parametrize("source", ["map", "query"])
def test_a_frame_whose_first_query_finds_other_columns_is_refused(spark: SparkSession, grid: Grid, source: str) -> None:
    """Spark plans a read by the first query, and not when it takes the columns."""
    assert spark.version, "Java reads the text of a schema"
    kinds = [name for name in TYPES if name != "TIME" or hasattr(types, "TimeType")]
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
    grid.sql(f"CREATE TABLE typed (id BIGINT, {columns}, PRIMARY KEY (id))")
    grid.sql("INSERT INTO typed (id) VALUES (1)")
    options = {"path": str(grid.store.path), source: "typed" if source == "map" else "SELECT * FROM typed"}
    found = RemudaSource(options)
    schema = types.StructType.fromDDL(found.schema())
    assert isinstance(schema, types.StructType)
    reader = found.reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    assert [batch.schema.names for batch in batches] == [schema.names]
    grid.sql("DROP TABLE typed")
    grid.sql(f"CREATE TABLE typed (id BIGINT, {columns.replace('c1 SMALLINT', 'c1 BIGINT')}, PRIMARY KEY (id))")
    message = "made anew with other columns" if source == "map" else "the query has other columns than the data frame"
    with pytest.raises(SqlError, match=message):
        found.reader(schema)


def test_a_query_that_is_planned_again_in_its_task_keeps_its_columns(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT status, SUM(amount) AS total FROM orders GROUP BY status"
    reader = QueryReader(options_of(grid, query), 2)
    (partition,) = reader.partitions()
    assert list(reader.read(partition))
    grid.sql("DROP TABLE orders")
    grid.sql("CREATE TABLE orders (id BIGINT, status VARCHAR, amount DECIMAL(10, 2), PRIMARY KEY (id))")
    monkeypatch.setattr(source_read, "running_execution", lambda: "f" * 32)
    with pytest.raises(SqlError, match="the query has other columns than the data frame"):
        list(reader.read(partition))


def test_a_query_of_one_task_returns_times(grid: Grid) -> None:
    """Spark gets TIME in nanoseconds, which the check of the columns has to know."""
    grid.sql("CREATE TABLE clocks (id BIGINT, at TIME, PRIMARY KEY (id))")
    grid.sql("INSERT INTO clocks VALUES (1, TIME '12:30:00')")
    reader = QueryReader(options_of(grid, "SELECT at FROM clocks ORDER BY id LIMIT 1"), 2)
    (partition,) = reader.partitions()
    assert [batch.num_rows for batch in reader.read(partition)] == [1]
