"""A gigabyte of rows under a limit of 64 MB: every operator that spills ends with the right answer, in bounded memory.

The statements run in a process of their own, whose memory that is no mapped file is looked at all the while.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import remuda

ROWS = 8_000_000
BATCH_ROWS = 500_000
TEXT = 100
"""Characters of a text; hardly any is repeated, so the map has no dictionary of them."""
LIMIT = "64MB"
MOST_MEMORY = 1_000_000_000

QUERIES = {
    "sorted rows": "SELECT id FROM m ORDER BY t DESC, id",
    "groups": "SELECT COUNT(*), SUM(n), MAX(s) FROM (SELECT t, COUNT(*) AS n, SUM(k) AS s FROM m GROUP BY t) g",
    "distinct": "SELECT COUNT(*), SUM(k) FROM (SELECT DISTINCT t, k FROM m) d",
    "join": "SELECT COUNT(*), SUM(a.k), SUM(b.id) FROM m a JOIN m b ON a.t = b.t",
    "outer join": "SELECT COUNT(*), SUM(b.id) FROM m a LEFT JOIN m b ON a.id = b.k + 1",
    "anti join": "SELECT COUNT(*), SUM(id) FROM m a "
    "WHERE NOT EXISTS (SELECT 1 FROM m b WHERE b.t = a.t AND b.id <> a.id)",
    "window": "SELECT COUNT(*), SUM(r), SUM(l) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS r, "
    "LENGTH(LAG(t) OVER (PARTITION BY k ORDER BY t)) AS l FROM m) w",
}

CHILD = """
import json, sys, remuda
folder, sql, limit = sys.argv[1:]
grid = remuda.open(folder, read_only=True)
grid.sql("SELECT COUNT(*) FROM m").fetchall()
if limit != "off":
    grid.sql(f"SET memory_limit = '{limit}'")
print("ready", flush=True)
count = total = place = 0
for batch in grid.sql(sql).record_batches():
    if batch.num_columns == 1:
        values = batch.column(0).to_numpy()
        places = range(place, place + len(values))
        total = (total + int((values * places).sum())) % (1 << 60)
        place += len(values)
    else:
        total = batch.to_pylist()
print(json.dumps([place, total], default=str), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "grid.remuda"
    random = np.random.default_rng(3)
    with remuda.open(path, durability="none") as grid:
        grid.sql("CREATE TABLE m (id BIGINT, k BIGINT, t VARCHAR, PRIMARY KEY (id))")
        for first in range(0, ROWS, BATCH_ROWS):
            ids = np.arange(first, first + BATCH_ROWS)
            numbers = random.integers(0, ROWS, BATCH_ROWS)
            texts = pa.array([f"{number:>{TEXT}}" for number in numbers.tolist()])
            grid.load("m", pa.table({"id": ids, "k": numbers // 3, "t": texts}))
    return path


def child(folder: Path, sql: str, limit: str, spills: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), sql, limit],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(spills)},
    )


def answer(folder: Path, sql: str, limit: str, spills: Path) -> tuple[Any, int]:
    """Return what the statement answers, and the most memory that its process had."""
    most = 0
    with child(folder, sql, limit, spills) as process:
        assert process.stdout is not None
        while process.poll() is None:
            most = max(most, own_memory(process.pid))
            time.sleep(0.02)
        assert process.returncode == 0
        return json.loads(process.stdout.read().splitlines()[-1]), most


def own_memory(process: int) -> int:
    """Return the bytes of a process that are no mapped file."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:  # it has ended
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 0 if found is None else int(found[1]) * 1024


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_answer_is_that_without_a_limit(folder: Path, tmp_path: Path, query: str) -> None:
    spilled, memory = answer(folder, QUERIES[query], LIMIT, tmp_path)
    assert spilled == answer(folder, QUERIES[query], "off", tmp_path)[0]
    assert memory < MOST_MEMORY
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("query", ["sorted rows", "groups", "join", "window"])
def test_a_process_killed_while_it_spills_leaves_nothing(folder: Path, tmp_path: Path, query: str) -> None:
    before = os.statvfs(tmp_path).f_bavail
    with child(folder, QUERIES[query], LIMIT, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while spilled_bytes(process.pid, tmp_path) < 50_000_000:
            assert process.poll() is None, "it ended before it had spilled that much"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []
    assert os.statvfs(tmp_path).f_bavail > before - 40_000_000 // os.statvfs(tmp_path).f_frsize


def spilled_bytes(process: int, folder: Path) -> int:
    """Return the sizes of the files without a name that a process has open in a folder."""
    total = 0
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            if str(link.readlink()).startswith(f"{folder}/"):
                total += link.stat().st_size
        except OSError:  # closed meanwhile
            continue
    return total
