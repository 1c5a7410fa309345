"""Remuda: a SQL engine over partitioned, keyed, indexed maps, embedded in Python and on Apache Spark.

import remuda

grid = remuda.open("shop.remuda")
grid.sql("CREATE TABLE orders (id BIGINT, amount DOUBLE, PRIMARY KEY (id))")
grid.sql("INSERT INTO orders VALUES (?, ?)", 1, 9.5)
for row in grid.sql("SELECT id, amount FROM orders WHERE id = ?", 1):
    print(row.id, row["amount"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from remuda.errors import ErrorCode, RemudaError, SqlError, StorageError
from remuda.grid import Grid, Map, Result
from remuda.grid import open_grid as open  # noqa: A004  (the name users know from gzip.open and its kin)

if TYPE_CHECKING:
    from remuda import spark

__version__ = "0.1.0"

__all__ = [
    "ErrorCode",
    "Grid",
    "Map",
    "RemudaError",
    "Result",
    "SqlError",
    "StorageError",
    "__version__",
    "open",
    "spark",
]

_LAZY = frozenset({"spark"})
"""Sub-packages that are imported when first named: embedded use needs none of them."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"remuda.{name}")
    raise AttributeError(f"module 'remuda' has no attribute {name!r}")
