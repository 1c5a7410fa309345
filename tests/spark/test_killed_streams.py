"""A stream of upserts and deletions whose driver is killed at random moments: the map is as if it never was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import remuda

if TYPE_CHECKING:
    from remuda.grid import Grid

FILES = 12
APPLICATION = Path(__file__).with_name("stream_application.py")


def write_source(folder: Path, draw: random.Random) -> dict[int, tuple[str, int]]:
    """Write files of changes, one batch each, and return what they make of an empty map."""
    folder.mkdir()
    model: dict[int, tuple[str, int]] = {}
    for number in range(FILES):
        rows = [(draw.randrange(200), f"v{number}", number * 1000 + at, draw.choice("iud")) for at in range(150)]
        for key, v, ts, operation in rows:
            if operation == "d":
                model.pop(key, None)
            else:
                model[key] = (v, ts)
        draw.shuffle(rows)
        columns = dict(zip(("id", "v", "ts", "op"), map(list, zip(*rows, strict=True)), strict=True))
        path = folder / f"{number:03}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads the oldest files first
    return model


@pytest.mark.spark
@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_a_stream_whose_driver_is_killed_is_exact(tmp_path: Path, kills: int) -> None:
    draw = random.Random(kills)
    model = write_source(tmp_path / "source", draw)
    store = tmp_path / "shop.remuda"
    with remuda.open(store) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v VARCHAR, ts BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX t_v ON t (v) TYPE HASH")
    for _ in range(kills):
        process = start(tmp_path)
        try:
            wait_for(tmp_path / "checkpoint", process, draw.randrange(1, 3), draw.random())
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    process = start(tmp_path)
    told, _ = process.communicate()
    assert told.decode().split() == ["begun", "done"]
    with remuda.open(store) as grid:
        found = {row[0]: (row[1], row[2]) for row in grid.sql("SELECT id, v, ts FROM t")}
        assert found == model
        for number in range(FILES):
            ids = sorted(row[0] for row in grid.sql("SELECT id FROM t WHERE v = ?", f"v{number}"))
            assert ids == sorted(key for key, (v, _) in model.items() if v == f"v{number}")


def change_by_chance(grid: Grid, draw: random.Random, stop: threading.Event) -> None:
    """Commit a version of the source again and again."""
    turn = 0
    while not stop.is_set():
        turn += 1
        values = ", ".join(f"({draw.randrange(100)}, 'v{turn}.{number}', {turn})" for number in range(20))
        grid.sql(f"SINK INTO source VALUES {values}")
        grid.sql("DELETE FROM source WHERE id % 9 = ?", draw.randrange(9))
        grid.checkpoint()
        stop.wait(0.3)


@pytest.mark.spark
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_a_stream_of_versions_whose_driver_is_killed_is_exact(tmp_path: Path, kills: int) -> None:
    """From map to map, while this process commits versions and takes over what the stream delivers."""
    draw, stop = random.Random(kills), threading.Event()
    with remuda.open(tmp_path / "shop.remuda") as grid:
        columns = "(id BIGINT, v VARCHAR, ts BIGINT, PRIMARY KEY (id))"
        grid.sql(f"CREATE TABLE source {columns} WITH (retention = '1 day')")  # else more than 64 versions make way
        grid.sql(f"CREATE TABLE t {columns}")
        writer = threading.Thread(target=change_by_chance, args=(grid, random.Random(kills), stop))
        writer.start()
        try:
            for _ in range(kills):
                process = start(tmp_path, "source", "for ever")
                try:
                    wait_for(tmp_path / "checkpoint", process, draw.randrange(1, 3), draw.random())
                finally:
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
        finally:
            stop.set()
            writer.join()
        grid.checkpoint()
        for _ in range(2 if pyspark.__version__ < "4.2" else 1):  # 4.1 runs one batch, the one that was begun
            process = start(tmp_path, "source")
            told, _ = process.communicate()
            assert told.decode().split() == ["begun", "done"]
        expected = sorted(map(tuple, grid.sql("SELECT * FROM source")))
        assert expected
        assert sorted(map(tuple, grid.sql("SELECT * FROM t"))) == expected


def start(folder: Path, source: str | None = None, *more: str) -> subprocess.Popen[bytes]:
    """Start the application on the files of a folder, or on the changes of a map."""
    names = (folder / "shop.remuda", source or folder / "source", folder / "checkpoint")
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, APPLICATION, *names, *more], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    return process


def wait_for(checkpoint: Path, process: subprocess.Popen[bytes], batches: int, rest: float) -> None:
    """Return some batches further, somewhere within the next one; or when the stream has ended."""
    goal = len(logged(checkpoint)) + batches
    while len(logged(checkpoint)) < goal and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rest * 1.5)


def logged(checkpoint: Path) -> list[Path]:
    """The batches that were begun."""
    return [path for path in checkpoint.glob("offsets/*") if path.name.isdecimal()]
