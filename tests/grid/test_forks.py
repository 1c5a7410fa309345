"""A grid belongs to the process that opened it: one that is forked off is told so, and disturbs nothing."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import remuda
from remuda import dbapi
from remuda.errors import RemudaError
from remuda.grid.results.garbage import full_collections_put_off

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

PATIENCE = 120.0
ROWS = 50_000


@pytest.fixture(params=["memory", "folder"])
def grid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with remuda.open(tmp_path / "shop" if request.param == "folder" else None) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.sql(f"INSERT INTO t SELECT i, i FROM range({ROWS}) AS i")
        opened.sql("SELECT n FROM t WHERE id = ?", 1).fetchall()  # has a shortcut from now on
        yield opened


def in_fork(ask: Callable[[], Any]) -> str:
    """What a forked process gets, or the error that it meets."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def answer() -> None:
        try:
            sending.send(str(ask()))
        except RemudaError as error:
            sending.send(f"refused: {error}")

    process = context.Process(target=answer)
    process.start()
    try:
        assert receiving.poll(PATIENCE), "the forked process waits for ever"
        return str(receiving.recv())
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize(
    "ask",
    [
        lambda grid, _: grid.sql("SELECT n FROM t WHERE id = ?", 1).fetchall(),
        lambda grid, _: grid.sql("SELECT n % 7, SUM(n) FROM t GROUP BY 1").fetchall(),
        lambda grid, _: grid.sql("INSERT INTO t VALUES (-1, 1)"),
        lambda grid, _: grid.checkpoint(),
        lambda _, held: held.get(1),
        lambda _, held: held.put(-1, {"n": 1}),
        lambda _, held: len(held),
    ],
    ids=["shortcut", "groups", "insert", "checkpoint", "get", "put", "size"],
)
def test_a_fork_has_no_use_of_the_grid(grid: Any, ask: Callable[[Any, Any], Any]) -> None:
    held = grid.map("t")
    assert "from which this one was forked" in in_fork(lambda: ask(grid, held))
    grid.sql("INSERT INTO t VALUES (-2, 1)")
    assert grid.sql("SELECT COUNT(*) FROM t").fetchone() == (ROWS + 1,)


@pytest.mark.parametrize(
    "ask",
    [list, lambda result: result.fetchall(), lambda result: result.fetchone(), lambda result: result.to_arrow()],
    ids=["list", "fetchall", "fetchone", "to_arrow"],
)
def test_a_fork_cannot_read_on(grid: Any, ask: Callable[[Any], Any]) -> None:
    """The threads that compute the rest of the rows are not in the forked process."""
    grid.sql("SELECT COUNT(*) FROM t a JOIN t b USING (id)").fetchall()
    result = grid.sql("SELECT a.id, b.n FROM t a JOIN t b ON a.id = b.n")
    assert result.fetchone() is not None
    assert "from which this one was forked" in in_fork(lambda: ask(result))
    assert len(result.fetchall()) == ROWS - 1


def test_a_fork_has_the_collector_as_it_was(grid: Any) -> None:
    """Rows are fetched in another thread, for which full collections are put off, when the process is forked."""
    before = gc.get_threshold()
    with full_collections_put_off:
        assert gc.get_threshold() != before
        assert in_fork(gc.get_threshold) == str(before)
    assert gc.get_threshold() == before


def test_closing_it_in_a_fork_does_nothing(grid: Any) -> None:
    assert in_fork(grid.close) == "None"
    assert grid.sql("SELECT COUNT(*) FROM t").fetchone() == (ROWS,)


def test_a_fork_opens_the_folder_itself(tmp_path: Path) -> None:
    path = tmp_path / "shop"
    with dbapi.connect(path) as connection:
        connection.cursor().execute("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
        connection.cursor().execute("INSERT INTO t VALUES (1)")
        count = "SELECT COUNT(*) FROM t"
        assert in_fork(lambda: remuda.open(path, read_only=True).sql(count).fetchone()[0]) == "1"
        assert in_fork(lambda: dbapi.connect(path, read_only=True).cursor().execute(count).fetchone()[0]) == "1"


def test_a_living_fork_does_not_keep_the_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    grid = remuda.open(tmp_path / "shop")
    is_there, waiting = context.Event(), context.Event()

    def live() -> None:
        is_there.set()
        waiting.wait()

    process = context.Process(target=live)
    process.start()
    try:
        assert is_there.wait(PATIENCE)
        grid.close()
        remuda.open(tmp_path / "shop").close()
    finally:
        waiting.set()
        process.join()
