"""The plans in docs/queries.md are those that EXPLAIN prints."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import remuda
from tests.harness.page import read_page

_PLAN = re.compile(r"```\n(?P<statement>EXPLAIN [^;]*);(?:  -- (?P<value>\S+))?\n\n(?P<plan>.*?)```", re.DOTALL)


def test_plans_are_as_printed(pytestconfig: pytest.Config) -> None:
    """`--rewrite` brings them up to date."""
    page = read_page("queries.md")
    assert len(_PLAN.findall(page)) == 3
    if pytestconfig.getoption("--rewrite"):
        (Path(__file__).parents[2] / "docs" / "queries.md").write_text(with_plans(page), encoding="utf-8")
    else:
        assert with_plans(page) == page


def with_plans(page: str) -> str:
    numbers = range(10_000)
    columns = {
        "customer": [f"C{i % 500}" for i in numbers],
        "id": list(numbers),
        "status": [("NEW", "OPEN", "PAID", "SENT")[i % 4] for i in numbers],
        "amount": [i / 4 for i in numbers],
    }
    with remuda.open(members=3) as grid:
        grid.sql(
            "CREATE TABLE orders (customer VARCHAR, id BIGINT, status VARCHAR, amount DOUBLE, "
            "PRIMARY KEY (customer, id)) PARTITION BY (customer)"
        )
        grid.sql("CREATE INDEX orders_amount ON orders (amount) TYPE SORTED")
        grid.load("orders", pa.table(columns))

        def explained(found: re.Match[str]) -> str:
            values = () if found["value"] is None else (float(found["value"]),)
            return found[0].removesuffix(f"{found['plan']}```") + grid.explain(found["statement"], *values) + "\n```"

        return _PLAN.sub(explained, page)
