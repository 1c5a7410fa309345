"""An application that writes rows to a remote store, one commit after the other, and says which are committed.

It gets the address, its number, how many commits it makes, the folder of its cache, and whether it is one of Spark,
which writes data frames, or a plain process, which loads tables.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa

import remuda

if TYPE_CHECKING:
    from collections.abc import Callable

Write = tuple[str, range, int]
"""A mode, the keys, and the value of all of them."""


def write_of(number: int, commits: int, commit: int) -> Write:
    """Return what a commit writes. Upserts also change the rows that the application has written before."""
    first = (number * commits + commit) * 100
    mode = "upsert" if commit % 3 == 2 else "append"
    return mode, range(first - 50 if mode == "upsert" else first, first + 100), first


def main(address: str, number: int, commits: int, cache: str, kind: str) -> None:
    run = through_spark if kind == "spark" else through_grid
    run(address, cache, lambda write: _write_all(write, number, commits))


def _write_all(write: Callable[[Write], None], number: int, commits: int) -> None:
    for commit in range(commits):
        write(write_of(number, commits, commit))
        print("done", commit, flush=True)


def through_spark(address: str, cache: str, write_all: Callable[[Callable[[Write], None]], None]) -> None:
    import remuda.spark

    spark = remuda.spark.session(master="local[1]")
    remuda.spark.register(spark)

    def write(given: Write) -> None:
        mode, keys, value = given
        frame = spark.range(keys.start, keys.stop, 1, 2).selectExpr("id", f"{value} AS v")
        target = frame.write.format("remuda").options(path=address, map="t", cache=cache, mode=mode)
        target.mode("append").save()

    write_all(write)
    spark.stop()


def through_grid(address: str, cache: str, write_all: Callable[[Callable[[Write], None]], None]) -> None:
    with remuda.open(address, durability="none", cache=cache) as grid:

        def write(given: Write) -> None:
            mode, keys, value = given
            rows = {"id": pa.array(keys, pa.int64()), "v": pa.array([value] * len(keys), pa.int64())}
            grid.load("t", pa.table(rows), mode=mode)

        write_all(write)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
