"""Plain Spark over the same rows: Parquet files, and a cached table. It needs a Java."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from remuda.bench.data import Data

SLOTS = 2
PARTITIONS = 271


class SparkPeer:
    def __init__(self, data: Data) -> None:
        import remuda.spark
        from remuda.spark.driver.spark_session import running_session

        self._starts = running_session() is None
        self.session: Any = remuda.spark.session(master=f"local[{SLOTS}]")
        self._temporary = tempfile.TemporaryDirectory(prefix="remuda-bench-")
        self.folder = folder = Path(self._temporary.name)
        self.dataframe = self.session.read.parquet(_write(data, folder / "orders"))
        self.dataframe.createOrReplaceTempView("orders_parquet")
        # Other files: of those that it has once cached, Spark takes every data frame from its cache.
        cached = self.session.read.parquet(_write(data, folder / "cached")).cache()
        cached.count()
        cached.createOrReplaceTempView("orders_cached")
        # Made once, as an engine that cares would do: what is measured is the job alone.
        self._slots = self.session.sparkContext.parallelize(range(SLOTS), SLOTS)
        self._slots.count()
        remuda.spark.register(self.session)

    def rows(self, sql: str, source: str) -> Any:
        return self._query(sql, source).collect()

    def arrow(self, sql: str, source: str) -> Any:
        return self._query(sql, source).toArrow()

    def _query(self, sql: str, source: str) -> Any:
        return self.session.sql(re.sub(r"\b(FROM|JOIN) orders\b", rf"\1 orders_{source}", sql))

    def write_buckets(self, dataframe: Any) -> None:
        """Bucket and sort, Spark's own way to keep rows together by key and in order: as many buckets as partitions."""
        write = dataframe.write.mode("overwrite").format("parquet").option("path", str(self.folder / "buckets"))
        write.bucketBy(PARTITIONS, "id").sortBy("id").saveAsTable("orders_buckets")

    def write_map(self, dataframe: Any, path: str) -> None:
        """Write by the data source, whose tasks do not exchange rows: each makes segments of its own."""
        dataframe.write.format("remuda").options(path=path, map="orders").mode("overwrite").save()

    def compute(self, dataframe: Any) -> None:
        dataframe.write.format("noop").mode("overwrite").save()

    def read_maps(self, path: str) -> Any:
        """Read the map of a grid as Spark SQL sees it."""
        return self.session.read.format("remuda").options(path=path, map="orders").load()

    def empty_job(self) -> Any:
        """Run the cheapest Spark job with Python tasks: one empty task in each slot."""
        return self.session.sparkContext.runJob(self._slots, _nothing)

    def close(self) -> None:
        """Remove the files, and stop the session if it is not another owner's."""
        if self._starts:
            self.session.stop()
        self._temporary.cleanup()


def _write(data: Data, folder: Path) -> str:
    folder.mkdir()
    size = -(-data.rows // SLOTS)
    for part in range(SLOTS):
        pq.write_table(data.table.slice(part * size, size), folder / f"{part}.parquet")
    return str(folder)


def _nothing(values: Any) -> list[Any]:
    return list(values)
