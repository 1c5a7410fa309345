"""After `grid.close()` nothing answers any more, whichever way it is asked: a clear error."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda import dbapi
from remuda.errors import RemudaError, SqlError
from remuda.grid import Result

ROWS = 20_000


def filled(path: Path | None) -> Any:
    grid = remuda.open(path)
    grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
    grid.sql("CREATE INDEX by_n ON m (n) TYPE SORTED")
    grid.load("m", pa.table({"id": range(ROWS), "n": [number % 10 for number in range(ROWS)]}))
    return grid


ASKED: dict[str, Callable[[Any, Any], Any]] = {
    "sql": lambda grid, _: grid.sql("SELECT 1"),
    "a plan in the cache": lambda grid, _: grid.sql("SELECT n FROM m WHERE id = ?", 5),
    "an index": lambda grid, _: grid.sql("SELECT id FROM m WHERE n = ? AND id < 50", 5),
    "insert": lambda grid, _: grid.sql("INSERT INTO m VALUES (?, ?)", -1, 1),
    "explain": lambda grid, _: grid.explain("SELECT 1"),
    "a map by name": lambda grid, _: grid.map("m"),
    "load": lambda grid, _: grid.load("m", pa.table({"id": [-1], "n": [1]})),
    "checkpoint": lambda grid, _: grid.checkpoint(),
    "refresh": lambda grid, _: grid.refresh(),
    "get": lambda _, entries: entries.get(5),
    "get_all": lambda _, entries: entries.get_all([5]),
    "[]": lambda _, entries: entries[5],
    "in": lambda _, entries: 5 in entries,
    "put": lambda _, entries: entries.put(5, (1,)),
    "set": lambda _, entries: entries.set(5, (1,)),
    "put_if_absent": lambda _, entries: entries.put_if_absent(5, (1,)),
    "replace": lambda _, entries: entries.replace(5, (1,)),
    "put_all": lambda _, entries: entries.put_all({5: (1,)}),
    "remove": lambda _, entries: entries.remove(5),
    "delete": lambda _, entries: entries.delete(5),
    "clear": lambda _, entries: entries.clear(),
    "size": lambda _, entries: len(entries),
    "is_empty": lambda _, entries: entries.is_empty(),
    "iteration": lambda _, entries: list(entries),
    "items": lambda _, entries: list(entries.items("n > ?", 3)),
    "add_index": lambda _, entries: entries.add_index("n", "HASH"),
}


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "folder"])
def test_nothing_of_a_closed_grid_answers(tmp_path: Path, stored: bool) -> None:
    grid = filled(tmp_path / "store" if stored else None)
    entries = grid.map("m")
    for ask in ASKED.values():  # plans and finders are there and used
        if ask not in (ASKED["put"], ASKED["clear"], ASKED["insert"], ASKED["load"]):
            ask(grid, entries)
    grid.close()
    grid.close()
    for name, ask in ASKED.items():
        with pytest.raises(RemudaError, match="the grid is closed"):
            pytest.fail(f"{name} answers {ask(grid, entries)!r}")
    assert repr(entries).startswith("<Map m")


READ: dict[str, Callable[[Any], Any]] = {
    "fetchone": Result.fetchone,
    "fetchmany": lambda result: result.fetchmany(3),
    "fetchall": Result.fetchall,
    "next": Result.__next__,
    "to_arrow": Result.to_arrow,
    "record_batches": lambda result: list(result.record_batches()),
    "__arrow_c_stream__": pa.table,
}


@pytest.mark.parametrize("began", [False, True], ids=["before the first row", "in the middle"])
@pytest.mark.parametrize("read", READ)
def test_a_result_that_is_being_read_ends(read: str, began: bool) -> None:
    grid = filled(None)
    result = grid.sql("SELECT id, n FROM m WHERE n <> 3 ORDER BY n, id")
    if began:
        assert result.fetchone() == (0, 0)
    grid.close()
    for _ in range(2):
        with pytest.raises(SqlError, match="the grid is closed"):
            READ[read](result)


def test_a_reader_in_the_middle_of_a_step_gets_the_error() -> None:
    grid = filled(None)
    result = grid.sql("SELECT COUNT(*) FROM m a JOIN m b ON a.n <> b.n + 1 JOIN m c ON c.n <> b.n + 2")
    outcome: list[Any] = []

    def read() -> None:
        try:
            outcome.append(result.fetchall())
        except SqlError as error:
            outcome.append(error.message)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    grid.close()
    reader.join(60)
    assert outcome == ["the grid is closed"]


def test_a_cursor_of_a_closed_grid_says_so() -> None:
    grid = filled(None)
    cursor = dbapi.connect(grid).cursor()
    cursor.execute("SELECT id FROM m ORDER BY n")
    cursor.fetchone()
    grid.close()
    with pytest.raises(dbapi.DatabaseError, match="the grid is closed"):
        cursor.fetchall()
    with pytest.raises(dbapi.DatabaseError, match="the grid is closed"):
        cursor.execute("SELECT 1")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has mapped is told by /proc")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_closed_grid_lets_its_files_go_at_once(tmp_path: Path, read_only: bool) -> None:
    """Grid, store and maps know each other: until the collector came by a closed grid would keep dozens of files."""
    filled(tmp_path).close()
    gc.collect()
    gc.disable()
    try:
        with remuda.open(tmp_path, read_only=read_only) as grid:
            entries = grid.map("m")
            assert entries[5].n == 5
            assert len(grid.sql("SELECT id FROM m WHERE n = ?", 3).fetchall()) == ROWS // 10
            assert str(tmp_path) in Path("/proc/self/maps").read_text()
        assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    finally:
        gc.enable()
