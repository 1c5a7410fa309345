"""An application whose stream applies changes to a map; a test kills it.

    python tests/spark/stream_application.py <store> <source> <checkpoint> [for ever]

The changes are in the files of a folder, or those of the map `source`. It prints a line when the stream has begun, and
ends when the stream has read all there is.
"""

from __future__ import annotations

import sys

import remuda.spark

SCHEMA = "id BIGINT, v STRING, ts BIGINT, op STRING"

if __name__ == "__main__":
    store, source, checkpoint, *for_ever = sys.argv[1:]
    spark = remuda.spark.session(master="local[2]")
    remuda.spark.register(spark)
    if source == "source":
        changes = spark.readStream.format("remuda").options(path=store, map=source, changes="delta").load()
        options = {"path": store, "map": "t", "mode": "apply", "changes": "delta"}
    else:
        changes = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(source)
        options = {"path": store, "map": "t", "mode": "apply", "operation": "op", "orderBy": "ts"}
    writer = changes.writeStream.format("remuda").options(**options, checkpointLocation=checkpoint)
    writer = writer.trigger(processingTime="100 milliseconds") if for_ever else writer.trigger(availableNow=True)
    query = writer.start()
    print("begun", flush=True)
    query.awaitTermination()
    print("done", flush=True)
