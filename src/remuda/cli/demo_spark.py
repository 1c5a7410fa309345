"""Plain Spark on the same rows, as the demonstration's measure: a cached DataFrame, and Parquet files."""

from __future__ import annotations

import re
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
        text = reading_from(source, sql)
        return best_of(lambda: self._session.sql(text).collect(), RUNS)


def reading_from(source: str, sql: str) -> str:
    """
    >>> reading_from("cached", "SELECT o.id FROM orders AS k JOIN orders AS o ON o.customer = k.customer")
    'SELECT o.id FROM orders_cached AS k JOIN orders_cached AS o ON o.customer = k.customer'
    """
    return re.sub(r"\b(FROM|JOIN) orders\b", rf"\1 orders_{source}", sql)
