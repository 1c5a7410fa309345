"""Statistics: exact where that is cheap, near enough elsewhere, and kept up by checkpoints, loads and re-opening."""

from __future__ import annotations

import math
import pickle
import random
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.catalog import ColumnStatistics
from remuda.storage import Durability, Store
from remuda.storage.load import segment_cut
from remuda.storage.segment.summary.column_histogram import combined, part_of
from remuda.storage.segment.summary.column_summary import domain_of
from remuda.storage.segment.summary.value_counts import count_values
from remuda.types import BIGINT, DOUBLE, VARCHAR, SqlType
from remuda.types.normalized_key import comparable
from tests.storage.maps import map_of, table_of
from tests.storage.sample_values import TYPES, random_value

COUNT = 20_000


def test_of_very_many_segments_some_stand_for_all() -> None:
    parts = [part_of(1_000, 901, ((-1, 100),), tuple(range(start, 900 + start, 9))) for start in range(300)]
    common, histogram = combined(parts)
    assert [value for value, _ in common] == [-1]
    assert common[0][1] == pytest.approx(30_000)
    assert histogram is not None
    values = np.concatenate([np.arange(start, 900 + start) for start in range(300)])
    for value in (0, 200, 450, 600, 900, 1150):
        assert histogram.share_up_to(value) == pytest.approx((values <= value).mean(), abs=0.03)


def _statistics(store: Store) -> dict[str, ColumnStatistics]:
    (definition,) = store.catalog.maps.values()
    return dict(store.map(definition).statistics().columns)


def _share_of_each_range(values: list[Any], ends: tuple[Any, ...]) -> list[float]:
    bounds = [comparable(end) for end in ends]
    counts = [0] * (len(ends) - 1)
    for value in values:
        counts[min(max(bisect_right(bounds, comparable(value)) - 1, 0), len(counts) - 1)] += 1
    return [count / len(values) for count in counts]


def test_statistics_of_loaded_rows_and_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_cut, "PART_ROWS", 5_000)
    choose = random.Random(7)
    definition = map_of([("id", BIGINT), ("city", VARCHAR), ("skewed", DOUBLE)], partitions=31)
    rows = [
        (number, None if number % 4 == 0 else f"city {number % 50:02}", choose.expovariate(1.0))
        for number in range(COUNT)
    ]
    store = Store.open(tmp_path, durability=Durability.OS)
    store.create_map(definition)
    store.map(definition).load(table_of(definition, rows))
    assert len(store.map(definition).stored) == 4

    def check() -> None:
        found = _statistics(store)
        assert store.map(definition).statistics().rows == len(rows)
        present = [[row[number] for row in rows if row[number] is not None] for number in range(3)]
        for name, values in zip(("id", "city", "skewed"), present, strict=True):
            column = found[name]
            assert (column.minimum, column.maximum) == (min(values), max(values))
            assert column.null_share == pytest.approx(1 - len(values) / len(rows))
            assert column.distinct == pytest.approx(len(set(values)), rel=0.1)
            ends = () if column.histogram is None else column.histogram.ends
            described = [*ends, *(value for value, _ in column.common)]
            assert (min(described), max(described)) == (min(values), max(values))
            assert list(ends) == sorted(set(ends))
            for value, share in column.common:
                assert share == pytest.approx(values.count(value) / len(rows), rel=0.1, abs=2 / len(rows))
        assert {value for value, _ in found["city"].common} == set(present[1])
        for number, name in ((0, "id"), (2, "skewed")):
            histogram = found[name].histogram
            assert histogram is not None
            others = [value for value in present[number] if comparable(value) not in found[name].shares]
            shares = _share_of_each_range(others, histogram.ends)
            assert len(shares) >= 16
            assert max(shares) < 3 / len(shares)

    check()
    fresh = [(number, "new city", 50.0) for number in range(COUNT, COUNT + 1000)]
    store.map(definition).put(fresh)
    rows += fresh
    check()
    store.checkpoint()
    check()
    store.close()
    store = Store.open(tmp_path, durability=Durability.OS)
    check()
    store.close()


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_every_type_has_a_histogram_that_survives_the_manifest(sql_type: SqlType, tmp_path: Path) -> None:
    choose = random.Random(str(sql_type))
    definition = map_of([("id", BIGINT), ("value", sql_type), ("nothing", sql_type)])
    values = [random_value(sql_type, choose) for _ in range(500)]
    store = Store.open(tmp_path, durability=Durability.OS)
    store.create_map(definition)
    store.map(definition).put([(number, value, None) for number, value in enumerate(values)])
    store.checkpoint()
    found = _statistics(store)
    assert found["nothing"].histogram is None
    assert found["nothing"].common == ()
    described = _described(found["value"])
    assert described
    known = {comparable(value) for value in values}
    assert all(end in known for end, _ in described)
    ends = [] if found["value"].histogram is None else [comparable(end) for end in found["value"].histogram.ends]
    assert all(one < other for one, other in pairwise(ends))
    store.close()
    assert _described(_statistics(Store.open(tmp_path, read_only=True))["value"]) == described


def _described(column: ColumnStatistics) -> list[tuple[Any, float]]:
    """The most common values with their shares, and the ends of the histogram with what lies up to them."""
    histogram = column.histogram
    ends = [] if histogram is None else list(zip(histogram.ends, histogram.up_to, strict=True))
    return [(comparable(value), share) for value, share in [*column.common, *ends]]


