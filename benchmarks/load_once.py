"""`python -m benchmarks.load_once FILE KIND [FOLDER]`: one load in a fresh process, which prints what it took.

KIND is `table`, for a table that is held while it is loaded, or `batches`, for batches that are read one by one.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import remuda
from remuda.bench.data import CREATE_TABLE, INDEXES

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> None:
    source, kind, *folder = sys.argv[1:]
    with remuda.open(*folder) as grid:
        for statement in (CREATE_TABLE, *INDEXES):
            grid.sql(statement)
        bare = peak_memory()
        data = _table(source) if kind == "table" else _batches(source)
        started = time.perf_counter()
        rows = grid.load("orders", data)
        seconds = time.perf_counter() - started
        print(json.dumps({"rows": rows, "seconds": seconds, "bare": bare, "peak": peak_memory()}))


def peak_memory() -> int:
    """The most memory this process has had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike the system call, this does not count what the process had before it became this program.
        (peak,) = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _table(source: str) -> pa.Table:
    with pa.OSFile(source) as file:
        return pa.ipc.open_file(file).read_all()


def _batches(source: str) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(source) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


if __name__ == "__main__":
    main()
