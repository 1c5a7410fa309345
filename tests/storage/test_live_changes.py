"""Loads and index changes while others write: nobody waits for the building, and nothing is missed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remuda.catalog import IndexType
from remuda.errors import SqlError
from remuda.storage import Lookup, MapSnapshot, MapStore, Range, Store
from remuda.storage.load import map_load
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.compaction import merge_load
from tests.storage.folders import only_map
from tests.storage.maps import contents, index_on, orders_map, table_of

Row = tuple[int, str, float]


def _rows(first: int, stop: int, customer: str = "loaded") -> list[Row]:
    return [(number, customer, float(number)) for number in range(first, stop)]


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path if request.param == "folder" else None)
    store.create_map(orders_map())
    only_map(store).insert(_rows(0, 50, "old"))
    yield store
    store.close()


def _during_preparation(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Has `act` done, by another thread, when a load has built its segments and before it is installed."""
    done = []

    def prepare_and_let_act(*arguments: Any) -> Any:
        prepared = merge_load(*arguments)
        if not done:
            done.append(True)
            thread = threading.Thread(target=act)
            thread.start()
            thread.join(60)
            assert not thread.is_alive(), "a writer waits for a load that is being prepared"
        return prepared

    monkeypatch.setattr(map_load, "merge_load", prepare_and_let_act)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)


def _check(store: Store, expected: list[Row]) -> None:
    orders = only_map(store)
    assert contents(orders.snapshot()) == sorted(expected)
    assert len(orders) == len(expected)
    for row in expected:
        assert orders.lookup(row[0], (0, 1, 2)) == row
    if store.path is not None:
        reader = Store.open(store.path, read_only=True)
        assert contents(only_map(reader).snapshot()) == sorted(expected)
        reader.close()


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_writes_of_other_keys_go_on_while_a_load_is_prepared(
    store: Store, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    orders = only_map(store)

    def write() -> None:
        orders.put([(7, "meanwhile", 7.5), (500, "meanwhile", 1.0)])
        orders.delete([8, 9])

    _during_preparation(monkeypatch, write)
    orders.load(table_of(orders.definition, _rows(100, 160)), mode)
    rest = [row for row in _rows(0, 50, "old") if row[0] not in {7, 8, 9}]
    _check(store, [*rest, (7, "meanwhile", 7.5), (500, "meanwhile", 1.0), *_rows(100, 160)])


def test_a_key_written_meanwhile_is_a_duplicate_of_a_loaded_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = only_map(store)
    _during_preparation(monkeypatch, lambda: orders.insert([(120, "meanwhile", 1.0)]))
    with pytest.raises(SqlError, match="duplicate key in orders: id = 120"):
        orders.load(table_of(orders.definition, _rows(100, 160)))
    _check(store, [*_rows(0, 50, "old"), (120, "meanwhile", 1.0)])


def test_an_upsert_comes_after_what_was_written_meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = only_map(store)

    def write() -> None:
        orders.put([(40, "meanwhile", 7.5), (120, "meanwhile", 1.0)])
        orders.delete([41])

    _during_preparation(monkeypatch, write)
    orders.load(table_of(orders.definition, _rows(40, 160)), "upsert")
    _check(store, [*_rows(0, 40, "old"), *_rows(40, 160)])


def test_a_replacing_load_comes_after_what_was_written_meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = only_map(store)
    _during_preparation(monkeypatch, lambda: orders.put([(1, "meanwhile", 1.0), (900, "meanwhile", 1.0)]))
    orders.load(table_of(orders.definition, _rows(40, 160)), "replace")
    _check(store, _rows(40, 160))


def test_writers_that_never_stop_do_not_starve_a_load(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = only_map(store)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            orders.put([(120, "always", 1.0)])

    writer = threading.Thread(target=write)
    writer.start()
    orders.load(table_of(orders.definition, _rows(100, 160)), "upsert")
    done.set()
    writer.join()
    assert len(orders) == 110
    assert orders.lookup(121, (1,)) == ("loaded",)


def test_an_index_is_complete_and_exact_when_it_becomes_visible(store: Store) -> None:
    """Two writers move rows from value to value while indexes come and go: each lookup gives what a scan gives."""
    orders = only_map(store)
    orders.load(table_of(orders.definition, _rows(1000, 30_000)), "upsert")
    done, failures = threading.Event(), []

    def write(first: int) -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            key = 1000 + (turn * 37 + first) % 2000
            orders.put([(key, f"turn {turn % 5}", float(turn % 11))])
            if turn % 3 == 0:
                orders.delete([key + 1])

    def guarded(first: int) -> None:
        try:
            write(first)
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            failures.append(error)

    writers = [threading.Thread(target=guarded, args=(first,)) for first in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        for turn in range(8):
            kind = IndexType.HASH if turn % 2 else IndexType.SORTED
            index = index_on("customer", "amount", type_=kind)
            store.create_index(orders.definition, index)
            _check_index(orders.snapshot(), index.id, kind)
            if turn % 3 == 0:
                store.checkpoint()
                _check_index(orders.snapshot(), index.id, kind)
            store.drop_index(orders.definition, index)
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert not failures


def _check_index(snapshot: MapSnapshot, index_id: str, kind: IndexType) -> None:
    rows = [row for row in contents(snapshot) if row[1].startswith("turn")]
    by_value: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        by_value.setdefault((row[1], row[2]), []).append(row)
    for value, expected in by_value.items():
        assert sorted(_found(snapshot, index_id, Lookup(value))) == sorted(expected)
    if kind is IndexType.SORTED:
        wanted = Range("turn", high="turn 9")
        assert sorted(_found(snapshot, index_id, Lookup((), wanted))) == sorted(rows)


def _found(snapshot: MapSnapshot, index_id: str, lookup: Lookup) -> list[Any]:
    return [row for source in snapshot.sources for row in source.rows_at((0, 1, 2), source.positions(index_id, lookup))]


def test_an_index_made_while_segments_are_built_elsewhere_covers_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: MapStore = only_map(store)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    index = index_on("customer", "amount")

    def build_after_the_index(*arguments: Any) -> Any:
        built = build_segments(*arguments)
        store.create_index(orders.definition, index)
        return built

    monkeypatch.setattr(map_load, "build_segments", build_after_the_index)
    orders.load(table_of(orders.definition, _rows(100, 160)))
    assert len(_found(orders.snapshot(), index.id, Lookup(("loaded",)))) == 60
    assert all(index.id in each.segment.index_arrays for each in orders.stored)
