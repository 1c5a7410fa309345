"""Remuda: a SQL engine over partitioned, keyed, indexed maps, embedded in Python and on Apache Spark.

    import remuda

    grid = remuda.open("shop.remuda")
    grid.sql("CREATE TABLE orders (id BIGINT, amount DOUBLE, PRIMARY KEY (id))")
    grid.sql("INSERT INTO orders VALUES (?, ?)", 1, 9.5)
    for row in grid.sql("SELECT id, amount FROM orders WHERE id = ?", 1):
        print(row.id, row["amount"])

The engine, and with it pyarrow and numpy, is imported with the first use of `open` or a class; pyspark with the first
use of Spark.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from remuda.errors import (
    ConstraintError,
    ErrorCode,
    FolderInUseError,
    OutcomeUnknownError,
    RemudaError,
    SqlError,
    StorageError,
)

if sys.platform == "win32":
    raise ImportError(
        "Remuda does not run on Windows: it needs POSIX file locks and directory handles. "
        "Use Linux, macOS or the Windows Subsystem for Linux (WSL)."
    )

if TYPE_CHECKING:
    from remuda import dbapi, spark
    from remuda.grid import Grid, Map, Result, Row, Session
    from remuda.grid import open_grid as open  # noqa: A004  (the name users know from gzip.open and its kin)

__version__ = "0.1.0"

__all__ = [
    "ConstraintError",
    "ErrorCode",
    "FolderInUseError",
    "Grid",
    "Map",
    "OutcomeUnknownError",
    "RemudaError",
    "Result",
    "Row",
    "Session",
    "SqlError",
    "StorageError",
    "__version__",
    "dbapi",
    "open",
    "spark",
]

_LAZY = {
    "open": ("remuda.grid", "open_grid"),
    "Grid": ("remuda.grid", "Grid"),
    "Map": ("remuda.grid", "Map"),
    "Result": ("remuda.grid", "Result"),
    "Row": ("remuda.grid", "Row"),
    "Session": ("remuda.grid", "Session"),
    "dbapi": ("remuda.dbapi", None),
    "spark": ("remuda.spark", None),
}
"""Where a public name is found when it is first asked for: a module, and what it is called there."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'remuda' has no attribute {name!r}")
    module_name, attribute = _LAZY[name]
    module = import_module(module_name)
    found = module if attribute is None else getattr(module, attribute)
    globals()[name] = found
    return found


def load_ipython_extension(shell: Any) -> None:
    """Add `%sql`, `%%sql` and `%remuda` to IPython or Jupyter: `%load_ext remuda` calls this."""
    import_module("remuda.notebook").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Close the grid that `%remuda` or `%sql` has opened: `%unload_ext remuda` calls this."""
    import_module("remuda.notebook").unload(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
