"""How long planning takes, and how much of the memo it fills: lookups, TPC-H, large joins, large filters.

The data hardly matters for it; TPC-H's tables are empty here but for their statistics of a scale of 0.01.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import remuda
from remuda import sql
from remuda.optimizer.optimize import FAST_PATH
from remuda.presentation.durations import duration
from tests.tpch.tpch import QUERIES, create_tables, generate, load

REPETITIONS = 5


def show() -> None:
    print(f"\nplanning{'':<27} {'time':>10} {'groups':>8} {'expressions':>12} {'rules fired':>12}")
    with tempfile.TemporaryDirectory() as folder, remuda.open() as grid:
        generate(Path(folder), 0.01)
        create_tables(grid)
        load(grid, Path(folder))
        grid.sql("CREATE INDEX orders_customer ON orders (o_custkey) TYPE HASH")
        _line("point query", [_measure(grid, "SELECT o_totalprice FROM orders WHERE o_orderkey = ?")])
        _line("lookup by index", [_measure(grid, "SELECT o_totalprice FROM orders WHERE o_custkey = ?")])
        found = {number: _measure(grid, text) for number, text in QUERIES.items()}
        _line("TPC-H Q3", [found[3]])
        _line("TPC-H Q8, joins 8", [found[8]])
        _line("TPC-H, all 22", list(found.values()))
        for name, text in _large().items():
            _line(name, [_measure(grid, text)])


def _large() -> dict[str, str]:
    star = " AND ".join(f"l_suppkey = s{place}.s_suppkey" for place in range(7))
    relations = ", ".join(f"supplier s{place}" for place in range(7))
    return {
        "8 relations on one key": f"SELECT COUNT(*) FROM lineitem, {relations} WHERE {star}",
        "1,000 conjuncts": f"SELECT o_orderkey FROM orders WHERE {_repeated(1_000, ' AND ', 'o_custkey <> {}')}",
        "5,000 values in a list": f"SELECT o_orderkey FROM orders WHERE o_custkey IN ({_repeated(5_000, ', ', '{}')})",
    }


def _repeated(count: int, separator: str, template: str) -> str:
    return separator.join(template.format(number) for number in range(count))


Measured = tuple[float, int, int, Counter[str]]


def _measure(grid: Any, text: str) -> Measured:
    """The least of several times from the text to the plan, and what the memo then holds."""
    best = float("inf")
    optimized: Any = None
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        query = sql.parse(text)
        assert isinstance(query, sql.Query)
        planner = grid.default_session.planner()
        bound = sql.bind(query, planner.catalog, planner.search_path)
        optimized = planner.optimize(bound)
        planner.finish(text, bound, optimized)
        best = min(best, time.perf_counter() - started)
    memo = optimized.memo
    return best, len(memo.groups), memo.expression_count, Counter(optimized.fired)


def _line(name: str, measured: list[Measured]) -> None:
    seconds = sum(each[0] for each in measured)
    groups, expressions = sum(each[1] for each in measured), sum(each[2] for each in measured)
    rules = sum((each[3] for each in measured), Counter[str]())
    note = "   without a memo" if FAST_PATH in rules else ""
    print(
        f"  {name:<33} {duration(seconds):>10} {groups:>8,} {expressions:>12,} {rules.total():>12,}{note}", flush=True
    )