def test_histograms_are_put_together_by_interpolation() -> None:
    """20 rows that lie evenly from 0 to 20, and 20 from 15 to 40 with the middle at 30.

    One in 20 of the latter is 15, the others up to 30 are nine, a third of which lies up to 20.
    """
    _, histogram = combined([part_of(20, 20, (), (0, 10, 20)), part_of(20, 20, (), (15, 30, 40))])
    assert histogram is not None
    assert (histogram.ends[0], histogram.ends[-1]) == (0, 40)
    assert histogram.share_up_to(20) == pytest.approx((20 + 1 + 9 / 3) / 40)
    assert histogram.share_up_to(30) == pytest.approx(30 / 40)
    _, histogram = combined([part_of(90, 90, (), (0, 5, 10)), part_of(10, 10, (), (100, 105, 110))])
    assert histogram is not None
    assert histogram.share_up_to(99) == pytest.approx(0.9, abs=0.01)
    # Where nothing is known of some rows, nothing is known of all.
    assert combined([part_of(2, 2, (), (1, 2)), part_of(2, 2, (), ())]) == ((), None)
    assert combined([]) == ((), None)
    _, histogram = combined([part_of(2, 2, (), (1.0, math.nan)), part_of(2, 2, (), (0.0, 2.0))])
    assert histogram is not None
    assert histogram.ends[0] == 0.0
    assert math.isnan(histogram.ends[-1])


def test_a_repeated_end_of_an_earlier_version_is_a_common_value() -> None:
    """Segments of earlier versions have no common values; a value that fills 14 of 16 ranges is one all the same."""
    common, histogram = combined([part_of(1600, 50, (), (0, *(7,) * 15, 100))])
    assert common == ((7, 1400.0),)
    assert histogram is not None
    assert histogram.ends == (0, 7, 100)


def test_a_common_value_of_one_segment_is_one_of_the_others_elsewhere() -> None:
    """500 rows of a segment are 7; of another, whose 1,000 rows have 100 values, ten are."""
    even = tuple(range(0, 101, 10))
    parts = [part_of(1_000, 101, ((7, 500),), even), part_of(1_000, 100, (), even), part_of(50, 50, (), (200, 300))]
    common, histogram = combined(parts)
    assert common == ((7, 510.0),)
    assert histogram is not None
    assert histogram.share_up_to(150) == pytest.approx((500 + 990) / (500 + 990 + 50), rel=0.01)


def test_one_more_row_changes_no_estimate(tmp_path: Path) -> None:
    """No value gets more frequent because the memtable has one row, nor after a checkpoint, nor reopened."""
    definition = map_of([("id", BIGINT), ("a", BIGINT)])
    rows = [(number, number % 1_000) for number in range(30_000)]
    store = Store.open(tmp_path, durability=Durability.OS)
    store.create_map(definition)
    store.map(definition).load(table_of(definition, rows))

    def check(number: int) -> None:
        column = _statistics(store)["a"]
        rare = column.rare
        assert rare is not None
        for value in (0, 65, 500, 999):
            share = column.shares.get(comparable(value), rare)
            assert share * number == pytest.approx(30, rel=0.1), value
        assert column.distinct == pytest.approx(1_000, rel=0.05)

    check(30_000)
    store.map(definition).put([(99_999, 65)])
    check(30_001)
    store.checkpoint()
    check(30_001)
    store.map(definition).analyze()
    check(30_001)
    store.close()
    store = Store.open(tmp_path, durability=Durability.OS)
    check(30_001)
    store.close()


def test_statistics_are_told_to_other_processes(tmp_path: Path) -> None:
    """A reader of the Spark data source carries them to its tasks, which have no rows to sample."""
    definition = map_of([("id", BIGINT), ("a", BIGINT)])
    store = Store.open(tmp_path, durability=Durability.OS)
    store.create_map(definition)
    store.map(definition).load(table_of(definition, [(number, number) for number in range(20_000)]))
    statistics = store.map(definition).statistics()
    assert statistics.relations.ascends("a", "id")
    told = pickle.loads(pickle.dumps(statistics))
    assert (told.rows, told.columns) == (statistics.rows, statistics.columns)
    assert not told.relations.ascends("a", "id")
    store.close()


def test_values_that_lie_side_by_side_are_counted_as_any_others() -> None:
    """Four lines of an order beside each other: of evenly spread rows no two are of one order."""
    orders = np.arange(600_000) // 4 * 1_000
    for rows in (orders, np.random.default_rng(1).permutation(orders)):
        counted = count_values(pa.array(rows), BIGINT, 0, int(orders[-1]))
        assert 140_000 < domain_of(counted.distinct, counted.seen) < 200_000


def test_columns_that_depend_on_each_other_are_told_from_frequent_values() -> None:
    """Ten rows of a ticket have one buyer and one day; few payers pay for most of all items."""
    random_numbers, rows = np.random.default_rng(5), 60_000
    tickets = np.arange(rows) // 10
    columns = {
        "id": np.arange(rows),
        "buyer": random_numbers.integers(0, 3_000, rows // 10)[tickets],
        "day": random_numbers.integers(0, 500, rows // 10)[tickets],
        "payer": np.minimum(random_numbers.zipf(1.2, rows), 10_000),
        "item": random_numbers.integers(0, 300, rows),
    }
    definition = map_of([(name, BIGINT) for name in columns])
    store = Store.open(None)
    store.create_map(definition)
    store.map(definition).load(pa.table(columns))
    relations = store.map(definition).statistics().relations
    for one, other in (("buyer", "day"), ("day", "buyer")):
        found = relations.dependent((one,), (other,))
        assert found == pytest.approx(rows / 10, rel=0.3)
    for one, other in (("payer", "item"), ("item", "payer"), ("buyer", "item"), ("id", "day")):
        assert relations.dependent((one,), (other,)) is None, (one, other)
    assert relations.combinations(("payer", "item")) is not None, "values that are frequent are often together"
    store.close()
