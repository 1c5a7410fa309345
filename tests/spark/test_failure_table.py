"""The table of failures in `docs/spark.md`: each row is tried, and its message compared with what is raised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import remuda
import remuda.spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from remuda.grid import Grid

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "the Spark session is stopped": "spark/test_spark_messages.py",
    "the executors do not see": "spark/test_spark_messages.py",
    "Spark's Python workers cannot import": "spark/test_spark_messages.py",
    "began to read was given up": "storage/test_remote_pins.py",
    "planned for is gone": "spark/test_pinned_reads.py",
    "were updated or deleted": "spark/test_change_streams.py",
    "are not known any more": "spark/test_change_streams.py",
    "a Spark Connect session cannot run": "spark/test_connect.py",
    "BrokenPipeError": "spark/test_idle_workers.py",
}
"""Words of the messages that only more than a call brings about, and the tests that have them."""
PLACEHOLDER = re.compile(r"\\\.\\\.\\\.|\b(?:FOLDER|[CMNVX])\b")


def messages() -> list[str]:
    """Return the first column of the table."""
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    rows = [line for line in page.partition("\n## Failures\n")[2].splitlines() if line.startswith("| ")]
    return [row.split(" | ")[0].removeprefix("| ").replace("`", "") for row in rows[2:]]


class Trials:
    """A store, and what a user does in it that fails."""

    def __init__(self, spark: SparkSession, grid: Grid, folder: Path) -> None:
        self.spark, self.grid, self.folder = spark, grid, folder
        self.path = str(grid.store.path)
        self.rows = spark.sql("SELECT 1L AS id, 5L AS x")

    def read(self, **options: str) -> Any:
        return self.spark.read.format("remuda").options(**{"path": self.path, **options}).load()

    def write(self, data: str, map: str = "orders", **options: str) -> None:
        write = self.spark.sql(data).write.format("remuda").options(path=self.path, map=map, **options)
        write.mode("append").save()

    def made_anew(self, **options: str) -> None:
        frame = self.read(**options)
        kind = "VARCHAR" if frame.dtypes == [("id", "bigint")] else "BIGINT"
        self.grid.sql("DROP TABLE other")
        self.grid.sql(f"CREATE TABLE other (id {kind}, PRIMARY KEY (id))")
        frame.count()

    def stream(self) -> None:
        options = {"path": self.path, "query": "SELECT id FROM orders"}
        frame = self.spark.readStream.format("remuda").options(**options).load()
        frame.writeStream.format("noop").start().awaitTermination(60)

    def table_of_delta(self) -> None:
        (self.folder / "delta" / "_delta_log").mkdir(parents=True)
        self.read(path=str(self.folder / "delta"), map="orders")

    def both_modes(self) -> None:
        write = self.rows.write.format("remuda").options(path=self.path, map="orders", mode="upsert")
        write.mode("overwrite").save()

    def lookup(self, keys: str, **options: Any) -> None:
        remuda.spark.lookup(self.spark.sql(keys), self.path, "orders", on="k", **options)

    def zone_of_java(self) -> None:
        name = "spark.sql.session.timeZone"
        before = self.spark.conf.get(name)
        self.spark.conf.set(name, "CTT")
        try:
            self.write("SELECT 1L AS id, current_timestamp() AS ts", map="clocks")
        finally:
            self.spark.conf.set(name, before or "UTC")

    def of(self, message: str) -> Callable[[], Any]:
        """Return what brings a message about."""
        applied = {"mode": "apply", "operation": "op"}
        table = f"CREATE TABLE t USING remuda OPTIONS (path '{self.path}', map 'orders')"
        found: dict[str, Callable[[], Any]] = {
            "made anew": lambda: self.made_anew(map="other"),
            "other columns than": lambda: self.made_anew(query="SELECT id FROM other"),
            "filters are not": lambda: self.read(map="orders", pushFilters="true"),
            "a table USING": lambda: self.spark.sql(table),
            "is there already": lambda: self.write("SELECT 7L AS id, 5L AS x", key="id", indexes="x HASH"),
            "holds as it is": lambda: self.write("SELECT 1 AS id, struct(2 AS a) AS X", map="new", key="id"),
            "ErrorIfExists": lambda: self.rows.write.format("remuda").options(path=self.path, map="orders").save(),
            "op says": lambda: self.write("SELECT 1L AS id, 5L AS x, 'x' AS op", **applied),
            "the condition": lambda: self.write("SELECT 1L AS id, 5L AS x", mode="upsert", condition="new.y > 0"),
            "t has no PRIMARY": lambda: self.write("SELECT 5L AS x, 'insert' AS op", map="t", **applied),
            "a stream reads": self.stream,
            "no writer for": lambda: remuda.spark.export(
                self.path, "orders", str(self.folder / "out"), spark=self.spark, format="delta"
            ),
            "is a table of": self.table_of_delta,
            "no version": lambda: self.read(map="orders", version="99"),
            "the keys are": lambda: self.lookup("SELECT 'a' AS k"),
            "has a column": lambda: self.lookup("SELECT 1L AS k, 2 AS X", columns=["x"]),
            "duplicate key": lambda: self.write("SELECT 1L AS id, explode(array(5L, 6L)) AS x", mode="upsert"),
            "lacks columns": lambda: self.write("SELECT 9L AS id"),
            'mode "overwrite"': self.both_modes,
            "is not known here": self.zone_of_java,
            "timestamp_ntz": lambda: self.write("SELECT 1L AS id, timestamp_ntz'2024-07-01' AS ts", map="moments"),
            "version says": lambda: self.write("SELECT 1L AS id, 5L AS x", version="1"),
            "V is a view": lambda: self.read(map="shown"),
            "Failed to find": lambda: self.spark.read.format("remuda_of_others").load(),
        }
        (work,) = (work for words, work in found.items() if words in message)
        return work


@pytest.fixture
def trials(spark: SparkSession, tmp_path: Path) -> Iterator[Trials]:
    remuda.spark.register(spark)
    with remuda.open(tmp_path / "shop.remuda") as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, x BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO orders VALUES (3, 30)")
        grid.sql("CREATE TABLE other (id BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE t (x BIGINT)")
        grid.sql("CREATE TABLE moments (id BIGINT, ts TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE clocks (id BIGINT, ts TIMESTAMP, PRIMARY KEY (id))")
        grid.sql("CREATE VIEW shown AS SELECT id FROM orders")
        yield Trials(spark, grid, tmp_path)
        assert grid.sql("SELECT * FROM orders").fetchall() == [(3, 30)], "what fails changes nothing"


def raised(work: Callable[[], Any]) -> str:
    try:
        work()
    except Exception as error:  # noqa: BLE001
        return str(error)
    return "nothing was raised"


def test_each_failure_of_the_guide_is_what_is_raised(trials: Trials) -> None:
    tried, others = 0, {}
    for message in messages():
        words = next((words for words in ELSEWHERE if words in message), None)
        if words is not None:
            assert words in (ROOT / "tests" / ELSEWHERE[words]).read_text(encoding="utf-8"), message
            continue
        found = raised(trials.of(message))
        if not re.search(PLACEHOLDER.sub(".+", re.escape(message)), found):
            others[message] = found
        tried += 1
    assert others == {}
    assert tried + len(ELSEWHERE) == len(messages())
