"""A Spark application that writes data frames to a remote store, one after the other, and says which are committed.

It gets the address, its number, how many writes it makes, and the folder of its cache.
"""

from __future__ import annotations

import sys

import remuda.spark


def main(address: str, number: int, writes: int, cache: str) -> None:
    spark = remuda.spark.session(master="local[1]")
    remuda.spark.register(spark)
    for write in range(writes):
        first = (number * writes + write) * 100
        mode = "upsert" if write % 3 == 2 else "append"
        # Upserts also change the rows that the application has written before.
        begin = first - 50 if mode == "upsert" else first
        frame = spark.range(begin, first + 100, 1, 2).selectExpr("id", f"{first} AS v")
        target = frame.write.format("remuda").options(path=address, map="t", cache=cache, mode=mode)
        target.mode("append").save()
        print("done", write, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
