"""Polars: a data frame, asked lazily."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from remuda.bench.data import Data

COUNT_AND_SUM = (pl.len().alias("count"), pl.col("amount").sum())


class PolarsPeer:
    """Each method is the form of a case's SQL; the caller collects the answer."""

    def __init__(self, data: Data) -> None:
        self.frame: Any = pl.from_arrow(data.table)
        self.frame = self.frame.rechunk()
        self._customers: Any = pl.from_arrow(data.customer_table)

    def between(self, column: str, low: float, high: float) -> Any:
        return self.frame.lazy().filter(pl.col(column).is_between(low, high))

    def filtered(self, below: int) -> Any:
        return self._below(below).select("id", "amount")

    def filtered_sum(self, below: int) -> Any:
        return self._below(below).select(*COUNT_AND_SUM)

    def grouped(self, column: str) -> Any:
        return self.frame.lazy().group_by(column).agg(*COUNT_AND_SUM)

    def joined(self) -> Any:
        joined = self.frame.lazy().join(self._customers.lazy(), on="customer")
        return joined.group_by("region").agg(*COUNT_AND_SUM)

    def numbered(self, below: int) -> Any:
        return self._below(below).select("id", pl.col("created").rank("ordinal").over("customer"))

    def pattern(self) -> Any:
        paid = pl.when(pl.col("status") == "PAID").then(pl.col("amount")).otherwise(0)
        found = self.frame.lazy().filter(pl.col("customer").str.contains("77", literal=True))
        return found.select(paid.sum(), pl.len().alias("count"))

    def series(self, last: int) -> Any:
        return pl.select(pl.int_range(1, last + 1).sum())

    def sorted(self, below: int) -> Any:
        return self._below(below).select("id", "created").sort("created")

    def top(self, count: int, column: str) -> Any:
        return self.frame.lazy().top_k(count, by=column)

    def close(self) -> None:
        del self.frame, self._customers

    def _below(self, below: int) -> Any:
        return self.frame.lazy().filter(pl.col("qty") < below)
