"""SQLite in memory; its module keeps statements prepared. A timestamp is a number of microseconds."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from benchmarks.data import Data

CREATE = """
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY, customer TEXT, status TEXT, amount REAL, created INTEGER, qty INTEGER
    )
"""
INDEXES = (
    "CREATE INDEX orders_customer ON orders (customer)",
    "CREATE INDEX orders_amount ON orders (amount)",
)


def create() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=1_000)
    for statement in (CREATE, *INDEXES):
        connection.execute(statement)
    return connection


def load(connection: sqlite3.Connection, table: pa.Table) -> None:
    columns = [
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for column in table.columns
    ]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", zip(*columns, strict=True))
    connection.execute("COMMIT")


class SqlitePeer:
    def __init__(self, data: Data) -> None:
        self.connection = create()
        load(self.connection, data.table)
        self.connection.execute("ANALYZE")

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        return self.connection.execute(sql, parameters).fetchall()
