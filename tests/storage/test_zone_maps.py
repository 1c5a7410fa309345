"""Zone maps leave out only what cannot match, and do leave out what they can."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from remuda.storage import UNBOUNDED, Durability, MapSnapshot, Range, Store
from remuda.storage.segment import zone_map
from remuda.types import BIGINT, LONG_DIGITS, TIMESTAMP, VARCHAR, Kind, SqlType
from remuda.types.normalized_key import comparable
from tests.storage.maps import contents, map_of, table_of
from tests.storage.ranges import is_within
from tests.storage.sample_values import TYPES, random_value

ROWS = 300
WITHOUT_ZONES = {Kind.BOOLEAN, Kind.VARBINARY}


def _values(sql_type: SqlType, choose: random.Random) -> list[Any]:
    """Ascending, so that there is something to leave out, in runs that repeat and with NULLs between them."""
    some = [random_value(sql_type, choose) for _ in range(60)]
    ascending = sorted((value for value in some if value is not None), key=comparable)
    values = [ascending[number * len(ascending) // ROWS] for number in range(ROWS)]
    return [None if choose.random() < 0.1 or 100 < number < 140 else value for number, value in enumerate(values)]


def _read(snapshot: MapSnapshot, wanted: Range, partitions: np.ndarray | None) -> tuple[list[Any], int]:
    """The keys of the matching rows in the blocks, and how many rows were read for them."""
    found, read = [], 0
    for source in snapshot.sources:
        for start, stop in source.blocks(partitions, "value", wanted):
            assert start < stop
            for start_of_partition, stop_of_partition in source.ranges(partitions):
                assert not start < start_of_partition < stop
                assert not start < stop_of_partition < stop
            batch = source.read(["id"], start, stop)
            found += batch.column(0).to_pylist()
            read += batch.num_rows
    return found, read


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_no_match_is_left_out(sql_type: SqlType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(zone_map, "ZONE_ROWS", 8)
    choose = random.Random(str(sql_type))
    definition = map_of([("id", BIGINT), ("value", sql_type)], partitions=3)
    store = Store.open(tmp_path, durability=Durability.OS)
    store.create_map(definition)
    rows = list(enumerate(_values(sql_type, choose)))
    store.map(definition).load(table_of(definition, rows), "replace")
    store.map(definition).put([(ROWS, rows[0][1])])
    rows.append((ROWS, rows[0][1]))
    present = [value for _, value in rows if value is not None]
    snapshots = [store.map(definition).snapshot()]
    snapshots.append(Store.open(tmp_path, read_only=True).map(definition).snapshot())
    least_read = ROWS
    for _ in range(60):
        ends = sorted([choose.choice(present), choose.choice(present)], key=comparable)
        low, high = (UNBOUNDED if choose.random() < 0.2 else end for end in ends)
        wanted = Range(low, choose.random() < 0.5, high, choose.random() < 0.5)
        for snapshot in snapshots:
            for partitions in (None, np.array([0, 2])):
                found, read = _read(snapshot, wanted, partitions)
                there = {row[0] for row in contents(snapshot, partitions)}
                assert {key for key, value in rows if key in there and is_within(value, wanted)} <= set(found)
                least_read = min(least_read, read)
    if sql_type.kind not in WITHOUT_ZONES and sql_type.precision <= LONG_DIGITS:
        assert least_read < ROWS / 3
        for nothing in (Range(None), Range(high=None)):
            assert _read(snapshots[0], nothing, None)[0] == [ROWS]


def test_a_column_that_grows_with_time_is_read_in_part() -> None:
    definition = map_of([("id", BIGINT), ("value", TIMESTAMP), ("name", VARCHAR)], partitions=2)
    store = Store.open()
    store.create_map(definition)
    count = 100_000
    store.map(definition).load(table_of(definition, [(number, number * 1000, "x") for number in range(count)]))
    found, read = _read(store.map(definition).snapshot(), Range(50_000_000, high=51_000_000), None)
    assert set(range(50_000, 51_001)) <= set(found)
    assert read <= 4 * zone_map.ZONE_ROWS
    (source,) = store.map(definition).snapshot().sources
    assert source.blocks(None, "name", Range("y")) == []
    assert source.blocks(np.array([1]), "name", Range("x")) == source.ranges(np.array([1]))
