"""A grid of three members for pictures of its plans, and a real browser to look at them."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda

CUSTOMERS, ORDERS = 500, 20_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@pytest.fixture(scope="session")
def grid() -> Iterator[Any]:
    with remuda.open(members=3) as opened:
        opened.sql("CREATE TABLE customers (id BIGINT, name VARCHAR, country VARCHAR, PRIMARY KEY (id))")
        opened.sql(
            "CREATE TABLE orders (customer BIGINT, id BIGINT, amount DOUBLE, status VARCHAR, "
            "PRIMARY KEY (customer, id)) PARTITION BY (customer)"
        )
        opened.sql("CREATE INDEX orders_amount ON orders (amount) TYPE SORTED")
        choice = random.Random(7)
        numbers = range(CUSTOMERS)
        names = [f"customer {number}" for number in numbers]
        countries = [choice.choice(["DE", "FR", "NO", "US"]) for _ in numbers]
        opened.load("customers", pa.table({"id": list(numbers), "name": names, "country": countries}))
        orders = {
            "customer": [choice.randrange(CUSTOMERS) for _ in range(ORDERS)],
            "id": list(range(ORDERS)),
            "amount": [choice.random() * 1000 for _ in range(ORDERS)],
            "status": [choice.choice(["NEW", "PAID", "SENT"]) for _ in range(ORDERS)],
        }
        opened.load("orders", pa.table(orders))
        opened.sql("CREATE TABLE written (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        yield opened


@pytest.fixture(scope="session")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a function that opens a file in Chromium and returns the document as it is after its scripts."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium")

    def dump(page: Path, *flags: str) -> str:
        profile = tmp_path_factory.mktemp("profile")
        command = [program, *FLAGS, f"--user-data-dir={profile}", *flags, "--dump-dom", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        return done.stdout

    return dump
