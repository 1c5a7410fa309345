"""CREATE OR REPLACE TABLE: the old table or the new one with all of its rows, at every moment and after a crash."""

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

import pytest

import remuda
from remuda.errors import SqlError, StorageError
from remuda.storage import MapStore
from remuda.storage.folder import kept_versions
from remuda.storage.folder.store_folder import StoreFolder

OLD = [(1, 10), (2, 20)]


@pytest.fixture(params=[False, True], ids=["memory", "folder"])
def grid(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with remuda.open(tmp_path / "store" if request.param else None) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX t_n ON t (n)")
        opened.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        opened.sql("CHECKPOINT")
        yield opened


def rows(grid: Any, query: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in grid.sql(query))


def files_of_maps(grid: Any) -> set[Path]:
    gc.collect()
    return set() if grid.store.path is None else set((grid.store.path / "maps").rglob("*.*"))


def test_the_new_table_has_its_own_columns_rows_and_indexes(grid: Any) -> None:
    assert rows(grid) == OLD
    grid.sql("CREATE OR REPLACE TABLE t (k INTEGER, s VARCHAR, PRIMARY KEY (k))")
    assert rows(grid) == []
    assert rows(grid, "SHOW INDEXES") == []
    grid.sql("CREATE INDEX t_n ON t (s)")
    grid.sql("INSERT INTO t VALUES (7, 'x')")
    assert rows(grid, "SELECT k FROM t WHERE s = 'x'") == [(7,)]
    grid.sql("CREATE OR REPLACE TABLE other (k INTEGER, PRIMARY KEY (k))")
    assert rows(grid, "SELECT * FROM other") == []


def test_it_outlives_the_grid(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t VALUES (1)")
        grid.sql("CREATE OR REPLACE TABLE t (id BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t VALUES (2)")
    with remuda.open(tmp_path) as grid:
        assert rows(grid) == [(2,)]
        assert {each.name for each in tmp_path.glob("maps/*")} <= {each.id for each in grid.store.catalog.maps.values()}


def test_the_query_may_read_the_table_that_it_replaces(grid: Any) -> None:
    for _ in range(2):
        grid.sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (id)) AS SELECT id, n + 1 AS n FROM t")
    assert rows(grid) == [(1, 12), (2, 22)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE OR REPLACE TABLE t AS SELECT 1 / (id - 2) AS x FROM t", "division by zero"),
        ("CREATE OR REPLACE TABLE t (PRIMARY KEY (x)) AS SELECT 1 AS x FROM t", "there twice|duplicate|exists"),
        ("CREATE OR REPLACE TABLE t (a INTEGER, PRIMARY KEY (b))", "unknown column: b"),
        ("CREATE OR REPLACE TABLE v (a INTEGER, PRIMARY KEY (a))", "there is a view v already"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INTEGER)", "IF is not supported: what exists is replaced"),
    ],
)
def test_a_failure_leaves_the_old_table(grid: Any, sql: str, message: str) -> None:
    grid.sql("CREATE VIEW v AS SELECT 1 AS one")
    before = files_of_maps(grid)
    with pytest.raises(SqlError, match=message):
        grid.sql(sql)
    assert rows(grid) == OLD
    assert rows(grid, "SELECT id FROM t WHERE n = 20") == [(2,)]
    assert files_of_maps(grid) == before
    grid.sql("INSERT INTO t VALUES (3, 30)")


def test_a_commit_that_fails_leaves_the_old_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t VALUES (1, 10), (2, 20)")

        def no_room(*_given: Any, **_named: Any) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(StoreFolder, "commit", no_room)
            with pytest.raises(StorageError, match="No space left"):
                grid.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS one")
        assert rows(grid) == OLD
        grid.sql("INSERT INTO t VALUES (3, 30)")
    with remuda.open(tmp_path) as grid:
        assert rows(grid) == [*OLD, (3, 30)]


def test_the_old_table_is_seen_until_the_new_one_is_whole(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, seen = threading.Event(), threading.Event()
    load_tables = MapStore.load_tables

    def load_and_pause(self: MapStore, *given: Any) -> int:
        count = load_tables(self, *given)
        loaded.set()
        assert seen.wait(60)
        return count

    monkeypatch.setattr(MapStore, "load_tables", load_and_pause)
    writer = threading.Thread(target=lambda: grid.sql("CREATE OR REPLACE TABLE t AS SELECT 5 AS five"))
    writer.start()
    assert loaded.wait(60)
    assert rows(grid) == OLD
    seen.set()
    writer.join()
    assert rows(grid) == [(5,)]


def test_a_reader_sees_the_new_table_after_a_refresh(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as writer:
        writer.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
        writer.sql("INSERT INTO t VALUES (1)")
        with remuda.open(tmp_path, read_only=True) as reader:
            assert rows(reader) == [(1,)]
            writer.sql("CREATE OR REPLACE TABLE t AS SELECT 5 AS five, 6 AS six")
            reader.refresh()
            assert rows(reader) == [(5, 6)]


REPLACER = """
import sys, remuda
from remuda.storage.folder import kept_versions
kept_versions.DEFAULT_RETENTION = 0  # versions that are kept have replaced tables
with remuda.open(sys.argv[1]) as grid:
    print("begun", flush=True)
    for number in range(1000):
        grid.sql(f"CREATE OR REPLACE TABLE t AS SELECT s, {number} AS n FROM generate_series(1, 20000) AS t(s)")
        grid.sql("INSERT INTO t VALUES (0, -1)")
"""


def test_a_killed_process_leaves_one_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 0)
    chance = random.Random(7)
    for _ in range(4):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
        child = subprocess.Popen(
            [sys.executable, "-c", REPLACER, str(tmp_path)], stdout=subprocess.PIPE, env=environment
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        threading.Event().wait(0.2 + chance.random() * 0.6)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with remuda.open(tmp_path) as grid:
            maps = list(grid.store.catalog.maps.values())
            assert len(maps) <= 1
            for _each in maps:
                found = rows(grid, "SELECT n, COUNT(*) FROM t GROUP BY n")
                assert found in ([(found[-1][0], 20_000)], [(-1, 1), (found[-1][0], 20_000)])
            assert {each.name for each in tmp_path.glob("maps/*")} == {each.id for each in maps}
