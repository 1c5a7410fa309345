"""Bulk loads: what they accept, what they refuse and how they say so, what becomes of them."""

from __future__ import annotations

import itertools
import pickle
import random
import weakref
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.catalog import IndexType
from remuda.errors import ErrorCode, SqlError
from remuda.storage import Durability, Lookup, Store, build_segment, open_snapshot, write_segment
from remuda.storage.load import bulk_load, map_load, segment_cut
from remuda.storage.load.conforming import conform
from remuda.storage.segment.segment_builder import finish_segment
from remuda.types import BIGINT, DATE, DOUBLE, INTEGER, SMALLINT, TIMESTAMP, VARCHAR, decimal
from remuda.types.normalized_key import canonical_key
from tests.storage.maps import contents, in_order, index_on, map_of, orders_map, same, table_of
from tests.storage.sample_values import TYPES, random_value


def _orders(count: int, start: int = 0) -> list[tuple[int, str, float]]:
    return [(number, f"C{number % 17}", number / 2) for number in range(start, start + count)]


def _refused(definition: Any, columns: dict[str, Any]) -> str:
    with pytest.raises(SqlError) as caught:
        conform(definition, pa.table(columns))
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    return str(caught.value)


def test_arrow_types_are_cast_where_nothing_is_lost() -> None:
    types = [
        ("id", BIGINT),
        ("small", SMALLINT),
        ("at", TIMESTAMP),
        ("day", DATE),
        ("price", decimal(9, 2)),
        ("s", VARCHAR),
    ]
    definition = map_of(types)
    table = pa.table(
        {
            "ID": pa.array([1, 2], pa.uint8()),
            "small": pa.array([1, None], pa.int64()),
            "at": pa.array([5_000, None], pa.timestamp("ns")),
            "day": pa.array([86_400_000, None], pa.date64()),
            "price": pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)),
            "s": pa.array(["x", None], pa.large_string()).dictionary_encode(),
        }
    )
    store = Store.open()
    store.create_map(definition)
    assert store.map(definition).load(table) == 2
    assert contents(store.map(definition).snapshot()) == [
        (1, 1, 5, 1, Decimal("1.50"), "x"),
        (2, None, None, None, None, None),
    ]


def test_a_bad_value_is_named_with_column_and_row() -> None:
    definition = map_of([("id", BIGINT), ("quantity", SMALLINT), ("day", DATE)])
    message = _refused(definition, {"id": [1, 2, 3], "quantity": [1, 2, 100_000]})
    assert "orders.quantity (SMALLINT) cannot hold 100000, row 3" in message
    message = _refused(definition, {"id": [1, 2], "quantity": [1.0, 1.5]})
    assert "cannot hold 1.5, row 2" in message
    message = _refused(definition, {"id": [1, None, 3]})
    assert "the key orders.id must not be NULL, row 2" in message
    message = _refused(definition, {"id": [1], "quantiti": [1]})
    assert "has no column quantiti" in message
    assert 'Did you mean "quantity"?' in message
    assert "orders.day (DATE)" in _refused(definition, {"id": [1], "day": [True]})
    assert "must not be NULL" in _refused(definition, {"day": pa.array([1], pa.int32()).cast(pa.date32())})


@pytest.mark.parametrize("count", [50, 30_000])
def test_duplicates_are_refused_and_nothing_is_loaded(count: int) -> None:
    store = Store.open()
    definition = orders_map()
    store.create_map(definition)
    orders = store.map(definition)
    orders.load(table_of(definition, _orders(count)))
    before = contents(orders.snapshot())
    for rows in (_orders(count, count - 1), [*_orders(count, count), (count + 3, "twice", 0.0)]):
        with pytest.raises(SqlError, match="duplicate key in orders: id = "):
            orders.load(table_of(definition, rows))
        assert contents(orders.snapshot()) == before
        assert len(orders) == count


def test_upsert_keeps_the_newest_of_each_key_and_replaces_what_was_there() -> None:
    store = Store.open()
    definition = orders_map()
    store.create_map(definition)
    orders = store.map(definition)
    orders.load(table_of(definition, _orders(30_000)))
    orders.put([(5, "from the log", 1.0)])
    orders.delete([6])
    rows = [(number, "loaded", float(number)) for number in range(20_000)] + [(7, "newest", 7.5), (8, "older", 7.5)]
    with pytest.raises(SqlError, match=r"duplicate key in orders: id = [78]\n.*Name the column"):
        orders.load(table_of(definition, rows), "upsert")
    assert orders.lookup(5, (1,)) == ("from the log",)
    orders.load(table_of(definition, rows), "upsert", "amount")
    assert len(orders) == 30_000
    assert orders.lookup(5, (1,)) == orders.lookup(6, (1,)) == ("loaded",)
    assert (orders.lookup(7, (1,)), orders.lookup(8, (1,))) == (("newest",), ("loaded",))
    assert orders.lookup(29_999, (0,)) == (29_999,)
    assert len(contents(orders.snapshot())) == 30_000


