"""Whole-map work: filters, sums, groups, joins, windows, sorts, the top ten; each also over rows with NULLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench.case import REMUDA, Case, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from remuda.bench.case import Ask

FILTER = "SELECT id, amount FROM orders WHERE qty < {percent}"
FILTER_SUM = "SELECT COUNT(*), SUM(amount) FROM orders WHERE qty < 50"
BY_STATUS = "SELECT status, COUNT(*), SUM(amount) FROM orders GROUP BY status"
BY_CUSTOMER = "SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer"
PATTERN = """
    SELECT SUM(CASE WHEN status = 'PAID' THEN amount ELSE 0 END), COUNT(*) FROM orders WHERE customer LIKE '%77%'
"""
JOIN = """
    SELECT region, COUNT(*), SUM(amount) FROM orders JOIN customers ON orders.customer = customers.customer
    GROUP BY region
"""
SORT = "SELECT id, created FROM orders WHERE qty < 10 ORDER BY created"
WINDOW = """
    SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY created) AS number FROM orders WHERE qty < 10
"""
TOP_INDEXED = "SELECT * FROM orders ORDER BY amount DESC NULLS LAST LIMIT 10"
TOP = "SELECT * FROM orders ORDER BY created DESC NULLS LAST LIMIT 10"

COLUMNAR = ("DuckDB", "DuckDB file", "chDB")
"""The peers that answer in Arrow."""


def cases(setting: Setting) -> Iterator[Case]:
    for percent in (1, 50):
        yield _filter(percent, setting)
    yield _to_arrow(
        "filter 50 %, sum and count", FILTER_SUM, setting, lambda peer: peer.filtered_sum(50), by_rows=True, grows=True
    )
    yield _to_arrow(
        "group by status (5)", BY_STATUS, setting, lambda peer: peer.grouped("status"), by_rows=True, grows=True
    )
    yield _to_arrow("group by customer (100k)", BY_CUSTOMER, setting, lambda peer: peer.grouped("customer"), grows=True)
    yield _to_arrow("LIKE and CASE, sum", PATTERN, setting, lambda peer: peer.pattern())
    yield _to_arrow("join with customers (100k), grouped", JOIN, setting, lambda peer: peer.joined(), grows=True)
    yield _to_arrow("sort 10 %, 2 columns to Arrow", SORT, setting, lambda peer: peer.sorted(10))
    yield _to_arrow("window over 10 %", WINDOW, setting, lambda peer: peer.numbered(10))
    yield _top("top 10 by amount (SORTED index)", TOP_INDEXED, "amount", setting)
    yield _top("top 10 by created (no index)", TOP, "created", setting, grows=True)


def _to_arrow(
    name: str,
    sql: str,
    setting: Setting,
    frame: Callable[[Any], Any],
    *,
    by_rows: bool = False,
    grows: bool = False,
) -> Case:
    """Read the answer as Arrow; `by_rows` compares a small answer with engines that answer in Python objects."""
    return Case(
        name,
        {
            REMUDA: _arrow_of(setting.peers.remuda, sql),
            **setting.contenders(["SQLite"] if by_rows else [], lambda peer: lambda: peer.rows(sql)),
            **setting.contenders(COLUMNAR[:2], lambda peer: _arrow_of(peer, sql)),
            **setting.contenders(["Polars"], lambda peer: lambda: frame(peer).collect()),
            **setting.contenders(COLUMNAR[2:], lambda peer: _arrow_of(peer, sql)),
        },
        grows=grows,
    )


def _filter(percent: int, setting: Setting) -> Case:
    sql = FILTER.format(percent=percent)
    return _to_arrow(f"filter {percent} %, 2 columns to Arrow", sql, setting, lambda peer: peer.filtered(percent))


def _arrow_of(peer: Any, sql: str) -> Ask:
    return lambda: peer.arrow(sql)


def _top(name: str, sql: str, column: str, setting: Setting, *, grows: bool = False) -> Case:
    def ask(peer: Any) -> Ask:
        return lambda: peer.rows(sql)

    return Case(
        name,
        {
            REMUDA: ask(setting.peers.remuda),
            **setting.contenders(["SQLite", "DuckDB", "DuckDB file"], ask),
            **setting.contenders(["Polars"], lambda peer: lambda: peer.top(10, column).collect()),
            **setting.contenders(["chDB"], ask),
        },
        grows=grows,
    )
