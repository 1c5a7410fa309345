"""Writes that survive a power failure: one thread, and many at once."""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.bench.case import REMUDA, Case, Setting, if_installed
from remuda.bench.peers import remuda_peer, sqlite_peer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.bench.case import Ask

THREADS = 32
PUTS = 10
"""By each thread in one call."""

LONGEST_WAIT = 120.0
"""Seconds for which SQLite tries again where another connection is writing."""

ROW = ("C1", "NEW", 1.5, None, 1)
INSERT = "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)"


def cases(_: Setting) -> Iterator[Case]:
    with (
        tempfile.TemporaryDirectory(prefix="remuda-bench-") as name,
        ThreadPoolExecutor(THREADS) as pool,
        ExitStack() as opened,
    ):
        folder = Path(name)
        yield Case(
            "durable put, 1 thread",
            {
                REMUDA: _put(folder / "put.remuda"),
                "SQLite": _sqlite_puts(opened, folder / "put.sqlite", 1),
                "LMDB": if_installed("LMDB", lambda: _lmdb_put(folder / "put.lmdb")),
                "one sync of the disk": _syncs(opened, folder / "sync", 1),
            },
            same_answers=False,
        )
        yield Case(
            f"{THREADS * PUTS} durable puts, {THREADS} threads",
            {
                REMUDA: _puts(folder / "puts.remuda", pool),
                "SQLite, 1 thread": _sqlite_puts(opened, folder / "puts.sqlite", THREADS * PUTS),
                f"SQLite, {THREADS} threads": _sqlite_puts_by_threads(opened, folder / "threads.sqlite", pool),
                "the disk's syncs alone": _syncs(opened, folder / "syncs", THREADS * PUTS),
            },
            same_answers=False,
        )


def _put(path: Path) -> Ask:
    orders, keys = remuda_peer.create(str(path)).map("orders"), itertools.count()
    return lambda: orders.set(next(keys), ROW)


def _lmdb_put(path: Path) -> Ask:
    from remuda.bench.peers import lmdb_peer

    environment, keys = lmdb_peer.create(path, durable=True), itertools.count()
    return lambda: lmdb_peer.put(environment, next(keys), ROW)


def _puts(path: Path, pool: ThreadPoolExecutor) -> Ask:
    orders, keys = remuda_peer.create(str(path)).map("orders"), itertools.count()

    def put(_: int) -> None:
        for _ in range(PUTS):
            orders[next(keys)] = ROW

    return lambda: list(pool.map(put, range(THREADS)))


def _sqlite_connection(path: Path) -> sqlite3.Connection:
    """Open a connection for any thread, as long as no two use it at once."""
    connection = sqlite3.connect(path, timeout=LONGEST_WAIT, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _sqlite_created(path: Path) -> sqlite3.Connection:
    connection = _sqlite_connection(path)
    for statement in (sqlite_peer.CREATE, *sqlite_peer.INDEXES):
        connection.execute(statement)
    return connection


def _sqlite_puts_by_threads(opened: ExitStack, path: Path, pool: ThreadPoolExecutor) -> Ask:
    """Put by as many threads, a connection for each: SQLite lets in one writer at a time, the others wait."""
    _sqlite_created(path).close()
    connections, keys = (
        [opened.enter_context(closing(_sqlite_connection(path))) for _ in range(THREADS)],
        itertools.count(),
    )

    def put(number: int) -> None:
        connection = connections[number]
        for _ in range(PUTS):
            connection.execute(INSERT, (next(keys), *ROW))

    return lambda: list(pool.map(put, range(THREADS)))


def _sqlite_puts(opened: ExitStack, path: Path, count: int) -> Ask:
    """Put as many rows by a single thread, which waits for no other."""
    connection, keys = opened.enter_context(closing(_sqlite_created(path))), itertools.count()

    def puts() -> None:
        for _ in range(count):
            connection.execute(INSERT, (next(keys), *ROW))

    return puts


def _syncs(opened: ExitStack, path: Path, count: int) -> Ask:
    """Sync once for each put, over bytes that are there already: the lower bound of a single writer."""
    record, room = b"x" * 100, bytes(1 << 20)
    path.write_bytes(room)
    file = opened.enter_context(path.open("r+b", buffering=0))
    os.fsync(file.fileno())
    offsets = itertools.cycle(range(0, len(room) - len(record), len(record)))
    sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync

    def sync() -> None:
        for _ in range(count):
            os.pwrite(file.fileno(), record, next(offsets))
            sync_data(file.fileno())

    return sync
