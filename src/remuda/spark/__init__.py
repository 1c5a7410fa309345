"""Spark as the distributed half of the engine: sessions, tasks on executor slots, bulk loading, a data source.

Only this package imports pyspark, and only inside functions: `import remuda` needs neither pyspark nor a Java. It knows
storage, plans and operators; it must not know the grid, which decides when Spark is used.
"""

from typing import TYPE_CHECKING

from remuda.spark.driver.java import find_java
from remuda.spark.driver.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as SparkSession

__all__ = ["find_java", "register", "session"]


def register(spark: "SparkSession") -> None:
    """Makes `spark.read.format("remuda")`, `df.write` and `df.writeStream` work in a session."""
    from remuda.spark.source.source import register

    register(spark)
