"""A map that is loaded through Spark with executors and a driver of one gigabyte: how it grows, and what stays.

python -m benchmarks scale --rows 200000000

Each size is loaded in a process of its own, on a cluster of this machine with two executors, and read by another one.
*Load* is the time of the clock and *processor* that of all processes together, Java's included. *Driver* are the bytes
that all tasks have sent there, by Spark's own count. *Task* is the most memory that a Python worker had of its own,
mapped files not counted, and *process* the same of the one that commits. *Open* reads the folder, a *key* and an
*index* lookup are asked again and again for the same thousand rows, by a process that has read no others before:
processor time, the least of several rounds.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import remuda
from benchmarks.processes import command, descendants, own_memory, processor_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (100_000, 1_000_000, 10_000_000, 50_000_000, 200_000_000)
TASK_ROWS = 2_000_000
"""Rows that a task of Spark makes."""
MASTER = "local-cluster[2,1,1024]"
LOOKED_UP = 1_000
ROUNDS = 20
OF_A_VALUE = 10
"""Rows that an index lookup finds."""
_HEAD = (
    "rows | load | processor | a row | driver | task | process | bytes a row | segments | open | key | index | "
    "after OPTIMIZE: segments | key | index"
)


def show(rows: int, folder: Path | None = None) -> None:
    """Print a table with a line for each size up to so many rows."""
    print(f"| {_HEAD} |")
    print("| --- " * len(_HEAD.split("|")) + "|", flush=True)
    for size in [*(each for each in SIZES if each < rows), rows]:
        with tempfile.TemporaryDirectory(prefix="remuda-scale-", dir=folder) as scratch:
            print(row(size, Path(scratch)), flush=True)


def row(rows: int, scratch: Path) -> str:
    loaded = _in_a_process("load", scratch, rows)
    taken = loaded["processor"]
    size = sum(path.stat().st_size for path in scratch.rglob("*") if path.is_file())
    read = _in_a_process("read", scratch, rows)
    optimized = _in_a_process("optimize", scratch, rows)
    shown = [
        f"{rows:,}",
        f"{loaded['seconds']:.0f} s",
        f"{taken:.0f} s",
        f"{taken / rows * 1e6:.2f} µs",
        f"{loaded['driver']:,}",
        f"{loaded['task'] >> 20:,} MiB",
        f"{loaded['process'] >> 20:,} MiB",
        f"{size / rows:.1f}",
        *_lookups(read),
        *(_lookups(optimized)[each] for each in (0, 2, 3)),
    ]
    return f"| {' | '.join(shown)} |"


def _lookups(found: dict[str, Any]) -> list[str]:
    times = [f"{found['open'] * 1e3:.1f} ms", f"{found['key'] * 1e6:.2f} µs", f"{found['index'] * 1e6:.1f} µs"]
    return [f"{found['segments']}", *times]


def _in_a_process(what: str, scratch: Path, rows: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", what, str(scratch), str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} has failed:\n{done.stdout}{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


# In a process of its own


def load(scratch: Path, rows: int) -> dict[str, Any]:
    """Load the map through Spark and return what it took."""
    import remuda.spark

    config = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.local.dir": str(scratch / "spark"),
        "spark.ui.retainedTasks": "1000000",
    }
    session = remuda.spark.session(MASTER, config=config)
    try:
        _wait_for_executors(session)
        data = session.range(0, rows, 1, max(2, rows // TASK_ROWS)).selectExpr(
            "id",
            f"pmod(xxhash64(id, 7), {max(1, rows // OF_A_VALUE)}) AS customer",
            "cast(id % 97 AS int) AS quantity",
            "element_at(array('NEW', 'PAID', 'SENT', 'DONE', 'LOST'), cast(pmod(id * 7, 5) + 1 AS int)) AS status",
        )
        with remuda.open(scratch / "map", spark=session) as grid:
            grid.sql(
                "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, quantity INTEGER, status VARCHAR) "
                "WITH (retention = '0 seconds')"
            )
            grid.sql("CREATE INDEX orders_customer ON orders (customer)")
            began = time.monotonic()
            with Memory(os.getpid()) as memory:
                grid.load("orders", data)
            seconds = time.monotonic() - began
            assert len(grid.map("orders")) == rows
        return {
            "seconds": seconds,
            "processor": memory.processor,
            "driver": bytes_to_the_driver(session),
            "task": memory.task,
            "process": memory.process,
        }
    finally:
        session.stop()
        shutil.rmtree(scratch / "spark", ignore_errors=True)


def bytes_to_the_driver(session: Any) -> int:
    """Return how many bytes the tasks of a session have sent to the driver, as Spark has counted them."""
    context = session.sparkContext
    store, jvm = context._jsc.sc().statusStore(), context._jvm
    none = jvm.java.util.ArrayList()
    total = 0
    for stage in _each(store.stageList(none, False, False, context._gateway.new_array(jvm.double, 0), none)):
        tasks = store.taskList(stage.stageId(), stage.attemptId(), 1_000_000)
        total += sum(each.taskMetrics().get().resultSize() for each in _each(tasks) if each.taskMetrics().isDefined())
    return total


def _each(found: Any) -> Iterator[Any]:
    """Yield the elements of a sequence of Scala."""
    return (found.apply(number) for number in range(found.size()))


def _wait_for_executors(session: Any) -> None:
    while session.sparkContext.defaultParallelism < 2:
        time.sleep(0.2)


class Memory:
    """Looks at the memory of this process and of the Python workers below it, again and again, and adds up the
    processor time of all."""

    def __init__(self, process: int) -> None:
        self._of = process
        self.process = self.task = 0
        self._before: dict[int, float] = {}
        self._seconds: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._before = {each: processor_seconds(each) for each in (self._of, *descendants(self._of))}
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self._look()

    def _look(self) -> None:
        below = descendants(self._of)
        for each in (self._of, *below):
            self._seconds[each] = max(self._seconds.get(each, 0.0), processor_seconds(each))
        self.process = max(self.process, own_memory(self._of))
        workers = [each for each in below if command(each).startswith(b"python")]
        self.task = max([self.task, *map(own_memory, workers)])

    @property
    def processor(self) -> float:
        """Return the seconds that all processes have worked meanwhile, as far as it has seen them."""
        return sum(seconds - self._before.get(each, 0.0) for each, seconds in self._seconds.items())


def read(scratch: Path, rows: int) -> dict[str, Any]:
    """Return the times of opening and of lookups."""
    opening = min(_timed(lambda: remuda.open(scratch / "map", read_only=True).close()) for _ in range(5))
    with remuda.open(scratch / "map", read_only=True) as grid:
        return {"open": opening, **lookups(grid, rows)}


def lookups(grid: Any, rows: int) -> dict[str, Any]:
    numbers = random.Random(rows)
    keys = [numbers.randrange(rows) for _ in range(LOOKED_UP)]
    values = [numbers.randrange(max(1, rows // OF_A_VALUE)) for _ in range(LOOKED_UP)]
    find, ask = grid.map("orders").get, grid.sql
    assert all(find(key)["quantity"] == key % 97 for key in keys)

    def by_index() -> None:
        for value in values:
            ask("SELECT id FROM orders WHERE customer = ?", value).fetchall()

    def by_key() -> None:
        for key in keys:
            find(key)

    segments = len(grid.store.map(grid.store.catalog.find_map("orders", ("public",))).stored)
    times = {
        name: min(_timed(ask_all) for _ in range(ROUNDS)) for name, ask_all in (("key", by_key), ("index", by_index))
    }
    return {"segments": segments, **{name: each / LOOKED_UP for name, each in times.items()}}


def optimize(scratch: Path, rows: int) -> dict[str, Any]:
    """Merge the segments of each group, and return the times of lookups again."""
    with remuda.open(scratch / "map") as grid:
        grid.sql("OPTIMIZE orders")
    return read(scratch, rows)


def _timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


if __name__ == "__main__":
    what, where, count = sys.argv[1:]
    print(json.dumps({"load": load, "read": read, "optimize": optimize}[what](Path(where), int(count))))
