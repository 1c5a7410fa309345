"""A key is found wherever its newest row is: in the log, in the only segment, behind a newer one, or nowhere."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from remuda.storage import Store
from remuda.storage.load import segment_cut
from remuda.types import BIGINT, DOUBLE, VARCHAR
from tests.storage.maps import map_of, table_of

if TYPE_CHECKING:
    from remuda.storage import MapStore

_KEYS = range(-9_000, 9_000)
"""Half of all keys are below zero, and half of all hashes are, too: both signs of both must find their partition."""


def _load(partitions: int) -> tuple[MapStore, dict[int, str]]:
    definition = map_of((("id", BIGINT), ("name", VARCHAR)), partitions=partitions)
    store = Store.open()
    store.create_map(definition)
    names = {key: f"loaded {key % 5}" for key in _KEYS if key % 3}
    store.map(definition).load(table_of(definition, list(names.items())))
    return store.map(definition), names


def _check(found: MapStore, names: dict[int, str]) -> None:
    for key in (*_KEYS, 2**62, -(2**63)):
        row = found.lookup(key, (1,))
        assert (None if row is None else row[0]) == names.get(key), key


@pytest.mark.parametrize("partitions", [1, 7, 271])
@pytest.mark.parametrize("part_rows", [2_500, 100_000], ids=["several", "one"])
def test_keys_are_found_in_every_kind_of_segment(
    partitions: int, part_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_cut, "PART_ROWS", part_rows)
    orders, names = _load(partitions)
    expected = min(partitions, round(len(names) / part_rows)) if part_rows < len(names) else 1
    assert len(orders.stored) == expected
    _check(orders, names)
    draw = random.Random(partitions)
    for turn in range(3):
        for key in draw.sample(_KEYS, 600):
            if key % 2:
                orders.put([(key, f"turn {turn}")])
                names[key] = f"turn {turn}"
            else:
                orders.delete([key])
                names.pop(key, None)
        if turn == 1:
            _check(orders, names)  # before the log is folded
        orders.checkpoint()
        assert len(orders.stored) == expected + turn + 1
        _check(orders, names)


def test_keys_of_any_kind_are_looked_for_where_there_is_no_segment() -> None:
    for types, known, unknown in (
        ((VARCHAR, BIGINT), ("a", 1), ("", 1)),
        ((DOUBLE,), (float("nan"),), (1.5,)),
        ((VARCHAR,), ("a",), ("b",)),
    ):
        columns = tuple((f"key{number}", each) for number, each in enumerate(types))
        definition = map_of((*columns, ("name", VARCHAR)), key=tuple(name for name, _ in columns))
        store = Store.open()
        store.create_map(definition)
        found = store.map(definition)
        found.put([(*known, "row")])
        place = (len(types),)
        one = len(types) == 1
        assert found.lookup(known[0] if one else known, place) == ("row",)
        assert found.lookup(unknown[0] if one else unknown, place) is None


def test_what_was_taken_back_is_found_as_it_was() -> None:
    orders, names = _load(271)
    orders.delete([1])
    orders.put([(2, "new")])
    orders.checkpoint()
    orders.put([(1, "again")])
    orders.delete([2])
    del names[2]
    _check(orders, names | {1: "again"})
    orders.checkpoint()
    _check(orders, names | {1: "again"})


def test_few_touched_keys_are_told_from_all_others() -> None:
    orders, names = _load(271)
    assert orders.snapshot().version.dirty is not None
    assert not any(orders.snapshot().version.dirty.table)
    orders.put([(key, "new") for key in range(0, 90, 3)])
    orders.delete([1])
    orders.checkpoint()
    dirty = orders.snapshot().version.dirty
    assert dirty is not None
    assert dirty.settled == (0,)
    key_hash = orders.snapshot().version.key_hash
    assert all(dirty.table[key_hash(key) >> dirty.shift] for key in (1, *range(0, 90, 3)))
    others = [key for key in names if dirty.table[key_hash(key) >> dirty.shift]]
    assert 0 < len(others) < len(names) / 8
    orders.delete(list(_KEYS[:3_000]))
    orders.checkpoint()
    assert orders.snapshot().version.dirty is None
