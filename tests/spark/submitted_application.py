"""An application for `spark-submit --py-files remuda.zip`; a test runs it.

    spark-submit --py-files remuda.zip tests/spark/submitted_application.py <store>

Its last line is what it has found, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import remuda
import remuda.spark


def home(_: Any) -> str:
    """Return where a worker imports Remuda from."""
    import remuda

    return str(remuda.__file__)


def main(store: str) -> dict[str, Any]:
    spark = SparkSession.builder.getOrCreate()
    remuda.spark.register(spark)
    orders = spark.range(10_000).selectExpr("id", "id % 7 AS customer")
    with remuda.open(store, spark=spark) as grid:
        loaded = grid.load("orders", orders, key="id", indexes="customer HASH")
        grid.sql("SET engine = spark")
        counted = grid.sql("SELECT COUNT(*) FROM orders WHERE id % 2 = 0").fetchone()[0]
    write = spark.range(10_000, 10_010).selectExpr("id", "id % 7 AS customer").write.format("remuda")
    write.options(path=store, map="orders").mode("append").save()
    frame = spark.read.format("remuda").options(path=store, map="orders").load()
    found = remuda.spark.lookup(spark.range(5), store, "orders", on="id", columns=["customer"])
    return {
        "driver": str(remuda.__file__),
        "workers": spark.sparkContext.parallelize([1], 1).map(home).collect(),
        "counts": [loaded, counted, frame.count()],
        "customers": sorted(row.customer for row in found.collect()),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
