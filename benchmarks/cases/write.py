"""One row after the other, and all of them at once."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.case import REMUDA, Case, Setting, over
from benchmarks.peers import duckdb_peer, remuda_peer, sqlite_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOMENT = dt.datetime(2024, 1, 1)
MICROSECONDS = 1_704_067_200_000_000
SINK = "SINK INTO orders VALUES (?, ?, ?, ?, ?, ?)"
REPLACE = "INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?, ?)"


def cases(setting: Setting) -> Iterator[Case]:
    yield Case("put one row: map.put", {REMUDA: _put("put"), "SQLite": _sqlite_put()}, same_answers=False)
    yield Case("put one row: map.set", {REMUDA: _put("set"), "SQLite": _sqlite_put()}, same_answers=False)
    yield Case(
        "put one row: grid.sql", {REMUDA: _sink(), "SQLite": _sqlite_put(), "DuckDB": _duckdb_put()}, same_answers=False
    )
    yield _put_over(setting)
    yield _load(setting)


def _put(method: str) -> Callable[[], object]:
    put, keys = getattr(remuda_peer.create().map("orders"), method), itertools.count()
    value = {"customer": "C1", "status": "NEW", "amount": 1.5, "created": MOMENT, "qty": 1}
    return lambda: put(next(keys), value)


def _sink() -> Callable[[], object]:
    sql, keys = remuda_peer.create().sql, itertools.count()
    return lambda: sql(SINK, next(keys), "C1", "NEW", 1.5, MOMENT, 1)


def _sqlite_put() -> Callable[[], object]:
    execute, keys = sqlite_peer.create().execute, itertools.count()
    return lambda: execute(REPLACE, (next(keys), "C1", "NEW", 1.5, MICROSECONDS, 1))


def _duckdb_put() -> Callable[[], object]:
    execute, keys = duckdb_peer.create().execute, itertools.count()
    return lambda: execute(REPLACE, (next(keys), "C1", "NEW", 1.5, MOMENT, 1))


def _put_over(setting: Setting) -> Case:
    """Rows in the place of those with their keys, all of them as they were: who reads them later sees no difference."""
    chosen = setting.data.table.take(pa.array(setting.data.keys))
    microseconds = chosen.column("created").cast(pa.int64()).to_pylist()
    rows = [tuple(row.values()) for row in chosen.to_pylist()]
    stored = [(*row[:4], moment, row[5]) for row, moment in zip(rows, microseconds, strict=True)]
    put, execute = setting.peers.remuda.orders.put, setting.peers.sqlite.connection.execute
    return Case(
        "put over a row: map.put",
        {
            REMUDA: over(rows, lambda row: put(row[0], row[1:])),
            "SQLite": over(stored, lambda row: execute(REPLACE, row)),
        },
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

    def duck() -> None:
        connection = duckdb_peer.create()
        duckdb_peer.load(connection, table)
        connection.close()

    return Case(
        f"load {table.num_rows:,} rows, 2 indexes", {REMUDA: ours, "SQLite": sqlite, "DuckDB": duck}, same_answers=False
    )
