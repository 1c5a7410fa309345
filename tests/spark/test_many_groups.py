"""Queries in Spark over a map of many partition groups: each task is told of the segments that it reads."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.spark.driver import tasks
from remuda.spark.query import shuffle_stages, stage_job
from tests.storage.test_lazy_segments import PARTITIONS, made, path

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["made", "path"]

QUERIES = (
    "SELECT s, COUNT(*), SUM(v) FROM t GROUP BY s ORDER BY s",
    "SELECT COUNT(*), SUM(a.v) FROM t a JOIN t b ON a.id = b.v WHERE b.id < 15000",
    "SELECT COUNT(*) FROM t WHERE v = 7",
    "SELECT id, v FROM t WHERE id IN (17, 18, 4711, 20100) ORDER BY id",
)


def test_tasks_are_told_of_their_own_segments_and_answer_as_here(
    path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, list[int]]] = []
    run_tasks = tasks.run_tasks

    def measured(session: Any, function: Any, payloads: Any, **given: Any) -> Any:
        shared = sum(len(pickle.dumps(each.snapshots)) for each in given["shared"])
        told.append((shared, [len(pickle.dumps(each.segments)) for each in payloads.values()]))
        return run_tasks(session, function, payloads, **given)

    monkeypatch.setattr(stage_job, "run_tasks", measured)
    monkeypatch.setattr(shuffle_stages, "_task_count", lambda _fragments, _slots: 16)
    with remuda.open(path, spark=spark) as grid:
        grid.sql("DELETE FROM t WHERE id >= 100 AND id < 300")
        grid.checkpoint()
        grid.sql("UPDATE t SET v = 5000 WHERE id < 20")
        for query in QUERIES:
            grid.sql("SET engine = local")
            here = grid.sql(query).fetchall()
            grid.sql("SET engine = spark")
            told.clear()
            assert grid.sql(query).fetchall() == here
            for shared, own in told:
                assert shared < 6_000
                assert max(own) < 600 * (PARTITIONS // 16)
        assert told, "the last query ran in Spark"
