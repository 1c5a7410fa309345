"""What the demonstration asks, and how it reads the access path out of EXPLAIN."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

# The orders of the demonstration: the same rows in each run.


# How the demonstration measures: the best of several runs, more of them where they are short.


T = TypeVar("T")

LONG_ENOUGH = 0.3
"""Seconds after which a fast function has been run often enough."""
MOST_RUNS = 2_000


def best_of(function: Callable[[], object], runs: int) -> float:
    """Return the best time of at least `runs` runs, and of more until time is up."""
    best = float("inf")
    begun = time.perf_counter()
    done = 0
    while done < runs or (done < MOST_RUNS and time.perf_counter() - begun < LONG_ENOUGH):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
        done += 1
    return best


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a single run, and its seconds: for steps that cannot be repeated."""
    started = time.perf_counter()
    result = function()
    return result, time.perf_counter() - started


STATUSES = ["NEW", "OPEN", "PAID", "SENT", "DONE"]
ROWS_PER_CUSTOMER = 10
DEAREST = 1_000.0
SECONDS_OF_A_YEAR = 366 * 86_400

DEFINITION = (
    """CREATE TABLE orders (
        id BIGINT, customer VARCHAR, status VARCHAR, amount DOUBLE, created TIMESTAMP, PRIMARY KEY (id)
    )""",
    "CREATE INDEX orders_amount ON orders (amount) TYPE SORTED",
    "CREATE INDEX orders_customer ON orders (customer) TYPE HASH",
)


def orders(rows: int) -> pa.Table:
    """Make orders: about ten for each customer, amounts spread over 0 to 1,000, one order in 50 without a status."""
    random = np.random.default_rng(7)
    customers = max(1, rows // ROWS_PER_CUSTOMER)
    customer = pc.binary_join_element_wise("C", pc.cast(random.integers(0, customers, rows), pa.string()), "")
    number = np.arange(rows, dtype=np.int64)
    status = pa.array(number % len(STATUSES), mask=number % 50 == 7)
    created = np.datetime64("2024-01-01", "us") + random.integers(0, SECONDS_OF_A_YEAR, rows).astype("timedelta64[s]")
    return pa.table(
        {
            "id": pa.array(number),
            "customer": customer,
            "status": pa.array(STATUSES).take(status),
            "amount": pa.array(np.round(random.random(rows) * DEAREST, 2)),
            "created": pa.array(created),
        }
    )


@dataclass(frozen=True, slots=True)
class Question:
    sql: str
    parameters: tuple[Any, ...] = ()

    @property
    def with_literals(self) -> str:
        """The same text for an engine that takes no parameters here.

        >>> Question("SELECT * FROM t WHERE a = ? AND b > ?", ("x", 2)).with_literals
        "SELECT * FROM t WHERE a = 'x' AND b > 2"
        """
        values = iter(self.parameters)
        return re.sub(r"\?", lambda _: repr(next(values)), self.sql)


def questions(rows: int) -> tuple[Question, ...]:
    """Return the questions; their parameters give answers of about the same size for any number of rows."""
    key = rows * 2 // 25 * 5
    customer = f"C{rows // ROWS_PER_CUSTOMER // 3}"
    low = DEAREST / 2
    return (
        Question("SELECT id, amount * 2 FROM orders WHERE id = ?", (key,)),
        Question("SELECT id, amount FROM orders WHERE customer = ? AND amount > 10", (customer,)),
        Question(
            "SELECT * FROM orders WHERE amount BETWEEN ? AND ? AND status IS NOT NULL",
            (low, low + DEAREST * 100 / rows),
        ),
        Question("SELECT * FROM orders WHERE id IN (?, ?, ?) AND status = 'NEW'", (key, key + 1, key + 2)),
        Question("SELECT status, COUNT(*), SUM(amount) FROM orders GROUP BY status"),
        Question("SELECT * FROM orders ORDER BY amount DESC LIMIT 10"),
        Question("SELECT COUNT(*), AVG(amount) FROM orders WHERE amount > ?", (DEAREST / 2,)),
        Question("SELECT o.id FROM orders k JOIN orders o ON o.customer = k.customer WHERE k.id = ?", (key,)),
        Question("SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)"),
    )


def changes(rows: int) -> tuple[Question, ...]:
    return (
        Question("UPDATE orders SET status = 'DONE' WHERE id = ?", (rows // 3,)),
        Question("DELETE FROM orders WHERE amount < ?", (DEAREST * 50 / rows,)),
    )


def access_path(explained: str) -> str:
    """Return the access path in a few words, from EXPLAIN's lines.

    >>> access_path("Root\\n  KeyLookup orders [ROOT]  rows≈1\\n      partitionedBy=[id]   partitions: 1 of 271")
    'key lookup, 1 of 271 partitions'
    >>> access_path("Root\\n  IndexScan orders using orders_customer (HASH) [ROOT]\\n      index: customer = ?0")
    'HASH index on customer'
    >>> access_path("Root\\n  IndexScan t using i (SORTED)\\n    index: a > ?0\\n    access: direct scan, 9 entries")
    'scan'
    >>> access_path("Root\\n  TopN [ROOT]\\n    MapScan orders [ROOT]\\n        columns: id")
    'scan, top-N'
    >>> access_path("Root\\n  LookupJoin INNER t by t_name (HASH) [ROOT]\\n    KeyLookup t\\n      partitions: 1 of 9")
    'key lookup, 1 of 9 partitions, lookup join'
    """
    text = re.sub(r"\s+", " ", explained)
    finish = ", lookup join" if "LookupJoin" in text else ", join" if "Join " in text else ""
    finish += ", grouped" if "HashAggregate" in text else ", top-N" if "TopN" in text else ""
    if "KeyLookup" in text:
        touched = re.search(r"KeyLookup.*? partitions: (\d+ of \d+)", text)
        return f"key lookup{f', {touched[1]} partitions' if touched else ''}{finish}"
    index = re.search(r"IndexScan \S+ using (\S+) \((HASH|SORTED)(?:, (\w+))?\)(?:.*? index: (\w+))?", text)
    if index is not None and "access: direct scan" not in text:
        name, kind, direction, column = index.groups()
        order = f", {direction}" if direction else ""
        return f"{kind} index " + (f"on {column}" if column and column != "all" else name) + order + finish
    return ("scan" if "Scan" in text else "values") + finish
