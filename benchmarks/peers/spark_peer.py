"""Plain Spark over the same rows: Parquet files, and a cached table. It needs a Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.data import Data

SLOTS = 2


class SparkPeer:
    def __init__(self, data: Data, folder: Path) -> None:
        import remuda.spark

        self.session: Any = remuda.spark.session(master=f"local[{SLOTS}]")
        parquet = folder / "orders"
        parquet.mkdir()
        half = data.rows // SLOTS
        for part in range(SLOTS):
            pq.write_table(
                data.table.slice(part * half, half if part < SLOTS - 1 else None), parquet / f"{part}.parquet"
            )
        self.dataframe = self.session.read.parquet(str(parquet))
        self.dataframe.createOrReplaceTempView("orders_parquet")
        cached = self.session.read.parquet(str(parquet)).cache()
        cached.count()
        cached.createOrReplaceTempView("orders_cached")
        # Made once, as an engine that cares would do: what is measured is the job alone.
        self._slots = self.session.sparkContext.parallelize(range(SLOTS), SLOTS)
        self._slots.count()

    def rows(self, sql: str, source: str) -> Any:
        return self.session.sql(sql.replace("FROM orders", f"FROM orders_{source}")).collect()

    def empty_job(self) -> Any:
        """The least that any Spark job with Python tasks costs: one task in each slot that does nothing."""
        return self.session.sparkContext.runJob(self._slots, _nothing)


def _nothing(values: Any) -> list[Any]:
    return list(values)
