"""First rows of an order: CPU time of `ORDER BY … LIMIT` over a million rows, by the index and by a sort of the map.

    python -m benchmarks.row_goals

Each query runs as the planner has it, and with the index of the order ignored (`amount + 0`). The figure is the least
processor time of several runs, in milliseconds.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import remuda

ROWS = 1_000_000
QUERIES = {
    "no filter": "",
    "LIKE": "WHERE note LIKE '%12%'",
    "LIKE, one row": "WHERE note LIKE '%123456%'",
    "LIKE, no row": "WHERE note LIKE '%nothing%'",
    "frequent value": "WHERE region = 'EMEA'",
    "60 % range": "WHERE qty BETWEEN 20 AND 79",
    "0.01 % range": "WHERE qty = 7 AND id % 100 = 3",
}
TAILS = {"LIMIT 10": "LIMIT 10", "OFFSET": "LIMIT 10 OFFSET 1000"}


def main() -> None:
    grid = remuda.open()
    grid.sql(
        "CREATE TABLE t (id BIGINT, amount DOUBLE, region VARCHAR, qty BIGINT, note VARCHAR, cust BIGINT,"
        " a BIGINT, b BIGINT, c BIGINT, d BIGINT, PRIMARY KEY (id))"
    )
    grid.sql("CREATE INDEX t_amount ON t (amount) TYPE SORTED")
    grid.sql("CREATE TABLE c (id BIGINT, name VARCHAR, PRIMARY KEY (id))")
    grid.load("t", _rows())
    grid.load("c", pa.table({"id": np.arange(1000), "name": [f"C{number}" for number in range(1000)]}))
    for name, where in QUERIES.items():
        for tail_name, tail in TAILS.items():
            _report(grid, f"{name}, {tail_name}", f"SELECT * FROM t {where} ORDER BY amount{{}} DESC {tail}")
    joined = "SELECT t.id, amount, name FROM t JOIN c ON cust = c.id"
    _report(grid, "join", f"{joined} ORDER BY amount{{}} DESC LIMIT 10")
    _report(grid, "join, filtered", f"{joined} WHERE region = 'EMEA' ORDER BY amount{{}} DESC LIMIT 10")
    _report(grid, "left join", f"{joined.replace('JOIN', 'LEFT JOIN')} ORDER BY amount{{}} DESC LIMIT 10")
    either = "(SELECT id, amount FROM t WHERE qty < 50 UNION ALL SELECT id, amount FROM t WHERE qty >= 50)"
    _report(grid, "union", f"SELECT id, amount FROM {either} ORDER BY amount{{}} DESC LIMIT 10")


def _rows() -> pa.Table:
    random = np.random.default_rng(7)
    ids = np.arange(ROWS)
    regions = pa.array(["EMEA", "APAC", "AMER"]).take(pa.array(random.choice(3, ROWS, p=[0.6, 0.1, 0.3])))
    notes = pa.array([f"note {number} of the order" for number in random.permutation(ROWS)])
    return pa.table(
        {
            "id": ids,
            "amount": random.random(ROWS) * 1000,
            "region": regions,
            "qty": random.integers(0, 100, ROWS),
            "note": notes,
            "cust": random.integers(0, 1000, ROWS),
            **{name: random.integers(0, 1000, ROWS) for name in "abcd"},
        }
    )


def _report(grid: remuda.Grid, name: str, text: str) -> None:
    chosen, sorted_ = (_least(grid, text.format(term)) for term in ("", " + 0"))
    print(f"{name:30} {chosen * 1e3:10.2f} ms   sorted {sorted_ * 1e3:10.2f} ms", flush=True)


def _least(grid: remuda.Grid, text: str, runs: int = 7) -> float:
    found = []
    for _ in range(runs):
        before = time.process_time()
        grid.sql(text).fetchall()
        found.append(time.process_time() - before)
    return min(found)


if __name__ == "__main__":
    main()
