"""One row after the other, and all of them at once; none of it survives a power failure."""

from __future__ import annotations

import datetime as dt
import itertools
import tempfile
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.bench.case import REMUDA, Case, Setting, if_installed, over
from remuda.bench.peers import remuda_peer, sqlite_peer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from remuda.bench.case import Ask

MOMENT = dt.datetime(2024, 1, 1)
MICROSECONDS = 1_704_067_200_000_000
STORED = ("C1", "NEW", 1.5, MICROSECONDS, 1)
SINK = "SINK INTO orders VALUES (?, ?, ?, ?, ?, ?)"
REPLACE = "INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?, ?)"


def cases(setting: Setting) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as folder, ExitStack() as opened:
        yield Case(
            "put one row: map.set",
            {
                REMUDA: _put("set"),
                "LMDB": if_installed("LMDB", lambda: _lmdb_put(opened, folder)),
                "SQLite": _sqlite_put(opened),
            },
            same_answers=False,
        )
        yield Case("put one row: map.put", {REMUDA: _put("put"), "SQLite": _sqlite_put(opened)}, same_answers=False)
        yield Case(
            "put one row: grid.sql",
            {
                REMUDA: _sink(),
                "SQLite": _sqlite_put(opened),
                "DuckDB": if_installed("DuckDB", lambda: _duckdb_put(opened)),
            },
            same_answers=False,
        )
    yield _put_over(setting)
    yield _load(setting)


def _put(method: str) -> Ask:
    put, keys = getattr(remuda_peer.create().map("orders"), method), itertools.count()
    value = {"customer": "C1", "status": "NEW", "amount": 1.5, "created": MOMENT, "qty": 1}
    return lambda: put(next(keys), value)


def _sink() -> Ask:
    sql, keys = remuda_peer.create().sql, itertools.count()
    return lambda: sql(SINK, next(keys), "C1", "NEW", 1.5, MOMENT, 1)


def _lmdb_put(opened: ExitStack, folder: str) -> Ask:
    from remuda.bench.peers import lmdb_peer

    environment, keys = opened.enter_context(lmdb_peer.create(folder, durable=False)), itertools.count()
    return lambda: lmdb_peer.put(environment, next(keys), STORED)


def _sqlite_put(opened: ExitStack) -> Ask:
    execute, keys = opened.enter_context(closing(sqlite_peer.create())).execute, itertools.count()
    return lambda: execute(REPLACE, (next(keys), *STORED))


def _duckdb_put(opened: ExitStack) -> Ask:
    from remuda.bench.peers import duckdb_peer

    execute, keys = opened.enter_context(duckdb_peer.create()).execute, itertools.count()
    return lambda: execute(REPLACE, (next(keys), "C1", "NEW", 1.5, MOMENT, 1))


def _put_over(setting: Setting) -> Case:
    """Replace rows by themselves: the cases that follow find the same rows."""
    chosen = setting.data.table.take(pa.array(setting.data.keys))
    microseconds = chosen.column("created").cast(pa.int64()).to_pylist()
    rows = [tuple(row.values()) for row in chosen.to_pylist()]
    stored = [(*row[:4], moment, row[5]) for row, moment in zip(rows, microseconds, strict=True)]
    put = setting.peers.remuda.orders.put

    def ask(sqlite: Any) -> Ask:
        return over(stored, lambda row: sqlite.connection.execute(REPLACE, row))

    return Case(
        "put over a row: map.put",
        {REMUDA: over(rows, lambda row: put(row[0], row[1:])), **setting.contenders(["SQLite"], ask)},
        same_answers=False,
    )


def _load(setting: Setting) -> Case:
    table = setting.data.table

    def ours() -> None:
        with remuda_peer.create() as grid:
            grid.load("orders", table)

    def sqlite() -> None:
        connection = sqlite_peer.create()
        sqlite_peer.load(connection, table)
        connection.close()

    return Case(
        "load all rows, 2 indexes",
        {REMUDA: ours, "SQLite": sqlite, "DuckDB": if_installed("DuckDB", lambda: _duckdb_load(table))},
        same_answers=False,
        grows=True,
    )


def _duckdb_load(table: pa.Table) -> Ask:
    from remuda.bench.peers import duckdb_peer

    def load() -> None:
        connection = duckdb_peer.create()
        duckdb_peer.load(connection, table)
        connection.close()

    return load
