"""DELETE of every row and TRUNCATE replace the segments: no tombstones, and nothing comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError

ROWS = 70_000
"""More than a log holds before it is folded in the background."""
REMOVE_ALL = ("DELETE FROM t", "DELETE FROM t WHERE v >= 0", "DELETE FROM t USING one WHERE x = 1", "TRUNCATE TABLE t")


@pytest.fixture(params=["memory", "folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return None if request.param == "memory" else str(tmp_path / "grid")


@pytest.fixture
def grid(path: str | None) -> Iterator[Any]:
    with remuda.open(path) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE one (x BIGINT, PRIMARY KEY (x))")
        opened.sql("INSERT INTO one VALUES (1)")
        yield opened


def count(grid: Any) -> int:
    return int(grid.sql("SELECT COUNT(*) FROM t").fetchall()[0][0])


def fill(grid: Any) -> None:
    grid.load("t", pa.table({"id": range(ROWS), "v": range(ROWS)}))


@pytest.mark.parametrize("statement", REMOVE_ALL)
def test_no_tombstone_is_written(grid: Any, statement: str) -> None:
    fill(grid)
    result = grid.sql(statement)
    assert result.update_count == ROWS
    assert count(grid) == 0
    (definition,) = (each for each in grid.store.catalog.maps.values() if each.name == "t")
    assert grid.store.map(definition).memtable_length == 0


@pytest.mark.parametrize("statement", REMOVE_ALL)
def test_what_comes_later_stays(grid: Any, path: str | None, statement: str) -> None:
    fill(grid)
    grid.sql("INSERT INTO t VALUES (-1, 5)")
    assert grid.sql(statement).update_count == ROWS + 1
    grid.sql(f"INSERT INTO t VALUES (7, 8), ({ROWS}, 9)")
    assert grid.sql("SELECT id, v FROM t ORDER BY id").fetchall() == [(7, 8), (ROWS, 9)]
    if path is not None:
        grid.close()
        with remuda.open(path) as again:
            assert again.sql("SELECT id, v FROM t ORDER BY id").fetchall() == [(7, 8), (ROWS, 9)]


def test_some_rows_more_than_are_removed(grid: Any) -> None:
    fill(grid)
    assert grid.sql("DELETE FROM t WHERE id > 0").update_count == ROWS - 1
    assert grid.sql("SELECT id FROM t").fetchall() == [(0,)]


def test_a_reader_keeps_what_it_saw(grid: Any) -> None:
    fill(grid)
    result = grid.sql("SELECT id FROM t")
    assert result.fetchone() is not None
    grid.sql("DELETE FROM t")
    assert len(result.fetchall()) == ROWS - 1
    assert count(grid) == 0


@pytest.mark.parametrize("statement", REMOVE_ALL[:3])
def test_a_statement_without_time_removes_nothing(grid: Any, statement: str) -> None:
    fill(grid)
    grid.sql("SET timeout = 0.001")
    with pytest.raises(SqlError, match="timeout"):
        grid.sql(statement)
    grid.sql("SET timeout = 0")
    assert count(grid) == ROWS


@pytest.mark.parametrize("statement", REMOVE_ALL)
def test_a_checkpoint_in_the_background_brings_nothing_back(grid: Any, path: str | None, statement: str) -> None:
    """The INSERT makes the log long enough for one, which may be anywhere in its work."""
    for _ in range(5):
        grid.sql(f"INSERT INTO t SELECT i, i FROM generate_series(1, {ROWS}) AS numbers(i)")
        assert grid.sql(statement).update_count == ROWS
        assert count(grid) == 0
    grid.sql("CHECKPOINT")
    assert count(grid) == 0
    if path is not None:
        grid.close()
        with remuda.open(path) as again:
            assert count(again) == 0
