"""Three members in this process: a query that concerns one partition, with pruning and without."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.bench.case import REMUDA, Case, Setting, over

if TYPE_CHECKING:
    from collections.abc import Iterator

CREATE = """
    CREATE TABLE orders (
        id BIGINT, customer VARCHAR, status VARCHAR, amount DOUBLE, created TIMESTAMP, qty INTEGER,
        PRIMARY KEY (customer, id)
    ) PARTITION BY (customer)
"""
OF_CUSTOMER = "SELECT COUNT(*), SUM(amount) FROM orders WHERE customer = ? AND qty >= 0"


def cases(setting: Setting) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name:
        folder = Path(name, "members.remuda")
        with remuda.open(folder, durability="none") as grid:
            grid.sql(CREATE)
            grid.load("orders", setting.data.table)
        with (
            remuda.open(folder, members=3, read_only=True) as pruning,
            remuda.open(folder, members=3, read_only=True) as reading_all,
        ):
            reading_all.sql("SET partition_pruning = off")
            customers = setting.data.customers
            yield Case(
                "one partition of three members",
                {
                    REMUDA: over(customers, lambda customer: pruning.sql(OF_CUSTOMER, customer).fetchall()),
                    "without pruning": over(
                        customers, lambda customer: reading_all.sql(OF_CUSTOMER, customer).fetchall()
                    ),
                },
            )
