"""EXPLAIN ANALYZE of queries that run in Spark's tasks: what every task did, added up."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 200_000
"""So many that the join is cheaper in a second stage of tasks than in the driver, from 60,000 rows on."""
QUERIES = {
    "gather": "SELECT n, COUNT(*), SUM(id) FROM m WHERE id % 4 <> 1 GROUP BY n",
    "shuffle": "SELECT COUNT(*), MAX(c) FROM (SELECT k, COUNT(*) AS c FROM m GROUP BY k) AS t",
    "join": "SELECT a.n, COUNT(*) FROM m a JOIN m b ON a.k = b.id AND a.id > b.n GROUP BY a.n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("analyze") / "grid.remuda"
    with remuda.open(path) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, k BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX m_n ON m (n) TYPE HASH")
        columns = {"id": range(ROWS), "n": [id_ % 100 for id_ in range(ROWS)], "k": [id_ // 2 for id_ in range(ROWS)]}
        grid.load("m", pa.table(columns))
    return path


@pytest.fixture(scope="module", params=[False, True], ids=["by files", "by Spark's shuffle"])
def grid(request: pytest.FixtureRequest, spark: SparkSession, folder: Path) -> Iterator[Any]:
    """Tasks may not write into a folder that is open for reading only: what they send goes through Spark then."""
    with remuda.open(folder, spark=spark, read_only=request.param) as opened:
        opened.sql("SET engine = spark")
        yield opened


def operators(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for each in tree.get("inputs", []):
        yield from operators(each)


@pytest.mark.parametrize("query", QUERIES)
def test_the_picture_has_what_the_tasks_did(grid: Any, query: str) -> None:
    explained = grid.explain(QUERIES[query], analyze=True)
    drawing = ET.fromstring(explained.to_svg())
    drawn = " ".join(drawing.itertext())
    assert "Spark's executors" in drawn
    assert "engine: spark" in drawn
    assert "all 271" in drawn
    cards = [each for each in drawing.iter("{http://www.w3.org/2000/svg}rect") if each.get("class") == "card"]
    assert len(cards) == str(explained).count("cost≈")


@pytest.mark.parametrize("query", QUERIES)
def test_every_operator_is_shown_with_what_the_tasks_did(grid: Any, query: str) -> None:
    document = json.loads(grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {QUERIES[query]}").fetchone()[0])
    found = list(operators(document.get("plan", document)))
    assert all("actual" in each for each in found), [each["operator"] for each in found if "actual" not in each]
    scans = [each["actual"] for each in found if each["operator"] == "MapScan"]
    assert scans
    for scan in scans:
        assert scan["members"] == 2
        assert scan["partitions"] == 271
        assert scan["rows_read"] == ROWS
        assert scan["seconds"] > 0
    if query == "gather":
        assert scans[0]["rows"] == ROWS * 3 // 4
    assert found[0]["actual"]["rows"] == grid.sql(QUERIES[query]).to_arrow().num_rows


def test_text_has_index_entries_of_all_tasks(grid: Any) -> None:
    text = "\n".join(row[0] for row in grid.sql("EXPLAIN ANALYZE SELECT id, k FROM m WHERE n = 7"))
    below = text[text.index("m_n") :]
    assert f"actual: rows={ROWS // 100} " in below
    assert f"index entries={ROWS // 100} members=2" in below


def test_error_of_a_task_is_still_the_error(grid: Any) -> None:
    with pytest.raises(SqlError, match="division by zero"):
        grid.sql("EXPLAIN ANALYZE SELECT SUM(id / (id - 7)) FROM m")


def test_a_line_for_the_job(grid: Any) -> None:
    """Tasks that Spark ran, what was not the operators' work, and why it was Spark."""
    for query, tasks, stages in ((QUERIES["gather"], 2, 1), (QUERIES["join"], 4, 2)):
        document = json.loads(grid.explain(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}"))
        job = document["job"]
        assert (job["tasks"], job["stages"]) == (tasks, stages)
        assert job["why"] == "SET engine = spark"
        assert 0 < job["seconds_outside_operators"] < document["execution_seconds"]
    last = grid.explain(f"EXPLAIN ANALYZE {QUERIES['gather']}").splitlines()[-1]
    assert re.fullmatch(r"engine: spark   tasks=2 stages=1 outside operators=[\d.]+ ms   \(SET engine = spark\)", last)


def test_fragments_that_run_in_tasks(grid: Any) -> None:
    text = grid.explain(f"EXPLAIN (FRAGMENTS) {QUERIES['gather']}")
    assert "Fragment 1   runs on: Spark's executors   sends: edge 1 to fragment 0" in text
    assert "MapScan m [PARTITIONED by id, SPARK]" in text
    assert text.endswith("engine: spark   (SET engine = spark)")


def test_partitions_without_members(grid: Any) -> None:
    """Executors own no partitions: whichever is free reads them."""
    text = grid.explain("SELECT n FROM m WHERE id IN (?, 4)", 3)
    assert "partitionedBy=[id]   partitions: 2 of 271\n" in text


def test_a_query_that_stays_here_says_why(grid: Any) -> None:
    grid.sql("SET engine = auto")
    try:
        last = grid.explain("EXPLAIN ANALYZE SELECT n FROM m WHERE id = 3").splitlines()[-1]
    finally:
        grid.sql("SET engine = spark")
    assert re.fullmatch(r"engine: local   \(local cost≈\d+, spark cost≈\d+\)", last)
