"""A key, a value of a HASH index, a range of a SORTED index: few rows, so the fixed cost is what counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from benchmarks.case import REMUDA, Case, Setting, over
from benchmarks.data import MOST_CUSTOMERS

if TYPE_CHECKING:
    from collections.abc import Iterator

BY_KEY = "SELECT id, amount * 2 FROM orders WHERE id = ?"
ROW_BY_KEY = "SELECT * FROM orders WHERE id = ?"
BY_CUSTOMER = "SELECT id, amount FROM orders WHERE customer = ?"
BY_AMOUNT = "SELECT id, amount FROM orders WHERE amount BETWEEN ? AND ?"
QUANTITIES_BY_AMOUNT = "SELECT id, qty FROM orders WHERE amount BETWEEN ? AND ?"
"""Of the two columns before, SQLite finds both in its index, as its row number is the key; here it needs the rows."""

ROWS_BY_AMOUNT = "SELECT * FROM orders WHERE amount BETWEEN ? AND ?"


def cases(setting: Setting) -> Iterator[Case]:
    yield _by_key("key: 2 columns", BY_KEY, setting)
    yield _by_key("key: whole row", ROW_BY_KEY, setting)
    yield _map_get(setting)
    yield _by_customer(setting)
    for size in (1, 10, 100):
        rows = f"{size} row{'s' * (size > 1)}"
        yield _by_amount(f"SORTED range, {rows}", QUANTITIES_BY_AMOUNT, size, setting)
        yield _by_amount(f"SORTED range, {rows}, indexed columns", BY_AMOUNT, size, setting)
    yield _by_amount("SORTED range, 100 whole rows", ROWS_BY_AMOUNT, 100, setting)
    yield _by_amount_to_arrow(10_000, setting)


def _by_key(name: str, sql: str, setting: Setting) -> Case:
    keys, peers = setting.data.keys, setting.peers
    ours, sqlite, duck = peers.remuda.rows, peers.sqlite.rows, peers.duckdb.rows
    return Case(
        f"{name}, grid.sql",
        {
            REMUDA: over(keys, lambda key: ours(sql, key)),
            "SQLite": over(keys, lambda key: sqlite(sql, key)),
            "DuckDB": over(keys, lambda key: duck(sql, key)),
        },
    )


def _map_get(setting: Setting) -> Case:
    keys = setting.data.keys
    get, sqlite = setting.peers.remuda.orders.get, setting.peers.sqlite.rows
    return Case(
        "key: map.get",
        {REMUDA: over(keys, get), "SQLite": over(keys, lambda key: sqlite(ROW_BY_KEY, key))},
        same_answers=False,  # a value, and a list of one row
    )


def _by_customer(setting: Setting) -> Case:
    customers, peers = setting.data.customers, setting.peers
    ours, sqlite, duck = peers.remuda.rows, peers.sqlite.rows, peers.duckdb.rows
    return Case(
        f"HASH index, ~{max(10, setting.data.rows // MOST_CUSTOMERS)} rows",
        {
            REMUDA: over(customers, lambda customer: ours(BY_CUSTOMER, customer)),
            "SQLite": over(customers, lambda customer: sqlite(BY_CUSTOMER, customer)),
            "DuckDB": over(customers, lambda customer: duck(BY_CUSTOMER, customer)),
        },
    )


def _by_amount(name: str, sql: str, size: int, setting: Setting) -> Case:
    ranges, peers = setting.data.amount_ranges(size), setting.peers
    ours, sqlite, duck = peers.remuda.rows, peers.sqlite.rows, peers.duckdb.rows
    return Case(
        name,
        {
            REMUDA: over(ranges, lambda ends: ours(sql, *ends)),
            "SQLite": over(ranges, lambda ends: sqlite(sql, *ends)),
            "DuckDB": over(ranges, lambda ends: duck(sql, *ends)),
        },
    )


def _by_amount_to_arrow(size: int, setting: Setting) -> Case:
    size = min(size, setting.data.rows // 10)
    ranges, peers = setting.data.amount_ranges(size), setting.peers
    ours, duck, frame = peers.remuda.arrow, peers.duckdb.arrow, peers.polars.lazy
    return Case(
        f"SORTED range, {size:,} rows to Arrow",
        {
            REMUDA: over(ranges, lambda ends: ours(BY_AMOUNT, *ends)),
            "DuckDB": over(ranges, lambda ends: duck(BY_AMOUNT, *ends)),
            "Polars": over(
                ranges,
                lambda ends: frame().filter(pl.col("amount").is_between(*ends)).select("id", "amount").collect(),
            ),
        },
    )
