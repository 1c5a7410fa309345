"""Rows that are counted, not stored: a long series, and one for each of many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from benchmarks.case import REMUDA, Case, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "SELECT SUM(n) FROM generate_series(1, 10000000) AS s(n)"
MANY = "SELECT COUNT(*), SUM(n) FROM generate_series(1, 2000) AS s(i), generate_series(1, i) AS t(n)"


def cases(setting: Setting) -> Iterator[Case]:
    peers = setting.peers
    yield Case(
        "sum of a series of 10M",
        {
            REMUDA: lambda: peers.remuda.arrow(LONG),
            "DuckDB": lambda: peers.duckdb.arrow(LONG),
            "Polars": lambda: pl.select(pl.int_range(1, 10_000_001).sum()),
        },
    )
    yield Case(
        "2,000 series, 2M rows in all",
        {REMUDA: lambda: peers.remuda.arrow(MANY), "DuckDB": lambda: peers.duckdb.arrow(MANY)},
    )
