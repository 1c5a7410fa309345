"""DuckDB in memory, with a primary key and both indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from benchmarks.data import CREATE_TABLE

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.data import Data

INDEXES = (
    "CREATE INDEX orders_customer ON orders (customer)",
    "CREATE INDEX orders_amount ON orders (amount)",
)


def create() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute(CREATE_TABLE)
    return connection


def load(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> None:
    """Indexes last: building them row by row is slower still."""
    connection.register("source", table)
    connection.execute("INSERT INTO orders SELECT * FROM source")
    connection.unregister("source")
    for statement in INDEXES:
        connection.execute(statement)


class DuckPeer:
    def __init__(self, data: Data) -> None:
        self.connection = create()
        load(self.connection, data.table)

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        return self.connection.execute(sql, parameters).fetchall()

    def arrow(self, sql: str, *parameters: Any) -> Any:
        return self.connection.sql(sql, params=parameters or None).to_arrow_table()
