"""Readers beside writers, checkpoints and index changes: statements are seen whole, snapshots stand still."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from remuda.catalog import IndexType
from remuda.errors import ErrorCode, SqlError
from remuda.storage import Lookup, Store, map_store
from tests.harness.threads import run_together
from tests.storage.maps import contents, index_on, orders_map

ACCOUNTS = 40


def _always() -> bool:
    return True


def _run(*workers: Callable[[], None], seconds: float = 1.5, enough: Callable[[], bool] = _always) -> None:
    """Runs each worker over and over in a thread of its own, until the time is over or one has failed.

    The time goes on where a busy machine has let them do too little.
    """
    end, failed = time.monotonic() + seconds, threading.Event()

    def repeat(worker: Callable[[], None]) -> None:
        try:
            while (time.monotonic() < end or not enough()) and not failed.is_set():
                worker()
        except BaseException:
            failed.set()
            raise

    run_together(*(partial(repeat, worker) for worker in workers))


def test_transfers_are_seen_whole_whatever_else_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Money moves between accounts, two rows a statement: the sum is the same at every moment, by every path."""
    monkeypatch.setattr(map_store, "FLUSH_ENTRIES", 400)
    store = Store.open()
    definition = orders_map()
    store.create_map(definition)
    accounts = store.map(definition)
    accounts.insert([(number, f"C{number % 4}", 100.0) for number in range(ACCOUNTS)])
    by_customer = definition.indexes[0].id
    step = Counter[str]()

    def transfer() -> None:
        step["transfer"] += 1
        giver, taker = step["transfer"] % ACCOUNTS, step["transfer"] * 7 % ACCOUNTS
        if giver == taker:
            return
        with accounts.writing():
            (given,), (taken,) = accounts.lookup(giver, (2,)) or (), accounts.lookup(taker, (2,)) or ()
            accounts.put([(giver, f"C{giver % 4}", given - 1), (taker, f"C{taker % 4}", taken + 1)])

    def scan() -> None:
        rows = contents(accounts.snapshot())
        assert len(rows) == ACCOUNTS
        assert sum(row[2] for row in rows) == 100.0 * ACCOUNTS

    def search() -> None:
        snapshot = accounts.snapshot()
        found = [
            row
            for customer in ("C0", "C1", "C2", "C3")
            for source in snapshot.sources
            for row in source.rows_at((0, 2), source.positions(by_customer, Lookup((customer,))))
        ]
        assert sorted(row[0] for row in found) == list(range(ACCOUNTS))
        assert sum(row[1] for row in found) == 100.0 * ACCOUNTS

    def restructure() -> None:
        index = index_on("amount", type_=IndexType.HASH)
        store.create_index(accounts.definition, index)
        snapshot = accounts.snapshot()
        expected = contents(snapshot)
        for amount in {row[2] for row in expected}:
            found = [
                row
                for source in snapshot.sources
                for row in source.rows_at((0, 1, 2), source.positions(index.id, Lookup((amount,))))
            ]
            assert sorted(found) == [row for row in expected if row[2] == amount]
        store.drop_index(accounts.definition, index)

    def look_up() -> None:
        for number in range(ACCOUNTS):
            assert accounts.lookup(number, (0,)) == (number,)

    _run(transfer, transfer, scan, search, restructure, look_up, enough=lambda: step["transfer"] > 100)


def test_snapshots_of_several_maps_are_of_one_moment() -> None:
    """Every number goes into the first map, then into the second: no moment has it in the second alone."""
    store = Store.open()
    first, second = orders_map(), orders_map()
    second = type(second)(**{name: getattr(second, name) for name in second.__slots__} | {"name": "copies"})
    for definition in (first, second):
        store.create_map(definition)
    numbers = iter(range(10**9))

    def write() -> None:
        number = next(numbers)
        store.map(first).insert([(number, None, None)])
        store.map(second).insert([(number, None, None)])

    def read() -> None:
        one, other = store.snapshot([first, second])
        assert 0 <= one.rows - other.rows <= 1

    _run(write, read, read, seconds=0.5)


def test_a_dropped_map_says_so_and_leaves_its_snapshots_alone() -> None:
    store = Store.open()
    definition = orders_map()
    store.create_map(definition)
    orders = store.map(definition)
    orders.insert([(1, "a", 1.0)])
    snapshot = orders.snapshot()
    store.drop_map(definition)
    for attempt in (
        orders.snapshot,
        lambda: orders.lookup(1, (0,)),
        lambda: orders.put([(1, "b", 1.0)]),
        lambda: store.map(definition),
        lambda: store.drop_map(definition),
    ):
        with pytest.raises(SqlError) as caught:
            attempt()
        assert caught.value.code is ErrorCode.MAP_DESTROYED
    assert contents(snapshot) == [(1, "a", 1.0)]
    store.create_map(orders_map())
    with pytest.raises(SqlError, match="already a map orders"):
        store.create_map(orders_map())


def test_a_null_key_and_a_null_in_a_required_column_are_refused() -> None:
    store = Store.open()
    definition = orders_map()
    store.create_map(definition)
    with pytest.raises(SqlError, match=r"the key orders\.id must not be NULL"):
        store.map(definition).put([(1, "a", 1.0), (None, "b", 2.0)])
    assert len(store.map(definition)) == 0