def test_large_loads_become_segments_with_disjoint_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_cut, "PART_ROWS", 2_000)
    store = Store.open()
    definition = orders_map(partitions=271)
    store.create_map(definition)
    orders = store.map(definition)
    orders.load(table_of(definition, _orders(20_000)))
    spans = sorted((each.segment.first_partition, each.segment.last_partition) for each in orders.stored)
    assert len(spans) == 10
    assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))
    assert [orders.lookup(key, (0, 2)) for key in range(0, 20_000, 97)] == [
        (key, key / 2) for key in range(0, 20_000, 97)
    ]
    assert orders.lookup(20_000, (0,)) is None
    assert contents(orders.snapshot()) == _orders(20_000)


@pytest.mark.parametrize("key_type", TYPES, ids=str)
def test_every_type_can_be_a_key(key_type: Any, tmp_path: Path) -> None:
    source = random.Random(str(key_type))
    definition = map_of([("id", key_type), ("value", INTEGER)])
    store = Store.open(tmp_path, durability=Durability.OS)
    store.create_map(definition)
    kept = store.map(definition)
    rows = [(random_value(key_type, source), number) for number in range(200)]
    kept.put(rows)
    size = len(kept)
    store.checkpoint()
    kept.put(rows[:100])
    assert len(kept) == size
    for key, _ in rows:
        assert kept.lookup(key, (1,)) is not None
    kept.put(rows[100:])
    expected = contents(kept.snapshot())
    store.close()
    again = Store.open(tmp_path, durability=Durability.OS)
    assert same(contents(again.map(definition).snapshot()), expected)
    assert again.map(definition).delete([key for key, _ in rows]) == size
    again.close()


