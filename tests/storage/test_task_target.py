"""What tasks of other processes prepare for a statement: segments in the map's folder, which the statement commits."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from remuda.catalog import new_id
from remuda.errors import ConstraintError
from remuda.storage import MapStore, Store
from remuda.storage.folder.delivery import remove_uncommitted
from remuda.storage.load.statement_load import StatementLoad
from remuda.storage.load.task_target import TaskTarget
from tests.storage.folders import only_map
from tests.storage.maps import contents, orders_map, table_of

ROWS = [(number, f"c{number % 7}", float(number)) for number in range(500)]


def _prepared(orders: MapStore, load_id: str, tasks: int, *, is_upsert: bool = False) -> StatementLoad:
    assert orders.folder is not None
    target = pickle.loads(pickle.dumps(TaskTarget(str(orders.folder), load_id, orders.definition, is_upsert)))
    load = StatementLoad(orders, "upsert" if is_upsert else "append")
    for task in range(tasks):
        load.take_over(target.save(table_of(orders.definition, ROWS[task::tasks]).columns))
    return load


def test_the_segments_of_all_tasks_are_committed_together(tmp_path: Path) -> None:
    with_rows = Store.open(tmp_path)
    with_rows.create_map(orders_map())
    orders = only_map(with_rows)
    orders.put([(7, "before", 0.0), (900, "before", 0.0)])
    with orders.writing():
        load = _prepared(orders, f"load{new_id()}", 3, is_upsert=True)
        assert len(orders) == 2
        load.commit()
    expected = sorted([*ROWS, (900, "before", 0.0)])
    assert contents(orders.snapshot()) == expected
    with_rows.close()
    again = Store.open(tmp_path)
    again.verify()
    assert contents(only_map(again).snapshot()) == expected
    again.close()


def test_the_segments_of_a_refused_statement_go(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.create_map(orders_map())
    orders = only_map(store)
    orders.put([ROWS[100]])
    assert orders.folder is not None
    load_id = f"load{new_id()}"
    with orders.writing():
        load = _prepared(orders, load_id, 2)
        # A task that was started twice has written the same rows under another name.
        _prepared(orders, load_id, 1)
        with pytest.raises(ConstraintError, match="id = 100"):
            load.commit()
        load.discard()
    remove_uncommitted(orders.folder, load_id, ())
    assert not list(orders.folder.glob(f"{load_id}-*"))
    assert contents(orders.snapshot()) == [ROWS[100]]
    store.close()
