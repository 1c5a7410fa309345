"""A statement is applied whole or not at all, and synced as promised."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remuda.errors import SqlError
from remuda.storage import Durability, MapStore, Store
from tests.storage.maps import contents, orders_map

ROWS = [(1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)]


def _two_parts() -> MapStore:
    """Keys 1 and 2 in a segment, key 3 in the log."""
    store = Store.open()
    definition = orders_map()
    store.create_map(definition)
    store.map(definition).insert(ROWS[:2])
    store.checkpoint()
    store.map(definition).insert(ROWS[2:])
    return store.map(definition)


@pytest.mark.parametrize("key", [1, 3, 50])
def test_a_refused_insert_leaves_no_trace(key: int) -> None:
    """Neither where the key is in a segment, nor in the log, nor twice in the statement."""
    orders = _two_parts()
    with pytest.raises(SqlError, match=f"duplicate key in orders: id = {key}"):
        orders.insert([(50, "x", 0.0), (51, "y", 0.0), (key, "z", 0.0)])
    # Later entries take the numbers of those that were taken back: nothing may be hidden by them.
    orders.put([(60, "later", 0.0), (61, "later", 0.0), (62, "later", 0.0), (63, "later", 0.0)])
    assert contents(orders.snapshot())[:3] == ROWS
    assert len(orders) == orders.snapshot().rows == 7
    assert [orders.lookup(number, (0,)) for number in (1, 2, 3, 50, 51)] == [(1,), (2,), (3,), None, None]


class _WatchedRows(list[Any]):
    """Rows during the application of which, before the last of them, something else happens."""

    def __init__(self, rows: list[Any], happens: Callable[[], None]) -> None:
        super().__init__(rows)
        self._happens = happens
        self._passes = 0

    def __iter__(self) -> Iterator[Any]:
        self._passes += 1
        # The rows are first checked, which gives their keys, then they are applied.
        applying = self._passes == 2
        for number, row in enumerate(super().__iter__()):
            if applying and number == len(self) - 1:
                self._happens()
            yield row


def test_a_statement_is_invisible_until_it_is_whole() -> None:
    orders = _two_parts()
    watched = []

    def look() -> None:
        assert [orders.lookup(number, (1,)) for number in (1, 2, 3, 9)] == [("a",), ("b",), ("c",), None]
        assert contents(orders.snapshot()) == ROWS
        assert len(orders) == 3
        watched.append(True)

    rows = [(1, "x", 0.0), (3, "y", 0.0), (9, "z", 0.0), (2, "w", 0.0)]
    orders.put(_WatchedRows(rows, look))
    assert watched
    assert contents(orders.snapshot()) == sorted(rows)


@pytest.mark.parametrize(("key", "old"), [(1, ("a",)), (3, ("c",)), (9, None)])
def test_an_exchange_gives_what_was_there(key: int, old: tuple[str] | None) -> None:
    """In a segment, in the log, nowhere; and then what the last one has put."""
    orders = _two_parts()
    rows = len(orders)
    assert orders.exchange((key, "new", 0.0), (1,)) == old
    assert orders.exchange((key, "newer", 0.0), (2, 1)) == (0.0, "new")
    assert len(orders) == orders.snapshot().rows == rows + (old is None)
    orders.delete([key])
    assert orders.exchange((key, "again", 0.0), (1,)) is None
    assert len(orders) == orders.snapshot().rows == rows + (old is None)
    with pytest.raises(SqlError, match="must not be NULL"):
        orders.exchange((None, "x", 0.0), (1,))


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_an_interrupted_statement_is_taken_back() -> None:
    orders = _two_parts()
    before = orders.snapshot()
    with pytest.raises(KeyboardInterrupt):
        orders.put(_WatchedRows([(1, "x", 0.0), (3, "y", 0.0), (9, "z", 0.0), (2, "w", 0.0)], _interrupt))
    orders.put([(60, "later", 0.0)])
    assert contents(orders.snapshot()) == [*ROWS, (60, "later", 0.0)]
    assert contents(before) == ROWS


def _count_syncs(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> list[int]:
    """A list that grows with every sync, which still happens, and takes at least so long."""
    synced: list[int] = []
    write = os.pwritev

    def counted(descriptor: int, buffers: Any, place: int, flags: int) -> int:
        if flags & os.RWF_DSYNC:
            synced.append(descriptor)
            time.sleep(seconds)
        return write(descriptor, buffers, place, flags)

    monkeypatch.setattr(os, "pwritev", counted)
    return synced


def test_durability_decides_how_often_the_disk_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = _count_syncs(monkeypatch)
    for durability, expected in ((Durability.FSYNC, 10), (Durability.OS, 0), (Durability.NONE, 0)):
        store = Store.open(tmp_path / durability.value, durability=durability)
        definition = orders_map()
        store.create_map(definition)
        orders = store.map(definition)
        synced.clear()
        for number in range(10):
            orders.put([(number, None, None)])
        assert len(synced) == expected
        with orders.writing():
            orders.put([(100, None, None)])
            orders.put([(101, None, None)])
        assert len(synced) == expected + (durability is Durability.FSYNC)
        store.close()


def test_writers_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a disk that takes its time: where a sync takes none, nobody comes during another's."""
    store = Store.open(tmp_path)
    definition = orders_map()
    store.create_map(definition)
    orders = store.map(definition)
    synced = _count_syncs(monkeypatch, seconds=0.005)
    all_there = threading.Barrier(16)

    def write(thread: int) -> None:
        all_there.wait()
        for number in range(25):
            orders.put([(thread * 100 + number, None, None)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(orders) == 400
    assert len(synced) < 200