def test_segments_written_elsewhere_are_committed_together_or_not_at_all(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    definition = orders_map()
    store.create_map(definition)
    orders = store.map(definition)
    folder = tmp_path / "maps" / definition.id
    infos = [write_segment(folder, definition, table_of(definition, _orders(100, start))) for start in (0, 100)]
    changed = store.create_index(definition, index_on("customer", "amount"))
    assert orders.commit_segments(pickle.loads(pickle.dumps(infos))) == 200
    assert contents(orders.snapshot()) == _orders(200)
    lookup = Lookup(("C3",))
    found = [
        row
        for source in orders.snapshot().sources
        for row in source.rows_at((0, 1, 2), source.positions(changed.indexes[-1].id, lookup))
    ]
    assert in_order(found) == [row for row in _orders(200) if row[1] == "C3"]
    clashing = [write_segment(folder, definition, table_of(definition, _orders(10, start))) for start in (300, 195)]
    with pytest.raises(SqlError, match="duplicate key in orders: id = 19"):
        orders.commit_segments(clashing)
    assert len(orders) == 200
    store.close()
    assert contents(Store.open(tmp_path).map(definition).snapshot()) == _orders(200)


def test_a_described_snapshot_pickles_and_outlives_a_checkpoint(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    definition = orders_map()
    store.create_map(definition)
    orders = store.map(definition)
    orders.load(table_of(definition, _orders(20_000)))
    orders.delete([1, 2])
    orders.put([(3, "new", None), (99_999, None, 1.0)])
    snapshot = orders.snapshot()
    expected = contents(snapshot)
    raw = pickle.dumps(snapshot.describe())
    assert len(raw) < 10_000
    orders.truncate()
    opened = open_snapshot(pickle.loads(raw))
    assert opened.rows == 19_999
    assert contents(opened) == expected
    chosen = np.array([2, 5])
    assert contents(opened, chosen) == contents(snapshot, chosen)


def test_statistics_describe_the_whole_map() -> None:
    store = Store.open()
    definition = map_of([("id", BIGINT), ("customer", VARCHAR), ("amount", DOUBLE)])
    store.create_map(definition)
    kept = store.map(definition)
    assert kept.statistics().rows == 0
    rows = [(number, None if number % 4 == 0 else f"C{number % 9}", float(number)) for number in range(20_000)]
    kept.load(table_of(definition, rows[:15_000]))
    kept.put(rows[15_000:])
    statistics = kept.statistics()
    assert statistics.rows == 20_000
    assert statistics.columns["customer"].distinct == 9
    assert statistics.columns["customer"].null_share == pytest.approx(0.25)
    assert statistics.columns["amount"].minimum == 0.0
    assert statistics.columns["amount"].maximum == 19_999.0
    distinct = statistics.columns["id"].distinct
    assert distinct == 20_000


def test_distinct_values_of_large_segments_are_estimated_well() -> None:
    store = Store.open()
    definition = map_of([("id", BIGINT), ("few", INTEGER), ("many", INTEGER)])
    store.create_map(definition)
    source = np.random.default_rng(3)
    rows = 300_000
    few, many = source.integers(0, 1_000, rows), source.integers(0, 100_000, rows)
    store.map(definition).load(pa.table({"id": np.arange(rows), "few": few, "many": many}))
    columns = store.map(definition).statistics().columns
    assert columns["few"].distinct == pytest.approx(1_000, rel=0.01)
    assert columns["many"].distinct == pytest.approx(len(np.unique(many)), rel=0.1)
    assert columns["id"].distinct == rows


def test_small_loads_go_through_the_log() -> None:
    store = Store.open()
    definition = orders_map()
    store.create_map(definition)
    orders = store.map(definition)
    orders.load(table_of(definition, _orders(map_load.SMALL_LOAD - 1)))
    assert not orders.stored
    assert len(orders) == map_load.SMALL_LOAD - 1


@pytest.mark.parametrize("key_type", TYPES, ids=str)
def test_keys_that_two_segments_share_are_found(key_type: Any) -> None:
    source = random.Random(str(key_type))
    definition = map_of([("id", key_type), ("value", INTEGER)])
    rows = {canonical_key(random_value(key_type, source)): number for number in range(600)}
    keys = list(rows)
    third = len(keys) // 3
    chosen = (keys[: 2 * third], keys[third:], keys[:third])
    one, other, none = (build_segment(definition, table_of(definition, [(key, 0) for key in part])) for part in chosen)
    for left, right, shared in ((one, other, third), (other, one, third), (other, none, 0), (one, one, 2 * third)):
        mine, theirs = bulk_load.common_keys(left, right)
        assert len(mine) == shared
        assert mine.tolist() == sorted(mine.tolist())
        found = [left.key_at(position) for position in mine]
        assert same([(key,) for key in found], [(right.key_at(position),) for position in theirs])
        assert len({canonical_key(key) for key in found}) == shared


@pytest.mark.parametrize("chunk", [1, 700, 20_000])
def test_columns_in_chunks_become_the_same_segments(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without NULLs; strings that repeat, that do not, and that come as dictionaries, one for each chunk."""
    monkeypatch.setattr(segment_cut, "PART_ROWS", 5_000)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    rows = 20_000 if chunk > 1 else 300
    types = [("id", BIGINT), ("often", VARCHAR), ("once", VARCHAR), ("coded", VARCHAR), ("amount", DOUBLE)]
    indexes = [index_on("often", type_=IndexType.HASH), index_on("often", "amount"), index_on("once")]
    definition = map_of(types, indexes=indexes, partitions=31)
    values = [
        (n, f"C{n % 7}" if n % 5 else None, f"once {n}", f"D{n // 700}", None if n % 11 == 0 else n / 4)
        for n in range(rows)
    ]
    table = table_of(definition, values)
    pieces = [table.slice(start, chunk) for start in range(0, rows, chunk)]
    coded = pa.chunked_array([piece["coded"].combine_chunks().dictionary_encode() for piece in pieces])
    table = pa.concat_tables(pieces).set_column(3, "coded", coded)
    store = Store.open()
    store.create_map(definition)
    loaded = store.map(definition)
    assert loaded.load(table) == rows
    assert len(loaded.stored) == max(1, rows // 5_000)
    assert contents(loaded.snapshot()) == in_order(values)
    assert [loaded.lookup(n, (2, 3)) for n in (0, rows - 1)] == [("once 0", "D0"), (f"once {rows - 1}", values[-1][3])]
    for index, wanted in ((indexes[0], None), (indexes[0], "C3"), (indexes[1], "C3"), (indexes[2], "once 5")):
        column = 2 if index is indexes[2] else 1
        found = [
            row[0]
            for source in loaded.snapshot().sources
            for row in source.rows_at((0,), source.positions(index.id, Lookup((wanted,))))
        ]
        assert sorted(found) == [row[0] for row in values if row[column] == wanted]


def test_no_segment_is_held_while_the_next_one_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder: what was saved is used from there, and the memory it was built in is free."""
    monkeypatch.setattr(segment_cut, "PART_ROWS", 5_000)
    built = []

    def finish_alone(*arguments: Any) -> Any:
        assert not any(each() is not None for each in built)
        segment = finish_segment(*arguments)
        built.append(weakref.ref(segment.batch))
        return segment

    monkeypatch.setattr(bulk_load, "finish_segment", finish_alone)
    store = Store.open(tmp_path, durability=Durability.OS)
    definition = orders_map(partitions=31)
    store.create_map(definition)
    orders, halves = store.map(definition), [table_of(definition, _orders(10_000, start)) for start in (0, 10_000)]
    orders.load_tables(iter(halves))
    orders.load(table_of(definition, _orders(15_000, 20_000)))
    assert len(built) == 7
    store.close()
