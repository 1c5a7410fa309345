"""Readers beside a writer: what they see, and that the files they need stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from remuda.errors import ErrorCode, SqlError, StorageError
from remuda.storage import Store
from tests.storage.crash_writer import ROWS, statement_rows
from tests.storage.folders import filled, only_map
from tests.storage.maps import contents, index_on, orders_map, table_of


def test_a_reader_sees_what_is_acknowledged_and_refreshes(tmp_path: Path) -> None:
    store = filled(tmp_path)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    reader = Store.open(tmp_path, read_only=True)
    read = only_map(reader)
    assert len(read) == ROWS
    before = read.snapshot()
    orders.insert(statement_rows(2))
    assert len(read) == ROWS
    reader.refresh()
    assert len(read) == 2 * ROWS
    store.checkpoint()
    orders.delete([10])
    store.create_index(orders.definition, index_on("customer", "amount"))
    reader.refresh()
    assert reader.catalog == store.catalog
    assert contents(read.snapshot()) == contents(orders.snapshot())
    assert contents(before) == statement_rows(1)
    for write in (
        lambda: read.insert([(99, "x", 1.0)]),
        lambda: read.load(table_of(read.definition, [])),
        lambda: reader.create_map(orders_map()),
        read.truncate,
    ):
        with pytest.raises(StorageError, match="reading only"):
            write()
    store.drop_map(orders.definition)
    reader.refresh()
    with pytest.raises(SqlError) as caught:
        read.snapshot()
    assert caught.value.code is ErrorCode.MAP_DESTROYED
