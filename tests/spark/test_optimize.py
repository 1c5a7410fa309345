"""OPTIMIZE by Spark's tasks: a segment for each group, the rows as they were, only descriptions on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.errors import StorageError
from remuda.spark.load import optimize_job
from remuda.storage.load import map_load, segment_cut
from remuda.storage.segment.group_ranges import cuts_of
from tests.storage.test_lazy_segments import PARTITIONS, ROWS, numbered, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def grid(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A map of several groups, with runs over them and deleted rows."""
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 120_000)
    monkeypatch.setattr(optimize_job, "LEAST_BYTES", 0)
    with remuda.open(tmp_path / "shop.remuda", spark=spark) as opened:
        opened.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = {PARTITIONS})")
        opened.sql("CREATE INDEX t_v ON t (v)")
        opened.load("t", numbered(0, ROWS))
        opened.load("t", numbered(ROWS, ROWS + 50))
        opened.sql("DELETE FROM t WHERE id < 700")
        opened.checkpoint()
        yield opened


def rows_of(grid: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in grid.sql("SELECT * FROM t ORDER BY id")]


def files(grid: Any) -> set[str]:
    return {path.name for path in (grid.store.path / "maps" / store_of(grid).definition.id).iterdir()}


def test_tasks_write_a_segment_for_each_group(grid: Any) -> None:
    before = rows_of(grid)
    assert any(each.group is None or len(each.deleted) for each in store_of(grid).stored)
    grid.sql("OPTIMIZE t")
    found = store_of(grid)
    groups = len(cuts_of(found.stored, PARTITIONS)) + 1
    assert groups > 2
    assert [each.segment.id for each in found.stored if not each.segment.id.startswith("load")] == []
    assert len(found.stored) == groups
    assert all(each.group is not None and not len(each.deleted) for each in found.stored)
    assert rows_of(grid) == before
    assert grid.sql("SELECT COUNT(*) FROM t WHERE v = 999").fetchall() == [(ROWS // 1000,)]
    assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]
    kept = [each.segment.id for each in found.stored]
    grid.sql("OPTIMIZE t")
    assert [each.segment.id for each in found.stored] == kept


def test_a_job_that_fails_leaves_nothing(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before, present = rows_of(grid), files(grid)

    def refused(*_given: Any, **_named: Any) -> Any:
        raise StorageError("the driver gives up")

    monkeypatch.setattr(optimize_job, "segment_infos", refused)
    with pytest.raises(StorageError, match="gives up"):
        grid.sql("OPTIMIZE t")
    assert rows_of(grid) == before
    assert files(grid) == present


def test_little_work_is_done_without_a_job(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 120_000)
    before = rows_of(grid)
    grid.sql("OPTIMIZE t")
    assert not [each for each in store_of(grid).stored if each.segment.id.startswith("load")]
    assert rows_of(grid) == before
