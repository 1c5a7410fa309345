"""An application whose stream applies changes to a map; a test kills it.

    python tests/spark/stream_application.py <store> <source> <checkpoint>

It prints a line when the stream has begun, and ends when the stream has read all files of the source.
"""

from __future__ import annotations

import sys

import remuda.spark

SCHEMA = "id BIGINT, v STRING, ts BIGINT, op STRING"

if __name__ == "__main__":
    store, source, checkpoint = sys.argv[1:]
    spark = remuda.spark.session(master="local[2]")
    remuda.spark.register(spark)
    changes = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(source)
    options = {"path": store, "map": "t", "mode": "apply", "operation": "op", "orderBy": "ts"}
    writer = changes.writeStream.format("remuda").options(**options, checkpointLocation=checkpoint)
    query = writer.trigger(availableNow=True).start()
    print("begun", flush=True)
    query.awaitTermination()
    print("done", flush=True)
