"""Plain Spark on the same rows, as the demonstration's measure: a cached DataFrame, and Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.cli.demo_time import best_of

if TYPE_CHECKING:
    from pathlib import Path

RUNS = 3


class PlainSpark:
    """Spark SQL over the Parquet file, and over the same file cached in memory before anything is measured."""

    def __init__(self, session: Any, parquet: Path) -> None:
        self._session = session
        self.dataframe = session.read.parquet(str(parquet))
        self.dataframe.createOrReplaceTempView("orders_parquet")
        cached = session.read.parquet(str(parquet)).cache()
        cached.count()
        cached.createOrReplaceTempView("orders_cached")

    def seconds(self, sql: str, source: str) -> float:
        """The best time for the statement, with `orders` read from the cache or from Parquet."""
        text = sql.replace("FROM orders", f"FROM orders_{source}")
        return best_of(lambda: self._session.sql(text).collect(), RUNS)
