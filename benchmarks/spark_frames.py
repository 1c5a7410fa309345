"""Data frames over a map beside the same questions over Parquet, and lookups in executors beside Spark's joins.

All run in one session, in turns, and the least time of each counts: with `local[2]` and short jobs that is mostly what
Spark needs to plan and to start tasks. The processor time is that of all processes: of this one, of Java with the
threads that compile and collect garbage, and of Spark's Python workers. It tells more where the machine has other work.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import remuda
import remuda.spark
from benchmarks.processes import worked_below
from remuda.bench.measure import Budget, Timing, interleave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GROUPS = 200_000
BUDGET = Budget(seconds=1.0, fewest_turns=3, slow_call=8.0)
KEY_COUNTS = (100_000, 1_000_000, 10_000_000)
MAP = "orders"


@dataclass(frozen=True, slots=True)
class Compared:
    """Times for a question, and the ratio that is the goal."""

    name: str
    own: Timing
    parquet: Timing
    goal: float

    def line(self) -> str:
        ratios = [
            own.minimum / parquet.minimum for own, parquet in zip(_both(self.own), _both(self.parquet), strict=True)
        ]
        times = f"{self.own.minimum:>9.3f} s {self.parquet.minimum:>8.3f} s"
        return f"  {self.name:<34} {times} {ratios[0]:>7.2f} {ratios[1]:>10.2f} {self.goal:>6.1f}"


@dataclass(frozen=True, slots=True)
class Lookups:
    """Times to add a column to so many rows, by each way; `empty` hands the rows through Python unchanged."""

    keys: int
    ways: dict[str, Timing]

    def lines(self) -> Iterator[str]:
        for number, clock in enumerate(("passed", "processor")):
            seconds = {name: _both(timing)[number].minimum for name, timing in self.ways.items()}
            beyond = (seconds["lookup"] - seconds["empty"]) / self.keys * 1e6
            times = "".join(f"{each:>9.3f} s" for each in seconds.values())
            yield f"  {self.keys:>10,} {clock:<9}{times}{beyond:>12.2f} µs a key"


def _both(timing: Timing) -> tuple[Timing, Timing]:
    """Return the time that passed, and that of processors."""
    assert timing.processor is not None
    return timing, timing.processor


def show(rows: int, keys: int) -> None:
    with tempfile.TemporaryDirectory(prefix="remuda-frames-") as name:
        session = remuda.spark.session()
        try:
            remuda.spark.register(session)
            folder = Path(name)
            _fill(folder, rows)
            _show_frames(compare_frames(session, folder, rows), rows)
            _show_lookups([compare_lookups(session, folder, rows, each) for each in KEY_COUNTS if each <= keys])
        finally:
            session.stop()


def _show_frames(found: list[Compared], rows: int) -> None:
    print(f"\ndata frames over {rows:,} rows {'Remuda':>16} {'Parquet':>10} {'ratio':>7} {'processor':>10} {'goal':>6}")
    for each in found:
        print(each.line())


def _show_lookups(found: list[Lookups]) -> None:
    print(f"\nlookups {'empty':>24} {'lookup':>10} {'shuffle':>10} {'broadcast':>10} {'beyond empty':>18}")
    for each in found:
        print(*each.lines(), sep="\n")


def _fill(folder: Path, rows: int) -> None:
    """Make a Parquet file, and a map of the same rows."""
    draw = np.random.default_rng(19)
    table = pa.table(
        {
            "id": draw.permutation(rows),
            "customer": draw.integers(0, min(GROUPS, rows), rows),
            "amount": draw.random(rows),
            "status": pa.array(["NEW", "OPEN", "PAID"]).take(pa.array(draw.integers(0, 3, rows))),
        }
    )
    pq.write_table(table, folder / "orders.parquet")
    with remuda.open(folder / "shop.remuda") as grid:
        grid.load(MAP, table, key="id", indexes="customer HASH")


def compare_frames(session: Any, folder: Path, rows: int) -> list[Compared]:
    from pyspark.sql import functions as f

    store, key = folder / "shop.remuda", rows // 2
    parquet = session.read.parquet(str(folder / "orders.parquet"))

    def query(text: str) -> Any:
        return session.read.format("remuda").options(path=str(store), query=text).load()

    def columns(*names: str) -> Any:
        return remuda.spark.table(session, store, MAP, columns=names)

    every = session.read.format("remuda").options(path=str(store), map=MAP).load()
    by_customer = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
    cases: dict[tuple[str, float], tuple[Any, Any]] = {
        ("key =, by query", 0.2): (query(f"SELECT * FROM orders WHERE id = {key}"), parquet.where(f"id = {key}")),
        ("index =, by query", 0.2): (query("SELECT * FROM orders WHERE customer = 7"), parquet.where("customer = 7")),
        ("count(), format", 1.0): (every.groupBy().count(), parquet.groupBy().count()),
        ("count(), table of one column", 1.0): (columns("id").groupBy().count(), parquet.groupBy().count()),
        ("count(), by query", 1.0): (query("SELECT COUNT(*) AS n FROM orders"), parquet.groupBy().count()),
        ("sum, table of one column", 1.0): (columns("amount").groupBy().sum(), parquet.groupBy().sum("amount")),
        ("sum, by query", 1.0): (query("SELECT SUM(amount) AS s FROM orders"), parquet.groupBy().sum("amount")),
        ("200k groups, table of two columns", 1.0): (
            columns("customer", "amount").groupBy("customer").agg(f.sum("amount")),
            parquet.groupBy("customer").agg(f.sum("amount")),
        ),
        ("200k groups, by query", 1.0): (query(by_customer), parquet.groupBy("customer").agg(f.sum("amount"))),
    }
    found = []
    for (name, goal), (own, peer) in cases.items():
        times = interleave({"own": _runs(own), "parquet": _runs(peer)}, BUDGET, worked_below)
        found.append(Compared(name, times["own"], times["parquet"], goal))
    return found


def compare_lookups(session: Any, folder: Path, rows: int, keys: int) -> Lookups:
    """Look up random keys, a tenth of which are absent."""
    from pyspark.sql import functions as f

    store = folder / "shop.remuda"
    asked = session.range(keys).select((f.rand(19) * rows * 1.1).cast("bigint").alias("id"))
    asked.write.mode("overwrite").parquet(str(folder / "keys.parquet"))
    asked = session.read.parquet(str(folder / "keys.parquet"))
    known = session.read.parquet(str(folder / "orders.parquet")).select("id", "amount")
    ways = {
        "empty": asked.mapInArrow(_unchanged, asked.schema),
        "lookup": remuda.spark.lookup(asked, store, MAP, on="id", columns=["amount"]),
        "shuffle": asked.join(known.hint("shuffle_hash"), "id", "left"),
        "broadcast": asked.join(f.broadcast(known), "id", "left"),
    }
    return Lookups(keys, interleave({name: _runs(frame) for name, frame in ways.items()}, BUDGET, worked_below))


def _unchanged(batches: Any) -> Any:
    yield from batches


def _runs(frame: Any) -> Callable[[], object]:
    """Return what computes all rows of a frame and hands them to nobody."""
    return lambda: frame.write.format("noop").mode("overwrite").save()
