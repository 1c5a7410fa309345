"""What a data frame costs that is written by many small tasks: processor time of 256 tasks beside that of eight.

python -m benchmarks write_tasks --rows 5000000

The same rows are also given to a writer that reads them and keeps nothing, by as many tasks: what Spark and its Python
workers cost is taken off. Time is that of all processes, the least of some rounds.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import remuda
import remuda.spark
from benchmarks.scale import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

TASKS = (8, 256)
ROUNDS = 3
GOAL = 1.3


@dataclass(frozen=True, slots=True)
class Written:
    """Seconds of processor time for so many tasks."""

    tasks: int
    own: float
    empty: float

    @property
    def beyond(self) -> float:
        return self.own - self.empty


def show(rows: int) -> None:
    session = remuda.spark.session()
    try:
        remuda.spark.register(session)
        with tempfile.TemporaryDirectory(prefix="remuda-tasks-") as name:
            few, many = compare(session, Path(name), rows)
    finally:
        session.stop()
    print(f"\n{rows:,} rows written {'Remuda':>16} {'empty writer':>14} {'beyond it':>12}")
    for each in (few, many):
        print(f"  by {each.tasks} tasks{each.own:>24.1f} s {each.empty:>12.1f} s {each.beyond:>10.1f} s")
    print(f"  {many.beyond / few.beyond:.2f} times as much (goal: {GOAL})")


def compare(session: SparkSession, folder: Path, rows: int) -> list[Written]:
    """Measure each number of tasks in turns, after one round that warms up."""
    _register_empty(session)
    found: dict[tuple[int, str], list[float]] = {}
    for number in range(ROUNDS + 1):
        for tasks in TASKS:
            data = session.range(rows).selectExpr("id", "id % 1000 AS customer", "id / 4 AS amount").repartition(tasks)
            writes: dict[str, Callable[[], None]] = {
                "own": lambda data=data, at=folder / f"{number}-{tasks}": _write(data, at),
                "empty": lambda data=data: data.write.format("empty").mode("append").save(),
            }
            for name, write in writes.items():
                with Memory(os.getpid()) as watched:
                    write()
                if number:
                    found.setdefault((tasks, name), []).append(watched.processor)
    return [Written(tasks, min(found[tasks, "own"]), min(found[tasks, "empty"])) for tasks in TASKS]


def _write(data: DataFrame, folder: Path) -> None:
    data.write.format("remuda").options(path=str(folder), map="t", key="id", indexes="customer").mode("append").save()
    with remuda.open(folder, read_only=True) as grid:
        assert len(grid.map("t")) > 0


def _register_empty(session: SparkSession) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    class EmptyWriter(DataSourceArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Empty(DataSource):
        @classmethod
        def name(cls) -> str:
            return "empty"

        def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
            return EmptyWriter()

    session.dataSource.register(Empty)
