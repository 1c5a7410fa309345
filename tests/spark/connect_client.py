"""What a client of Spark Connect does with a store that only the server opens; prints its answers as JSON.

It gets the address of the server, the folder of the store, and whether to register the format or to find it registered.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import remuda
import remuda.spark


def main(address: str, path: str, registers: bool) -> dict[str, Any]:
    spark = SparkSession.builder.remote(address).getOrCreate()
    if registers:
        remuda.spark.register(spark)
    read = spark.read.format("remuda").options(path=path, map="customers").load()
    answers: dict[str, Any] = {"rows": read.count()}
    new = spark.createDataFrame([(100, "new", "c1")], "id BIGINT, name STRING, city STRING")
    new.write.format("remuda").options(path=path, map="customers").mode("append").save()
    orders = spark.createDataFrame([(1, 7), (2, 100), (3, None), (4, 555)], "n INT, k BIGINT")
    found = remuda.spark.lookup(orders, path, "customers", on="k", columns=["name"])
    answers["lookup"] = [list(row) for row in found.orderBy("n").collect()]
    towns = spark.createDataFrame([("c1",), ("nowhere",)], "town STRING")
    found = remuda.spark.lookup(towns, path, "customers", on="town", columns=["id"], how="inner", index="by_city")
    answers["index"] = sorted(row.id for row in found.collect())
    answers["table"] = remuda.spark.table(spark, path, "customers", columns=["id"]).count()
    answers["errors"] = [
        _message(lambda: remuda.spark.lookup(orders, path, "customers", on="k", columns=["nothing"])),
        _message(lambda: remuda.spark.lookup(orders, path, "custmers", on="k")),
        _message(lambda: remuda.open(path, spark=spark)),
    ]
    if registers:
        orders.createOrReplaceTempView("orders")
        query = f"SELECT n, name FROM remuda_lookup(TABLE(orders), '{path}', 'customers', 'k', how => 'inner')"
        answers["function"] = sorted(list(row) for row in spark.sql(query).collect())
    spark.sql(f"CREATE TEMPORARY VIEW v USING remuda OPTIONS (path '{path}', map 'customers')")
    answers["view"] = spark.sql("SELECT COUNT(*) AS n FROM v").collect()[0].n
    spark.stop()
    return answers


def _message(call: Any) -> str:
    try:
        call()
    except remuda.RemudaError as error:
        return str(error)
    return "no error"


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3] == "registers")))
