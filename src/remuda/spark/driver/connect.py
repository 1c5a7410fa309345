"""Spark Connect: sessions whose Spark is in another process, on another machine perhaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_connect(session: SparkSession) -> bool:
    """Tell a client of Spark Connect from a session that has its Spark in this process."""
    return type(session).__module__.startswith("pyspark.sql.connect.")
