"""The first second: a new process to its first answer, and a stored map opened for its first row."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.bench.case import REMUDA, Case, Setting, if_installed
from remuda.bench.peers import is_installed, remuda_peer, sqlite_peer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from remuda.bench.case import Ask

SELECT_ONE = {
    REMUDA: "import remuda; remuda.open().sql('SELECT 1').fetchall()",
    "SQLite": "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1').fetchall()",
    "DuckDB": "import duckdb; duckdb.connect().execute('SELECT 1').fetchall()",
    "Polars": "import polars; polars.select(1).rows()",
    "chDB": "import chdb; chdb.query('SELECT 1', 'CSV').bytes()",
}
FIRST_ROW = {
    REMUDA: "import remuda; remuda.open('{path}', read_only=True).map('orders').get({key})",
    "SQLite": "import sqlite3; sqlite3.connect('{path}').execute('SELECT * FROM orders WHERE id = {key}').fetchall()",
    "DuckDB": "import duckdb; "
    "duckdb.connect('{path}', read_only=True).execute('SELECT * FROM orders WHERE id = {key}').fetchall()",
    "LMDB": "import lmdb, msgspec; environment = lmdb.open('{path}', readonly=True); "
    "msgspec.msgpack.decode(environment.begin().get(({key}).to_bytes(8, 'big')))",
}
BARE = "Python alone"


def cases(setting: Setting) -> Iterator[Case]:
    yield _case("new process to SELECT 1", SELECT_ONE)
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as folder:
        paths = {name: Path(folder, f"orders.{name.lower()}") for name in FIRST_ROW}
        _store(setting.data.table, paths)
        key = setting.data.keys[0]
        codes = {name: code.format(path=paths[name], key=key) for name, code in FIRST_ROW.items()}
        yield _case("new process to a row by key, stored", codes)
        yield Case(
            "open a stored map, one row by key",
            {
                REMUDA: lambda: _open_remuda(paths[REMUDA], key),
                "SQLite": lambda: _open_sqlite(paths["SQLite"], key),
                "DuckDB": if_installed("DuckDB", lambda: lambda: _open_duckdb(paths["DuckDB"], key)),
            },
            same_answers=False,
        )


def _case(name: str, codes: dict[str, str]) -> Case:
    return Case(name, {**_processes(codes), BARE: _process("pass")}, same_answers=False, processor=True)


def _processes(codes: dict[str, str]) -> dict[str, Ask | None]:
    return {name: _process(code) if name == REMUDA or is_installed(name) else None for name, code in codes.items()}


def _process(code: str) -> Ask:
    return lambda: new_process("-c", code)


def new_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with bytecode, which an installed program has: the first run writes what is missing."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True, env=environment)


def _store(table: pa.Table, paths: dict[str, Path]) -> None:
    """Write the rows with their indexes, once for each peer that is installed."""
    with remuda_peer.create(str(paths[REMUDA])) as grid:
        grid.load("orders", table)
    sqlite = sqlite_peer.create(paths["SQLite"])
    sqlite_peer.load(sqlite, table)
    sqlite.close()
    if is_installed("DuckDB"):
        from remuda.bench.peers import duckdb_peer

        with duckdb_peer.create(paths["DuckDB"]) as connection:
            duckdb_peer.load(connection, table)
    if is_installed("LMDB"):
        from remuda.bench.peers import lmdb_peer

        environment = lmdb_peer.create(paths["LMDB"], durable=True)
        lmdb_peer.load(environment, table)
        environment.close()


def _open_remuda(path: Path, key: int) -> None:
    with remuda.open(str(path)) as grid:
        assert grid.map("orders").get(key) is not None


def _open_sqlite(path: Path, key: int) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    assert connection.execute("SELECT * FROM orders WHERE id = ?", (key,)).fetchone() is not None
    connection.close()


def _open_duckdb(path: Path, key: int) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT * FROM orders WHERE id = ?", (key,)).fetchone() is not None
