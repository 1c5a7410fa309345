"""SQLite in memory; its module keeps statements prepared. A timestamp is a number of microseconds."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from remuda.bench.data import plain

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from remuda.bench.data import Data

CREATE = """
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY, customer TEXT, status TEXT, amount REAL, created INTEGER, qty INTEGER
    )
"""
INDEXES = (
    "CREATE INDEX orders_customer ON orders (customer)",
    "CREATE INDEX orders_amount ON orders (amount)",
)
BATCH_ROWS = 1 << 16


def create(path: str | Path = ":memory:") -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=1_000)
    for statement in (CREATE, *INDEXES):
        connection.execute(statement)
    return connection


def load(connection: sqlite3.Connection, table: pa.Table) -> None:
    connection.execute("BEGIN")
    for batch in table.to_batches(BATCH_ROWS):
        columns = [plain(column).to_pylist() for column in batch.columns]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", zip(*columns, strict=True))
    connection.execute("COMMIT")


class SqlitePeer:
    def __init__(self, data: Data) -> None:
        self.connection = create()
        load(self.connection, data.table)
        self.connection.execute("ANALYZE")

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        return self.connection.execute(sql, parameters).fetchall()

    def close(self) -> None:
        self.connection.close()
