"""What a loading task holds, however many rows it has: about twice its batch budget, beside files that it maps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys, threading
from pathlib import Path
import numpy as np, pyarrow as pa
from remuda.catalog import ColumnDefinition, IndexDefinition, IndexType, MapDefinition
from remuda.spark.load import change_task, partition_task, segment_task
from remuda.spark.source import source_write
from remuda.storage.folder.delivery import FolderInbox
from remuda.types import BIGINT, VARCHAR

way, folder, megabytes, budget, width = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:])
budget <<= 20
segment_task.TASK_BYTES = source_write.TASK_BYTES = budget
partition_task.HELD_BYTES = budget // 4
rows = 2_000_000 // width
columns = (ColumnDefinition("id", BIGINT, False), ColumnDefinition("doc", VARCHAR))
index = IndexDefinition("0123456789abcdef", "t_id", ("id",), IndexType.SORTED)
definition = MapDefinition("fedcba9876543210", "public", "t", columns, ("id",), ("id",), 64, False, (index,))

def batches(names):
    for number in range((megabytes << 20) // (rows * width)):
        ids = np.arange(number * rows, (number + 1) * rows)
        data = np.full((rows, width), 120, np.uint8)
        data[:, :10] = np.char.zfill(ids.astype(str), 10).astype("S10").view(np.uint8).reshape(rows, 10)
        offsets = np.arange(rows + 1, dtype=np.int32) * width
        docs = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        yield pa.record_batch({names[0]: ids, names[1]: docs})

def own():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))

peak, ended = 0, threading.Event()

def watch():
    global peak
    while not ended.wait(0.002):
        peak = max(peak, own())

def load():
    folder.mkdir()
    if way == "write":
        inbox = FolderInbox(str(folder))
        inbox.expect("load0123456789abcdef")
        target = source_write.Target(inbox, definition, "append", ("id", "doc"))
        return list(target.write("load0123456789abcdef", batches(("id", "doc"))).infos)
    (folder / "map").mkdir()
    names = tuple(partition_task.travelling_name(definition, name) for name in ("id", "doc"))
    answers = partition_task.write_lots_in_arrow(str(folder), definition, batches(names), keyless=False)
    written = [partition_task.written_rows(each.column(0)[0].as_py()) for each in answers]
    parts = segment_task.cut_parts(definition, written, 1)
    runs = tuple(each.file for each in written)
    shared = segment_task.SegmentLoad(str(folder / "map"), "load7", definition, runs)
    return [info for part in parts for info in segment_task.segment_infos(segment_task.build_part(shared, part))]

import remuda.storage.segment.summary.value_counts, pyarrow.compute
before = own()
thread = threading.Thread(target=watch, daemon=True)
thread.start()
infos = load()
ended.set()
thread.join()
total = (megabytes << 20) // (rows * width) * rows
assert sum(info.rows for info in infos) == total, infos
spans = sorted(info.partitions for info in infos)
assert all(one[1] < other[0] for one, other in zip(spans, spans[1:])), spans
print(peak - before, len(infos))
"""


def grown(way: str, folder: Path, megabytes: int, budget: int, width: int) -> tuple[int, int]:
    """Return by how many bytes the memory of a task grows, and how many segments it makes."""
    given = [way, str(folder), *map(str, (megabytes, budget, width))]
    run = subprocess.run([sys.executable, "-c", SCRIPT, *given], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3_000:]
    peak, segments = map(int, run.stdout.split())
    return peak, segments


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
@pytest.mark.parametrize("way", ["load", "write"])
def test_memory_does_not_grow_with_the_rows_of_a_task(way: str, tmp_path: Path) -> None:
    budget = 64
    small, few = grown(way, tmp_path / "small", 200, budget, 1_000)
    large, many = grown(way, tmp_path / "large", 600, budget, 1_000)
    assert many > few > 3
    pools = 144 << 20  # of Arrow and numpy, modules that are imported meanwhile, samples for statistics
    assert max(small, large) < 2 * (budget << 20) + pools
    assert large < small + (budget << 20)
