"""Whole-map work: filters, sums, groups, the top ten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from benchmarks.case import REMUDA, Case, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

FILTER = "SELECT id, amount FROM orders WHERE qty < ?"
FILTER_SUM = "SELECT COUNT(*), SUM(amount) FROM orders WHERE qty < 50"
BY_STATUS = "SELECT status, COUNT(*), SUM(amount) FROM orders GROUP BY status"
BY_CUSTOMER = "SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer"
TOP_INDEXED = "SELECT * FROM orders ORDER BY amount DESC LIMIT 10"
TOP = "SELECT * FROM orders ORDER BY created DESC LIMIT 10"


def cases(setting: Setting) -> Iterator[Case]:
    lazy = setting.peers.polars.lazy
    count_and_sum = (pl.len().alias("count"), pl.col("amount").sum())
    for percent in (1, 50):
        yield _filter(percent, setting)
    yield _to_arrow(
        "filter 50 %, sum and count",
        FILTER_SUM,
        setting,
        lambda: lazy().filter(pl.col("qty") < 50).select(*count_and_sum),
    )
    yield _to_arrow("group by status (5)", BY_STATUS, setting, lambda: lazy().group_by("status").agg(*count_and_sum))
    yield _to_arrow(
        "group by customer (100k)", BY_CUSTOMER, setting, lambda: lazy().group_by("customer").agg(*count_and_sum)
    )
    yield _top("top 10 by amount (SORTED index)", TOP_INDEXED, "amount", setting)
    yield _top("top 10 by created (no index)", TOP, "created", setting)


def _filter(percent: int, setting: Setting) -> Case:
    ours, duck, lazy = setting.peers.remuda.arrow, setting.peers.duckdb.arrow, setting.peers.polars.lazy
    return Case(
        f"filter {percent} %, 2 columns to Arrow",
        {
            REMUDA: lambda: ours(FILTER, percent),
            "DuckDB": lambda: duck(FILTER, percent),
            "Polars": lambda: lazy().filter(pl.col("qty") < percent).select("id", "amount").collect(),
        },
    )


def _to_arrow(name: str, sql: str, setting: Setting, frame: Callable[[], Any]) -> Case:
    ours, duck = setting.peers.remuda.arrow, setting.peers.duckdb.arrow
    return Case(name, {REMUDA: lambda: ours(sql), "DuckDB": lambda: duck(sql), "Polars": lambda: frame().collect()})


def _top(name: str, sql: str, column: str, setting: Setting) -> Case:
    ours, duck, sqlite = setting.peers.remuda.rows, setting.peers.duckdb.rows, setting.peers.sqlite.rows
    lazy = setting.peers.polars.lazy
    return Case(
        name,
        {
            REMUDA: lambda: ours(sql),
            "SQLite": lambda: sqlite(sql),
            "DuckDB": lambda: duck(sql),
            "Polars": lambda: lazy().top_k(10, by=column).collect(),
        },
    )
