"""Statistics: exact where that is cheap, near enough elsewhere, and kept up by checkpoints, loads and re-opening."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from remuda.catalog import ColumnStatistics
from remuda.storage import Durability, Store
from remuda.storage.load import bulk_load
from remuda.storage.segment.histogram import combined_histogram
from remuda.types import BIGINT, DOUBLE, VARCHAR, SqlType
from remuda.types.normalized_key import comparable
from tests.storage.maps import map_of, table_of
from tests.storage.sample_values import TYPES, random_value

COUNT = 20_000


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
    monkeypatch.setattr(bulk_load, "PART_ROWS", 5_000)
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
            assert column.histogram[0] == min(values)
            assert column.histogram[-1] == max(values)
            assert list(column.histogram) == sorted(column.histogram)
        for number, name in ((0, "id"), (2, "skewed")):
            shares = _share_of_each_range(present[number], found[name].histogram)
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
    assert found["nothing"].histogram == ()
    histogram = found["value"].histogram
    assert histogram
    known = {comparable(value) for value in values}
    assert all(comparable(end) in known for end in histogram)
    assert all(comparable(one) <= comparable(other) for one, other in pairwise(histogram))
    store.close()
    again = _statistics(Store.open(tmp_path, read_only=True))["value"].histogram
    assert [comparable(end) for end in again] == [comparable(end) for end in histogram]


def test_histograms_are_put_together_by_weight() -> None:
    assert combined_histogram([(20, (0, 10, 20)), (20, (15, 30, 40))], 2) == (0, 20, 40)
    assert combined_histogram([(90, (0, 5, 10)), (10, (100, 105, 110))], 10)[-2:] == (10, 110)
    assert combined_histogram([(1, (1, 2)), (1, ())], 4) == ()
    assert combined_histogram([], 4) == ()
    with_nan = combined_histogram([(2, (1.0, math.nan)), (2, (0.0, 2.0))], 2)
    assert with_nan[0] == 0.0
    assert math.isnan(with_nan[-1])
