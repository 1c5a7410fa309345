"""Write the tables of TPC-DS as Parquet files and its queries as JSON: `python generate.py FOLDER SCALE`.

Runs in an interpreter of its own, with the packages of `tpcds.PACKAGES` on its path: the extension works only with the
DuckDB that it was built for.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import duckdb


def main(folder: Path, scale: float) -> None:
    package = import_module("duckdb_extension_tpcds")
    (extension,) = Path(package.__path__[0]).rglob("*.duckdb_extension")
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"CALL dsdgen(sf = {scale})")
        for (table,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall():
            connection.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT PARQUET)")
        queries = dict(connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall())
    (folder / "queries.json").write_text(json.dumps(queries), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
