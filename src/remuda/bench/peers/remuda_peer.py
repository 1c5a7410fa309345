"""Remuda in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import remuda
from remuda.bench.data import CREATE_CUSTOMERS, CREATE_TABLE, INDEXES

if TYPE_CHECKING:
    from remuda.bench.data import Data


def create(path: str | None = None, **options: Any) -> Any:
    """Create a grid with the empty, indexed map."""
    grid = remuda.open(path, **options)
    for statement in (CREATE_TABLE, *INDEXES):
        grid.sql(statement)
    return grid


class RemudaPeer:
    def __init__(self, data: Data) -> None:
        self.grid = create()
        self.grid.load("orders", data.table)
        self.grid.sql(CREATE_CUSTOMERS)
        self.grid.load("customers", data.customer_table)
        self.orders = self.grid.map("orders")

    def rows(self, sql: str, *parameters: Any) -> Any:
        return self.grid.sql(sql, *parameters).fetchall()

    def arrow(self, sql: str, *parameters: Any) -> Any:
        return self.grid.sql(sql, *parameters).to_arrow()

    def close(self) -> None:
        self.grid.close()
