"""A key, a value of a HASH index, a range of a SORTED index: few rows, so the fixed cost is what counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench.case import REMUDA, Case, Setting, over
from remuda.bench.data import MOST_CUSTOMERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from remuda.bench.case import Ask

BY_KEY = "SELECT id, amount * 2 FROM orders WHERE id = ?"
ROW_BY_KEY = "SELECT * FROM orders WHERE id = ?"
BY_CUSTOMER = "SELECT id, amount FROM orders WHERE customer = ?"
BY_AMOUNT = "SELECT id, amount FROM orders WHERE amount BETWEEN ? AND ?"
QUANTITIES_BY_AMOUNT = "SELECT id, qty FROM orders WHERE amount BETWEEN ? AND ?"
"""Of the two columns before, SQLite finds both in its index, as its row number is the key; here it needs the rows."""

KEYS_AT_ONCE = 1_000

ROWS_BY_AMOUNT = "SELECT * FROM orders WHERE amount BETWEEN ? AND ?"
INDEXED = ("SQLite", "DuckDB")
"""The peers that have an index on other columns than the key."""


def cases(setting: Setting) -> Iterator[Case]:
    yield _map_get(setting)
    yield _map_get_all(setting)
    yield _by_key("key: 2 columns, grid.sql", BY_KEY, setting, grows=True)
    yield _by_key("key: whole row, grid.sql", ROW_BY_KEY, setting)
    yield _rows(
        f"HASH index, ~{max(10, setting.data.rows // MOST_CUSTOMERS)} rows",
        BY_CUSTOMER,
        [(customer,) for customer in setting.data.customers],
        (*INDEXED, "chDB"),
        setting,
    )
    for size in (1, 10, 100):
        ranges, rows = setting.data.amount_ranges(size), f"{size} row{'s' * (size > 1)}"
        yield _rows(f"SORTED range, {rows}", QUANTITIES_BY_AMOUNT, ranges, INDEXED, setting, grows=size == 100)
        yield _rows(f"SORTED range, {rows}, indexed columns", BY_AMOUNT, ranges, INDEXED, setting)
    yield _rows("SORTED range, 100 whole rows", ROWS_BY_AMOUNT, setting.data.amount_ranges(100), INDEXED, setting)
    yield _by_amount_to_arrow(10_000, setting)


def _rows(
    name: str, sql: str, values: Sequence[Any], peers: Sequence[str], setting: Setting, *, grows: bool = False
) -> Case:
    def ask(peer: Any) -> Ask:
        rows = peer.rows
        return over(values, lambda given: rows(sql, *given))

    return Case(name, {REMUDA: ask(setting.peers.remuda), **setting.contenders(peers, ask)}, grows=grows)


def _by_key(name: str, sql: str, setting: Setting, *, grows: bool = False) -> Case:
    return _rows(name, sql, [(key,) for key in setting.data.keys], (*INDEXED, "chDB"), setting, grows=grows)


def _map_get(setting: Setting) -> Case:
    keys = setting.data.keys
    return Case(
        "key: map.get",
        {
            REMUDA: over(keys, setting.peers.remuda.orders.get),
            **setting.contenders(["LMDB"], lambda lmdb: over(keys, lmdb.get)),
            **setting.contenders(["SQLite"], lambda sqlite: over(keys, lambda key: sqlite.rows(ROW_BY_KEY, key))),
        },
        same_answers=False,  # a value, and a list of one row
        grows=True,
    )


def _map_get_all(setting: Setting) -> Case:
    """Look up many keys at once, beside as many calls for one key."""
    keys, orders = setting.data.keys, setting.peers.remuda.orders
    get, get_all = orders.get, orders.get_all
    batches = [keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE)]
    return Case(
        f"{KEYS_AT_ONCE:,} keys: get_all",
        {
            REMUDA: over(batches, get_all),
            "Remuda, map.get one by one": over(batches, lambda some: {key: get(key) for key in some}),
        },
    )


def _by_amount_to_arrow(size: int, setting: Setting) -> Case:
    size = min(size, setting.data.rows // 10)
    ranges = setting.data.amount_ranges(size)

    def ask(peer: Any) -> Ask:
        return over(ranges, lambda ends: peer.arrow(BY_AMOUNT, *ends))

    def ask_polars(polars: Any) -> Ask:
        return over(ranges, lambda ends: polars.between("amount", *ends).select("id", "amount").collect())

    return Case(
        f"SORTED range, {size:,} rows to Arrow",
        {
            REMUDA: ask(setting.peers.remuda),
            **setting.contenders(["DuckDB"], ask),
            **setting.contenders(["Polars"], ask_polars),
            **setting.contenders(["chDB"], ask),
        },
    )
