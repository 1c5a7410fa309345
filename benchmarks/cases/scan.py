"""Whole-map work: filters, sums, groups, joins, windows, sorts, the top ten."""

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
JOIN = """
    SELECT region, COUNT(*), SUM(amount) FROM orders JOIN customers ON orders.customer = customers.customer
    GROUP BY region
"""
SORT = "SELECT id, created FROM orders WHERE qty < 10 ORDER BY created"
WINDOW = """
    SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY created) AS number FROM orders WHERE qty < 10
"""
TOP_INDEXED = "SELECT * FROM orders ORDER BY amount DESC LIMIT 10"
TOP = "SELECT * FROM orders ORDER BY created DESC LIMIT 10"


def cases(setting: Setting) -> Iterator[Case]:
    lazy = setting.peers.polars.lazy
    count_and_sum = (pl.len().alias("count"), pl.col("amount").sum())
    few = pl.col("qty") < 10
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
    yield _to_arrow(
        "join with customers (100k), grouped",
        JOIN,
        setting,
        lambda: lazy().join(setting.peers.polars.customers(), on="customer").group_by("region").agg(*count_and_sum),
    )
    yield _to_arrow(
        "sort 10 %, 2 columns to Arrow",
        SORT,
        setting,
        lambda: lazy().filter(few).select("id", "created").sort("created"),
    )
    numbered = pl.col("created").rank("ordinal").over("customer")
    yield _to_arrow("window over 10 %", WINDOW, setting, lambda: lazy().filter(few).select("id", numbered))
    yield _top("top 10 by amount (SORTED index)", TOP_INDEXED, "amount", setting)
    yield _top("top 10 by created (no index)", TOP, "created", setting)


def _filter(percent: int, setting: Setting) -> Case:
    peers = setting.peers
    return Case(
        f"filter {percent} %, 2 columns to Arrow",
        {
            REMUDA: lambda: peers.remuda.arrow(FILTER, percent),
            "DuckDB": lambda: peers.duckdb.arrow(FILTER, percent),
            "DuckDB file": lambda: peers.duckdb_file.arrow(FILTER, percent),
            "Polars": lambda: peers.polars.lazy().filter(pl.col("qty") < percent).select("id", "amount").collect(),
        },
    )


def _to_arrow(name: str, sql: str, setting: Setting, frame: Callable[[], Any]) -> Case:
    peers = setting.peers
    return Case(
        name,
        {
            REMUDA: lambda: peers.remuda.arrow(sql),
            "DuckDB": lambda: peers.duckdb.arrow(sql),
            "DuckDB file": lambda: peers.duckdb_file.arrow(sql),
            "Polars": lambda: frame().collect(),
        },
    )


def _top(name: str, sql: str, column: str, setting: Setting) -> Case:
    peers = setting.peers
    return Case(
        name,
        {
            REMUDA: lambda: peers.remuda.rows(sql),
            "SQLite": lambda: peers.sqlite.rows(sql),
            "DuckDB": lambda: peers.duckdb.rows(sql),
            "DuckDB file": lambda: peers.duckdb_file.rows(sql),
            "Polars": lambda: peers.polars.lazy().top_k(10, by=column).collect(),
        },
    )
