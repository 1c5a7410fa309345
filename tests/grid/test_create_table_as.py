"""CREATE TABLE AS: the table is there with all of its rows, or it is not there."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError
from remuda.storage import MapStore
from remuda.storage.folder import kept_versions

ROWS = 50_000


@pytest.fixture(autouse=True)
def without_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of tables that are dropped go at once."""
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 0)


@pytest.fixture(params=[False, True], ids=["memory", "folder"])
def grid(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with remuda.open(tmp_path / "store" if request.param else None) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.load("m", pa.table({"id": range(ROWS), "n": [number % 10 for number in range(ROWS)]}))
        yield opened


def files_of_maps(grid: Any) -> set[Path]:
    """They go with the last object that knows them; an error knows the frames that it came through."""
    gc.collect()
    return set() if grid.store.path is None else set((grid.store.path / "maps").rglob("*.*"))


def test_nobody_sees_it_before_it_is_whole(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at from another thread in the moment between its rows and the end of the statement."""
    loaded, seen = threading.Event(), threading.Event()
    load_tables = MapStore.load_tables

    def load_and_pause(self: MapStore, *given: Any) -> int:
        rows = load_tables(self, *given)
        loaded.set()
        assert seen.wait(60)
        return rows

    monkeypatch.setattr(MapStore, "load_tables", load_and_pause)
    outcome: list[int] = []
    writer = threading.Thread(
        target=lambda: outcome.append(grid.sql("CREATE TABLE made AS SELECT * FROM m").update_count)
    )
    writer.start()
    assert loaded.wait(60)
    with pytest.raises(SqlError, match="unknown table: made"):
        grid.sql("SELECT COUNT(*) FROM made")
    assert "made" not in {row.name for row in grid.sql("SHOW TABLES")}
    seen.set()
    writer.join()
    assert outcome == [ROWS]
    assert (
        grid.sql("SELECT COUNT(*), SUM(n) FROM made").fetchall()
        == grid.sql("SELECT COUNT(*), SUM(n) FROM m").fetchall()
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE TABLE made AS SELECT id, 100 / (id - 49999) AS x FROM m ORDER BY n", "division by zero"),
        ("CREATE TABLE made (PRIMARY KEY (n)) AS SELECT n FROM m", "there twice|duplicate|exists"),
    ],
)
def test_a_failure_leaves_nothing(grid: Any, sql: str, message: str) -> None:
    before = files_of_maps(grid)
    with pytest.raises(SqlError, match=message):
        grid.sql(sql)
    assert grid.store.catalog.find_map("made", ("public",)) is None
    assert files_of_maps(grid) == before
    assert grid.sql("CREATE TABLE made AS SELECT * FROM m").update_count == ROWS


def test_a_name_that_was_taken_meanwhile(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    load_tables = MapStore.load_tables

    def load_after_another(self: MapStore, *given: Any) -> int:
        monkeypatch.setattr(MapStore, "load_tables", load_tables)
        grid.sql("CREATE TABLE made AS SELECT 1 AS one")
        return load_tables(self, *given)

    before = files_of_maps(grid)
    monkeypatch.setattr(MapStore, "load_tables", load_after_another)
    with pytest.raises(SqlError, match="the table made exists already"):
        grid.sql("CREATE TABLE made AS SELECT * FROM m")
    assert grid.sql("SELECT * FROM made").fetchall() == [(1,)]
    grid.sql("DROP TABLE made")
    monkeypatch.setattr(MapStore, "load_tables", load_after_another)
    assert grid.sql("CREATE TABLE IF NOT EXISTS made AS SELECT * FROM m").update_count == 0
    assert grid.sql("SELECT * FROM made").fetchall() == [(1,)]
    grid.sql("DROP TABLE made")
    assert files_of_maps(grid) == before


def test_it_outlives_the_grid_and_takes_writes(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE made (PRIMARY KEY (x)) AS SELECT s AS x FROM generate_series(1, 1000) AS t(s)")
        grid.sql("DELETE FROM made WHERE x = 5")
        grid.sql("INSERT INTO made VALUES (0)")
    with remuda.open(tmp_path) as grid:
        assert grid.sql("SELECT COUNT(*), MIN(x), SUM(x) FROM made").fetchall() == [(1000, 0, 500_495)]


MAKER = """
import sys, remuda
with remuda.open(sys.argv[1]) as grid:
    first = len(grid.store.catalog.maps)
    print("begun", flush=True)
    for number in range(first, first + 1000):
        grid.sql(f"CREATE TABLE t{number} AS SELECT s, s % 7 AS n FROM generate_series(1, 20000) AS t(s)")
"""


def test_a_killed_process_leaves_whole_tables(tmp_path: Path) -> None:
    chance = random.Random(5)
    for _ in range(4):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
        child = subprocess.Popen([sys.executable, "-c", MAKER, str(tmp_path)], stdout=subprocess.PIPE, env=environment)
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        threading.Event().wait(0.1 + chance.random() * 0.5)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with remuda.open(tmp_path) as grid:
            names = [each.name for each in grid.store.catalog.maps.values()]
            assert [grid.sql(f"SELECT COUNT(*) FROM {name}").fetchone() for name in names] == [(20_000,)] * len(names)
            folders = {each.name for each in tmp_path.glob("maps/*")}
            assert folders == {each.id for each in grid.store.catalog.maps.values()}
