"""Maps that a load creates: their key, their indexes, what becomes JSON, and what is refused of maps that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import remuda
from remuda.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "customer": ["a", "b", None],
    "amount": [1.5, None, 2.5],
    "address": [{"town": "York", "lines": ["1", "2"]}, None, {"town": None, "lines": []}],
}
JSON = ['{"town":"York","lines":["1","2"]}', None, '{"town":null,"lines":[]}']


def as_table(_: Path) -> Any:
    return pa.table(ROWS)


def as_pandas(_: Path) -> Any:
    return pd.DataFrame(ROWS)


def as_polars(_: Path) -> Any:
    return pl.DataFrame(ROWS)


def as_files(folder: Path) -> Any:
    pq.write_table(pa.table(ROWS), folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize("given", [as_table, as_pandas, as_polars, as_files])
def test_a_load_creates_a_map_with_its_key_its_indexes_and_json(given: Callable[[Path], Any], tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop.remuda") as grid:
        request = {"key": "id", "indexes": "customer HASH, (customer, amount) SORTED", "json": "address"}
        assert grid.load("orders", given(tmp_path), **request) == 3
        assert grid.load("orders", given(tmp_path), mode="upsert", **request) == 3
        found = grid.sql("SELECT id, customer, amount, address FROM orders ORDER BY id").fetchall()
        expected = zip(ROWS["id"], ROWS["customer"], ROWS["amount"], JSON, strict=True)
        assert found == list(expected)
        assert [tuple(row) for row in grid.sql("SHOW INDEXES")] == [
            ("orders", "orders_customer", "HASH", "customer"),
            ("orders", "orders_customer_amount", "SORTED", "customer, amount"),
        ]
        assert "orders_customer" in grid.explain("SELECT id FROM orders WHERE customer = 'a'")
        assert grid.sql("SELECT address->>'town' AS town FROM orders WHERE customer = 'a'").fetchall() == [("York",)]
    with remuda.open(tmp_path / "shop.remuda") as grid:
        assert grid.sql("SELECT id FROM orders WHERE customer = 'b'").fetchall() == [(2,)]


def test_maps_of_arrow_become_objects_and_a_key_that_comes_twice_is_refused() -> None:
    grid = remuda.open()
    tags = pa.array([[("x", 1), ("y", 2)], []], pa.map_(pa.string(), pa.int64()))
    grid.load("t", pa.table({"id": [1, 2], "tags": tags}), key="id", json=["tags"])
    assert grid.sql("SELECT tags FROM t ORDER BY id").fetchall() == [('{"x":1,"y":2}',), ("{}",)]
    twice = pa.array([[("x", 1), ("x", 2)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(SqlError, match=r"t\.tags \(JSON\) cannot hold .*, row 1"):
        grid.load("t", pa.table({"id": [3], "tags": twice}))
    assert len(grid.map("t")) == 2


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"key": "customer"}, r"the key of orders is \(id\), not \(customer\)"),
        ({"indexes": "amount SORTED"}, r"orders is there already, and has no SORTED index on \(amount\)"),
        ({"indexes": "customer SORTED"}, r"orders is there already, and has no SORTED index on \(customer\)"),
        ({"indexes": "colour"}, "orders has no column colour for the index"),
        ({"json": "customer"}, r"orders\.customer is VARCHAR, not JSON"),
        ({"indexes": "customer BLOOM"}, "unknown index type: BLOOM; index types are SORTED and HASH"),
        ({"indexes": "(customer, "}, "indexes are written as"),
        ({"indexes": ""}, "indexes are written as"),
        ({"key": ""}, "key is the name of a column, or a list of names"),
    ],
)
def test_what_contradicts_a_map_that_is_there_is_refused(request_: dict[str, str], message: str) -> None:
    grid = remuda.open()
    grid.load("orders", as_table(None), key="id", indexes="customer HASH", json="address")
    with pytest.raises(SqlError, match=message):
        grid.load("orders", pa.table({"id": [9]}), missing="null", **request_)
    assert len(grid.map("orders")) == 3


@pytest.mark.parametrize(
    ("request_", "message", "cure"),
    [
        ({"key": "id"}, "the column address is struct<", 'json="address"'),
        ({"key": "id", "json": "address, colour"}, "the data has no column colour, which is to be JSON", None),
        ({"key": "id", "json": "address", "indexes": "colour"}, "orders has no column colour for the index", None),
        ({"key": "id", "json": "address", "indexes": "id, id, id"}, "the index orders_id_sorted exists", None),
    ],
)
def test_what_cannot_be_created_leaves_no_map(request_: dict[str, str], message: str, cure: str | None) -> None:
    grid = remuda.open()
    with pytest.raises(SqlError, match=message) as raised:
        grid.load("orders", as_table(None), **request_)
    assert cure is None or cure in (raised.value.suggestion or "")
    assert grid.sql("SHOW TABLES").fetchall() == []
