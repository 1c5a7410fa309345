"""The rows of all benchmarks, the same ones each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.dataclass import dataclass

STATUSES = ["NEW", "OPEN", "PAID", "SENT", "DONE"]
MOST_CUSTOMERS = 100_000
HIGHEST_QUANTITY = 100
MICROSECONDS_OF_2024 = 366 * 86_400_000_000
NULL_SHARES = {"customer": 0.02, "status": 0.02, "amount": 0.01, "created": 0.01, "qty": 0.01}
LOOKUPS = 10_000
"""How many different values the look-ups go through."""

CREATE_TABLE = """
    CREATE TABLE orders (
        id BIGINT, customer VARCHAR, status VARCHAR, amount DOUBLE, created TIMESTAMP, qty INTEGER, PRIMARY KEY (id)
    )
"""
INDEXES = (
    "CREATE INDEX orders_customer ON orders (customer) TYPE HASH",
    "CREATE INDEX orders_amount ON orders (amount) TYPE SORTED",
)
"""Of Remuda; peers have their own."""

CREATE_CUSTOMERS = "CREATE TABLE customers (customer VARCHAR, region VARCHAR, PRIMARY KEY (customer))"
REGIONS = 50
"""What a join finds: each customer is in one of them."""


@dataclass(frozen=True, slots=True)
class Data:
    table: pa.Table
    keys: list[int]
    """Keys that exist, in random order."""
    customers: list[str]
    """Customers that exist; each has about ten rows at a million rows."""
    sorted_amounts: np.ndarray[Any, Any]

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def customer_table(self) -> pa.Table:
        """Every customer that an order may have."""
        numbers = range(customer_count(self.rows))
        regions = [f"R{number % REGIONS}" for number in numbers]
        return pa.table({"customer": [f"C{number}" for number in numbers], "region": regions})

    def amount_ranges(self, size: int) -> list[tuple[float, float]]:
        """Bounds, both included, between which there are exactly `size` rows."""
        random = np.random.default_rng(size)
        starts = random.integers(0, self.rows - size, LOOKUPS)
        return [(float(self.sorted_amounts[at]), float(self.sorted_amounts[at + size - 1])) for at in starts]


def customer_count(rows: int) -> int:
    return min(MOST_CUSTOMERS, max(1, rows // 10))


def make(rows: int, *, nulls: bool = False) -> Data:
    """Make the rows; with `nulls`, one to two percent of the values that are no keys are NULL."""
    random = np.random.default_rng(42)
    customer = random.integers(0, customer_count(rows), rows)
    amount = random.random(rows) * 1_000_000
    since = random.integers(0, MICROSECONDS_OF_2024, rows).astype("timedelta64[us]")
    columns = {
        "id": pa.array(np.arange(rows, dtype=np.int64)),
        "customer": pc.binary_join_element_wise("C", pc.cast(pa.array(customer), pa.string()), ""),
        "status": pa.array(STATUSES).take(pa.array(random.integers(0, len(STATUSES), rows))),
        "amount": pa.array(amount),
        "created": pa.array(np.datetime64("2024-01-01", "us") + since),
        "qty": pa.array(random.integers(0, HIGHEST_QUANTITY, rows).astype(np.int32)),
    }
    keys = random.integers(0, rows, LOOKUPS).tolist()
    customers = [f"C{number}" for number in customer[random.integers(0, rows, LOOKUPS)]]
    if nulls:
        for name, share in NULL_SHARES.items():
            is_null = pa.array(random.random(rows) < share)
            columns[name] = pc.if_else(is_null, pa.scalar(None, columns[name].type), columns[name])
    return Data(pa.table(columns), keys, customers, np.sort(amount))


def plain(column: pa.Array) -> pa.Array:
    """Turn a timestamp into microseconds, for peers that have no such type."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
