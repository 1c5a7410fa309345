"""Polars: a data frame, asked lazily."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from benchmarks.data import Data


class PolarsPeer:
    def __init__(self, data: Data) -> None:
        frame = pl.from_arrow(data.table)
        assert isinstance(frame, pl.DataFrame)
        self.frame = frame.rechunk()
        customers = pl.from_arrow(data.customer_table)
        assert isinstance(customers, pl.DataFrame)
        self._customers = customers

    def lazy(self) -> Any:
        return self.frame.lazy()

    def customers(self) -> Any:
        return self._customers.lazy()
