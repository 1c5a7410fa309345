"""Walks a query through the code with a tracer: the files of `src/remuda` that it enters, cold and from the plan cache.

    python -m tests.harness.query_walk [--files] [SQL [VALUE ...]]

The fewer files a reader has to open to follow one query, the better. Modules are imported before, by the same query on
another grid, so that only functions count that the query calls.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import remuda

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(remuda.__file__).parent
SETUP = "CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, PRIMARY KEY (id))"
QUERY = (
    "SELECT customer, SUM(amount) AS total FROM orders WHERE amount > ? GROUP BY customer ORDER BY total DESC LIMIT 3"
)
"""The query of docs/architecture.md."""
VALUES = (10.0,)
ROWS = 20_000


def open_grid() -> Any:
    grid = remuda.open()
    grid.sql(SETUP)
    ids = range(ROWS)
    columns = {"id": ids, "customer": [f"C{id_ % 500}" for id_ in ids], "amount": [id_ % 97 / 2 for id_ in ids]}
    grid.load("orders", pa.table(columns))
    return grid


class Tracer:
    """Counts the calls of functions by their file, in the thread that makes it and in all that are started later."""

    def __init__(self) -> None:
        self._calls: Counter[str] | None = None
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)

    def _enter(self, frame: Any, event: str, _: object) -> None:
        calls = self._calls
        if calls is not None and event == "call":
            calls[frame.f_code.co_filename] += 1

    def files_entered(self, work: Callable[[], object]) -> Counter[str]:
        """Return how often functions of each file of the package are called while the work is done."""
        calls = self._calls = Counter()
        try:
            work()
        finally:
            self._calls = None
        return Counter({name: count for file, count in calls.items() if (name := _in_package(file)) is not None})

    def stop(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)


def _in_package(file: str) -> str | None:
    path = Path(file)
    return str(path.relative_to(SOURCE)) if path.is_relative_to(SOURCE) else None


def walk(text: str, *values: object) -> tuple[Counter[str], Counter[str]]:
    """Return the files of a query that has to be planned, and of the same query from the plan cache."""

    def run() -> object:
        return grid.sql(text, *values).fetchall()

    with open_grid() as grid:
        run()
    tracer = Tracer()
    try:
        with open_grid() as grid:
            return tracer.files_entered(run), tracer.files_entered(run)
    finally:
        tracer.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the files of src/remuda that a query enters.")
    parser.add_argument("--files", action="store_true", help="name each file, with its number of calls")
    parser.add_argument("sql", nargs="?", help="over orders (id, customer, amount)")
    parser.add_argument("values", nargs="*", type=float)
    arguments = parser.parse_args()
    traced = walk(QUERY, *VALUES) if arguments.sql is None else walk(arguments.sql, *arguments.values)
    for title, files in zip(("cold", "from the plan cache"), traced, strict=True):
        print(f"{title}: {len(files)} files, {files.total()} calls")
        if arguments.files:
            for name, count in sorted(files.items()):
                print(f"  {count:7} {name}")


if __name__ == "__main__":
    main()
