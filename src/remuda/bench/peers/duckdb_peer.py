"""DuckDB in memory, with a primary key and both indexes; and in a file, which it compresses, with neither."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from remuda.bench.data import CREATE_TABLE

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.bench.data import Data

INDEXES = (
    "CREATE INDEX orders_customer ON orders (customer)",
    "CREATE INDEX orders_amount ON orders (amount)",
)


def create(path: str | Path = ":memory:") -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(path)
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
        _copy(self.connection, "customers", data.customer_table)

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        return self.connection.execute(sql, parameters).fetchall()

    def arrow(self, sql: str, *parameters: Any) -> Any:
        return self.connection.sql(sql, params=parameters or None).to_arrow_table()

    def close(self) -> None:
        self.connection.close()


class DuckFilePeer(DuckPeer):
    """Scans of a file's compressed columns are the faster ones now and then; indexes would not help them."""

    def __init__(self, data: Data) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="remuda-bench-")
        self.connection = duckdb.connect(str(Path(self._folder.name, "orders.duckdb")))
        _copy(self.connection, "orders", data.table)
        _copy(self.connection, "customers", data.customer_table)
        self.connection.execute("CHECKPOINT")

    def close(self) -> None:
        super().close()
        self._folder.cleanup()


def _copy(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    connection.register("source", table)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM source")
    connection.unregister("source")
