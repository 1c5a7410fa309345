"""Declarative pipelines of Spark, run by its own command `spark-pipelines`: into maps, and out of maps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.spark.driver.java import find_java, home_for_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid

pytest.importorskip("pyspark.pipelines", reason="declarative pipelines came with PySpark 4.1")
pytest.importorskip("grpc", reason="pipelines need the packages of pyspark[pipelines]")
pytest.importorskip("yaml", reason="pipelines need the packages of pyspark[pipelines]")
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CATALOG = ("--conf", "spark.sql.catalogImplementation=hive")
"""One that outlives a run, as the tables of a pipeline do: Spark keeps it in the working directory."""
SPECIFICATION = """
name: shop
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""
FLOWS = '''
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
STORE = {store!r}
ARRIVING = {arriving!r}

dp.create_sink("orders_map", "remuda", {{"path": STORE, "map": "orders", "mode": "apply", "operation": "op",
                                        "orderBy": "ts"}})
dp.create_sink("totals_map", "remuda", {{"path": STORE, "map": "totals", "key": "status"}})


@dp.append_flow(target="orders_map")
def changes():
    return spark.readStream.schema("id BIGINT, status STRING, amount BIGINT, ts BIGINT, op STRING").json(ARRIVING)


@dp.materialized_view
def totals():
    """A view over a map."""
    customers = spark.read.format("remuda").options(path=STORE, map="customers").load()
    return customers.groupBy("status").count()


@dp.append_flow(target="totals_map")
def totals_into_the_map():
    """The rows of the view, each time that it is made anew."""
    return spark.readStream.table("totals")
'''


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda") as opened:
        opened.sql("CREATE TABLE orders (id BIGINT, status VARCHAR, amount BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE customers (id BIGINT, status VARCHAR, PRIMARY KEY (id))")
        opened.sql("INSERT INTO customers VALUES (1, 'new'), (2, 'old'), (3, 'new')")
        yield opened


@pytest.fixture
def project(tmp_path: Path, grid: Grid) -> Path:
    folder = tmp_path / "project"
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPECIFICATION.format(folder=folder))
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    flows = FLOWS.format(store=str(grid.store.path), arriving=str(arriving))
    (folder / "transformations" / "flows.py").write_text(flows)
    return folder


def run(project: Path, *arguments: str) -> None:
    ended = subprocess.run(
        [Path(sys.executable).with_name("spark-pipelines"), "run", "--remote", "local[2]", *CATALOG, *arguments],
        cwd=project,
        env={
            **os.environ,
            "JAVA_HOME": str(home_for_spark(find_java())),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": str(Path(remuda.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-3_000:]


def arrive(project: Path, name: str, changes: list[tuple[int, str, int, int, str]]) -> None:
    names = ("id", "status", "amount", "ts", "op")
    lines = [json.dumps(dict(zip(names, each, strict=True))) for each in changes]
    (project.parent / "arriving" / name).write_text("\n".join(lines))


def rows(grid: Grid, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in grid.sql(sql)]


def test_a_sink_and_a_materialized_view_into_maps(grid: Grid, project: Path) -> None:
    arrive(project, "1.json", [(1, "NEW", 10, 1, "insert"), (2, "NEW", 20, 1, "insert"), (1, "PAID", 10, 2, "update")])
    run(project)
    assert rows(grid, "SELECT * FROM orders ORDER BY id") == [(1, "PAID", 10), (2, "NEW", 20)]
    assert rows(grid, "SELECT * FROM totals ORDER BY status") == [("new", 2), ("old", 1)]
    grid.sql("INSERT INTO customers VALUES (4, 'old')")
    grid.sql("UPDATE orders SET status = 'SENT' WHERE id = 1")
    arrive(project, "2.json", [(2, "", 0, 3, "delete"), (3, "NEW", 5, 3, "insert")])
    run(project)
    assert rows(grid, "SELECT * FROM orders ORDER BY id") == [(1, "SENT", 10), (3, "NEW", 5)], "each file once"
    assert rows(grid, "SELECT * FROM totals ORDER BY status") == [("new", 2), ("old", 2)]


@pytest.mark.slow
def test_the_pipeline_of_the_guide_runs(grid: Grid, project: Path) -> None:
    """Its block in `docs/spark.md` is no Python session: the command of Spark runs it."""
    guide = Path(__file__).parents[2].joinpath("docs", "spark.md").read_text(encoding="utf-8")
    block = guide[guide.index("from pyspark import pipelines") :].partition("\n```")[0]
    flows = block.replace("/data/shop.remuda", str(grid.store.path)).replace(
        "/data/arriving", str(project.parent / "arriving")
    )
    (project / "transformations" / "flows.py").write_text(flows)
    grid.sql("DROP TABLE orders")
    grid.sql("CREATE TABLE orders (id BIGINT, status VARCHAR, PRIMARY KEY (id))")
    arrive(project, "1.json", [(1, "NEW", 0, 0, "insert"), (2, "NEW", 0, 0, "insert"), (3, "PAID", 0, 0, "insert")])
    for _ in range(2):  # the view and the sink of one run do not wait for each other
        run(project)
    assert rows(grid, "SELECT * FROM orders ORDER BY id") == [(1, "NEW"), (2, "NEW"), (3, "PAID")]
    assert rows(grid, "SELECT * FROM totals ORDER BY status") == [("NEW", 2), ("PAID", 1)]
