"""Statements that write many rows from Spark: tasks write the segments, the driver commits all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.errors import SqlError
from remuda.spark.driver.tasks import run_tasks
from remuda.spark.query import stage_job
from remuda.storage import MapStore
from tests.harness.shuffled import shuffles_for_nothing
from tests.spark.leftovers import left_behind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.grid import Grid

ROWS = 200_000


@pytest.fixture
def grid(spark: SparkSession, tmp_path: Path) -> Iterator[Grid]:
    with shuffles_for_nothing(), remuda.open(tmp_path / "grid.remuda", spark=spark) as opened:
        opened.sql("CREATE TABLE numbers (id BIGINT, third BIGINT, text VARCHAR, PRIMARY KEY (id))")
        opened.load("numbers", spark.range(ROWS).selectExpr("id", "id % 3 AS third", "concat('row ', id % 50) AS text"))
        opened.sql("CREATE TABLE t (id BIGINT, third BIGINT, text VARCHAR(20), PRIMARY KEY (id))")
        opened.sql("CREATE INDEX t_third ON t (third) TYPE HASH")
        opened.sql("SET engine = spark")
        yield opened


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each answer that tasks send to the driver."""
    sizes: list[int] = []

    def counted(*arguments: Any, **options: Any) -> Iterator[bytes]:
        for answer in run_tasks(*arguments, **options):
            sizes.append(len(answer))
            yield answer

    monkeypatch.setattr(stage_job, "run_tasks", counted)
    return sizes


def store_of(grid: Grid, name: str) -> MapStore:
    found = grid.store.catalog.find_map(name, ("public",))
    assert found is not None
    return grid.store.map(found)


def files_of(grid: Grid) -> set[str]:
    assert grid.store.path is not None
    return {each.name for each in (grid.store.path / "maps").rglob("*") if each.is_file()}


def totals(grid: Grid, name: str) -> list[Any]:
    grid.sql("SET engine = local")
    found = grid.sql(f"SELECT COUNT(*), SUM(id), SUM(third), COUNT(DISTINCT text) FROM {name}").fetchall()
    grid.sql("SET engine = spark")
    return found


def test_no_row_comes_to_the_driver(grid: Grid, sent: list[int]) -> None:
    text = "INSERT INTO t SELECT id * 3, third, text FROM numbers"
    plan = "\n".join(str(row[0]) for row in grid.sql(f"EXPLAIN {text}"))
    assert "Commit t" in plan
    assert "segments by tasks" in plan
    assert grid.sql(text).update_count == ROWS
    assert 0 < sum(sent) < 100_000  # descriptions of segments and shuffle blocks, of several MB of rows
    assert store_of(grid, "t").memtable_length == 0
    assert totals(grid, "t") == [(ROWS, 3 * ROWS * (ROWS - 1) // 2, sum(i % 3 for i in range(ROWS)), 50)]
    grid.sql("SET engine = local")
    assert grid.sql("SELECT third, text FROM t WHERE id = 300").fetchall() == [(100 % 3, "row 0")]
    assert grid.sql("SELECT COUNT(*) FROM t WHERE third = 1").fetchall() == [(len(range(1, ROWS, 3)),)]
    path = grid.store.path
    assert left_behind(grid) == []
    with remuda.open(path, read_only=True) as reader:
        assert reader.sql("SELECT COUNT(*) FROM t").fetchall() == [(ROWS,)]


def test_a_sink_and_an_update_replace_rows(grid: Grid) -> None:
    grid.sql("INSERT INTO t SELECT id, third, text FROM numbers WHERE id < 100000")
    assert grid.sql("SINK INTO t SELECT id + 50000, 7, 'sunk' FROM numbers WHERE id < 100000").update_count == 100_000
    assert grid.sql("UPDATE t SET third = third + 1 WHERE id >= 0").update_count == 150_000
    grid.sql("SET engine = local")
    found = grid.sql("SELECT text = 'sunk', COUNT(*), SUM(third) FROM t GROUP BY 1 ORDER BY 1").fetchall()
    assert found == [(False, 50_000, sum(i % 3 + 1 for i in range(50_000))), (True, 100_000, 800_000)]


def test_the_order_of_a_query_tells_which_row_of_a_key_is_written(grid: Grid) -> None:
    """Tasks sort their own rows, and those of one key come from many."""
    text = "SINK INTO t SELECT id % 1000, id, text FROM numbers ORDER BY id * 7919 % 200000"
    assert "segments by tasks" in str(grid.sql(f"EXPLAIN {text}").fetchall())
    assert grid.sql(text).update_count == 1000
    grid.sql("SET engine = local")
    last = {i % 1000: i for i in sorted(range(ROWS), key=lambda i: i * 7919 % 200_000)}
    assert dict(grid.sql("SELECT id, third FROM t").fetchall()) == last


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("INSERT INTO t SELECT id, third, text FROM numbers WHERE id >= 5", "duplicate key in t"),
        ("INSERT INTO t SELECT id / 2 + 300000, third, text FROM numbers", "duplicate key in t"),
        ("INSERT INTO t SELECT NULLIF(id, 150000) + 300000, third, text FROM numbers", "must not be NULL"),
        ("SINK INTO t SELECT id, third, text || 'much too long a text' FROM numbers", "characters"),
        ("INSERT INTO t SELECT id + 300000, 1 / (id - 77777), text FROM numbers", "zero"),
    ],
)
def test_a_refused_statement_leaves_nothing(grid: Grid, text: str, told: str) -> None:
    grid.sql("INSERT INTO t SELECT id, third, text FROM numbers WHERE id < 10")
    grid.checkpoint()
    before, files = totals(grid, "t"), files_of(grid)
    with pytest.raises(SqlError, match=told):
        grid.sql(text)
    assert totals(grid, "t") == before
    assert files_of(grid) == files
    assert left_behind(grid) == []


@pytest.mark.slow
def test_five_million_rows_are_inserted_without_rows_on_the_driver(
    grid: Grid, spark: SparkSession, sent: list[int]
) -> None:
    rows = 5_000_000
    grid.sql("CREATE TABLE source (id BIGINT, a BIGINT, PRIMARY KEY (id))")
    grid.load("source", spark.range(rows).selectExpr("id", "id % 1000 AS a"))
    grid.sql("CREATE TABLE target (id BIGINT, a BIGINT, PRIMARY KEY (id))")
    assert grid.sql("INSERT INTO target SELECT id + 1, a FROM source").update_count == rows
    written = sum(each.segment.batch.nbytes for each in store_of(grid, "target").stored)
    assert written >= 16 * rows
    assert sum(sent) < written / 100
    grid.sql("SET engine = local")
    assert grid.sql("SELECT COUNT(*), MIN(id), MAX(id) FROM target").fetchall() == [(rows, 1, rows)]
