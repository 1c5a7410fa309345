"""Folders: writes that survive a power failure, opening, and the size on disk."""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import remuda
from benchmarks.case import REMUDA, Case, Setting
from benchmarks.data import CREATE_TABLE
from benchmarks.peers import duckdb_peer, remuda_peer, sqlite_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THREADS = 32
PUTS = 50
"""By each thread in one call."""

LONGEST_WAIT = 120.0
"""Seconds for which SQLite tries again where another connection is writing."""

ROW = ("C1", "NEW", 1.5, None, 1)
INSERT = "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)"
ROW_BY_KEY = "SELECT * FROM orders WHERE id = ?"


def cases(setting: Setting) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name, ThreadPoolExecutor(THREADS) as pool:
        folder = Path(name)
        yield Case(
            f"{THREADS * PUTS} durable puts, {THREADS} threads",
            {
                REMUDA: _puts(folder / "puts.remuda", pool),
                "SQLite, 1 thread": _sqlite_puts(folder / "puts.sqlite"),
                f"SQLite, {THREADS} threads": _sqlite_puts_by_threads(folder / "threads.sqlite", pool),
                "the disk's syncs alone": _syncs(folder / "syncs"),
            },
            same_answers=False,
        )
        yield _opening(setting, folder)


def _puts(path: Path, pool: ThreadPoolExecutor) -> Callable[[], object]:
    orders, keys = remuda_peer.create(str(path)).map("orders"), itertools.count()

    def put(_: int) -> None:
        for _ in range(PUTS):
            orders[next(keys)] = ROW

    return lambda: list(pool.map(put, range(THREADS)))


def _sqlite_connection(path: Path) -> sqlite3.Connection:
    """Any thread may use it, as long as no two do at once."""
    connection = sqlite3.connect(path, timeout=LONGEST_WAIT, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _sqlite_created(path: Path) -> sqlite3.Connection:
    connection = _sqlite_connection(path)
    for statement in (sqlite_peer.CREATE, *sqlite_peer.INDEXES):
        connection.execute(statement)
    return connection


def _sqlite_puts_by_threads(path: Path, pool: ThreadPoolExecutor) -> Callable[[], object]:
    """The same work by as many threads, a connection for each: SQLite lets in one writer at a time, the others wait."""
    _sqlite_created(path).close()
    connections, keys = [_sqlite_connection(path) for _ in range(THREADS)], itertools.count()

    def put(number: int) -> None:
        connection = connections[number]
        for _ in range(PUTS):
            connection.execute(INSERT, (next(keys), *ROW))

    return lambda: list(pool.map(put, range(THREADS)))


def _sqlite_puts(path: Path) -> Callable[[], object]:
    """What a single thread does in the time: nobody waits for anybody."""
    connection, keys = _sqlite_created(path), itertools.count()

    def puts() -> None:
        for _ in range(THREADS * PUTS):
            connection.execute(INSERT, (next(keys), *ROW))

    return puts


def _syncs(path: Path) -> Callable[[], object]:
    """One sync for each put, over bytes that are there already: what a single writer cannot be faster than."""
    record, room = b"x" * 100, bytes(1 << 20)
    path.write_bytes(room)
    descriptor = os.open(path, os.O_WRONLY)
    os.fsync(descriptor)
    places = itertools.cycle(range(0, len(room) - len(record), len(record)))

    def sync() -> None:
        for _ in range(THREADS * PUTS):
            os.pwrite(descriptor, record, next(places))
            os.fdatasync(descriptor)

    return sync


def _opening(setting: Setting, folder: Path) -> Case:
    """From nothing to the first row by key."""
    ours, duck = folder / "all.remuda", folder / "all.duckdb"
    with remuda_peer.create(str(ours)) as grid:
        grid.load("orders", setting.data.table)
    with duckdb.connect(str(duck)) as connection:
        connection.execute(CREATE_TABLE)
        duckdb_peer.load(connection, setting.data.table)
    key = setting.data.keys[0]

    def open_ours() -> None:
        with remuda.open(str(ours)) as grid:
            assert grid.map("orders").get(key) is not None

    def open_duck() -> None:
        with duckdb.connect(str(duck)) as connection:
            assert connection.execute(ROW_BY_KEY, (key,)).fetchone() is not None

    rows = setting.data.rows
    sizes = [_bytes(ours) / rows, _bytes(duck) / rows]
    return Case(
        f"open, first key ({sizes[0]:.0f}, {sizes[1]:.0f} bytes a row)",
        {REMUDA: open_ours, "DuckDB": open_duck},
        same_answers=False,
    )


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(each.stat().st_size for each in path.rglob("*"))
