"""Plain Spark on the same rows, as the demonstration's measure: a cached DataFrame, and Parquet files."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from remuda.cli.demo_queries import best_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNS = 3


def start_spark(messages: Path) -> Any:
    """Start a session whose processes write their messages into a file; show the file where they do not start.

    Spark lets its Python workers go when they have been idle for a minute, and each leaves a traceback between the
    lines of the demonstration then.
    """
    import remuda.spark

    try:
        with _messages_of_children_in(messages):
            return remuda.spark.session(master="local[*]")
    except BaseException:
        sys.stderr.write(messages.read_text(encoding="utf-8", errors="replace"))
        raise


@contextmanager
def _messages_of_children_in(file: Path) -> Iterator[None]:
    """Processes that are started meanwhile keep it as their standard error; this one has its own again afterwards."""
    sys.stderr.flush()
    own = os.dup(2)
    with file.open("ab") as stream:
        os.dup2(stream.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


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
        """Return the best time for the statement, with `orders` read from the cache or from Parquet."""
        text = reading_from(source, sql)
        return best_of(lambda: self._session.sql(text).collect(), RUNS)


def reading_from(source: str, sql: str) -> str:
    """Replace `orders` by a table of Spark.

    >>> reading_from("cached", "SELECT o.id FROM orders AS k JOIN orders AS o ON o.customer = k.customer")
    'SELECT o.id FROM orders_cached AS k JOIN orders_cached AS o ON o.customer = k.customer'
    """
    return re.sub(r"\b(FROM|JOIN) orders\b", rf"\1 orders_{source}", sql)
