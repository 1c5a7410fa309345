"""The orders of the demonstration: the same rows each time, whoever runs it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    """Each customer has about ten orders; amounts are spread over 0 to 1,000; one order in 50 has no status."""
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
