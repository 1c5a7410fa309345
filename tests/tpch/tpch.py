"""The tables and queries of TPC-H, and its data, which `tpchgen-cli` makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
QUERIES = {int(path.stem[1:]): path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("q*.sql"))}
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def generate(folder: Path, scale: float) -> None:
    """Writes one Parquet file for each table."""
    program = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(program), "parquet", "-s", str(scale), f"--output-dir={folder}"]
    subprocess.run(command, check=True, capture_output=True)


def create_tables(grid: Any) -> None:
    for statement in (FOLDER / "tables.sql").read_text(encoding="utf-8").split(";"):
        if statement.strip():
            grid.sql(statement)


def load(grid: Any, folder: Path) -> None:
    for table in TABLES:
        grid.load(table, str(folder / f"{table}.parquet"))
