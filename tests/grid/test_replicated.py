"""REPLICATED maps: whole on every member, so the coordinator asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import remuda

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = (
    "SELECT code, name FROM countries WHERE code = 'C7'",
    "SELECT code FROM countries WHERE code IN ('C1', 'C2', 'C99999')",
    "SELECT code FROM countries WHERE size BETWEEN 10 AND 20",
    "SELECT size % 3, COUNT(*), SUM(size) FROM countries GROUP BY size % 3",
    "SELECT code FROM countries ORDER BY size DESC LIMIT 5",
    "SELECT COUNT(*) FROM countries",
)


def fill(grid: Any) -> None:
    grid.sql("CREATE TABLE countries (code VARCHAR, name VARCHAR, size BIGINT, PRIMARY KEY (code)) REPLICATED")
    grid.sql("CREATE INDEX by_size ON countries (size)")
    grid.map("countries").put_all({f"C{number}": (f"n{number}", number) for number in range(100)})


def answers(grid: Any) -> list[list[tuple[Any, ...]]]:
    return [sorted(map(tuple, grid.sql(query))) for query in QUERIES]


@pytest.mark.parametrize("members", [1, 3])
def test_no_member_is_asked(members: int) -> None:
    with remuda.open(members=members) as grid:
        fill(grid)
        found = answers(grid)
        assert found[0] == [("C7", "n7")]
        assert found[3] == [(0, 34, 1683), (1, 33, 1617), (2, 33, 1650)]
        assert found[5] == [(100,)]
        assert "RootExchange" not in grid.explain(QUERIES[3])
        assert all(member.fragments_run == 0 for member in grid.cluster.members)
        assert grid.sql("UPDATE countries SET size = 0 WHERE size < 50").update_count == 50
        assert grid.sql("SELECT COUNT(*) FROM countries WHERE size = 0").fetchall() == [(50,)]


def test_a_replicated_map_needs_no_spark_job(tmp_path: Path, spark: SparkSession) -> None:
    with remuda.open(tmp_path / "grid", spark=spark) as grid:
        fill(grid)
        local = answers(grid)
        grid.checkpoint()
        grid.sql("SET engine = spark")
        # All of it is here: no job is started.
        assert "SPARK" not in grid.explain(QUERIES[5])
        assert answers(grid) == local
