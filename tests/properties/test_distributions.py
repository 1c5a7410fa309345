"""Statistics of drawn data: bounds that hold for every distribution, every type and every segmentation.

Data is drawn as a mixture of frequent values, uniform, skewed and repeated ones, and NULLs. It is put into a map as one
segment, as several of any size, and with a memtable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from remuda.catalog import ColumnStatistics, MapDefinition
from remuda.optimizer.estimates.selectivity import selectivity
from remuda.storage import Store
from remuda.storage.segment.summary.value_counts import SAMPLE_ROWS
from remuda.types import BIGINT, DATE, DOUBLE, VARCHAR, SqlType, decimal
from remuda.types.normalized_key import comparable
from tests.optimizer.maps import define, filter_of
from tests.storage.maps import map_of, table_of

SEEDS = range(12)
TYPES: dict[str, tuple[SqlType, Callable[[int], Any]]] = {
    "BIGINT": (BIGINT, lambda number: number * 7_919 - 10**6),
    "narrow BIGINT": (BIGINT, lambda number: number),
    "DOUBLE": (DOUBLE, lambda number: number / 8),
    "DECIMAL": (decimal(12, 2), lambda number: Decimal(number).scaleb(-2)),
    "long DECIMAL": (decimal(38, 2), lambda number: Decimal(number).scaleb(-2)),
    "DATE": (DATE, lambda number: number % 30_000),
    "VARCHAR": (VARCHAR, lambda number: f"{number:09}"),
}
"""How a drawn number becomes a value; the order of values is that of the numbers, but for dates."""
HISTOGRAM_ERROR = 0.012
"""How far the share of rows up to a value may be from the truth: less than the 64th part between two ends, as values
between them lie nearly evenly here."""


class Drawn:
    """Rows of one column, in random order, with NULLs."""

    def __init__(self, seed: int, type_name: str, rows: int = 3_000) -> None:
        self.random = Random(f"{seed} {type_name}")
        self.type, make = TYPES[type_name]
        frequent = [self.random.randrange(20_000) for _ in range(self.random.choice([0, 1, 3, 30]))]
        spread = self.random.choice([2, 90, 101, 500, 20_000])
        self.null_share = self.random.choice([0.0, 0.0, 0.3, 0.97])
        self.values: list[Any] = [
            None if self.random.random() < self.null_share else make(self._number(frequent, spread))
            for _ in range(rows)
        ]
        self.present = [value for value in self.values if value is not None]

    def _number(self, frequent: list[int], spread: int) -> int:
        kind = self.random.random()
        if frequent and kind < 0.5:
            return frequent[min(int(self.random.expovariate(0.5)), len(frequent) - 1)]
        return int(spread * self.random.random() ** (3 if kind < 0.7 else 1))

    def statistics(self, cuts: list[int], recent: int = 0) -> ColumnStatistics:
        """Of a map with a segment for each range between the cuts, and the last rows in the memtable."""
        definition = map_of([("id", BIGINT), ("value", self.type)])
        rows = list(enumerate(self.values))
        stored = len(rows) - recent
        store = Store.open(None)
        try:
            store.create_map(definition)
            held = store.map(definition)
            for start, stop in zip([0, *cuts], [*cuts, stored], strict=True):
                if stop > start:
                    held.load(table_of(definition, rows[start:stop]))
            if recent:
                held.put(rows[stored:])
            return held.statistics().columns["value"]
        finally:
            store.close()

    def segmentation(self) -> tuple[list[int], int]:
        recent = self.random.choice([0, 1, 40, 700])
        stored = len(self.values) - recent
        return sorted(self.random.sample(range(1, stored), self.random.choice([0, 1, 2, 6]))), recent


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_segment_knows_its_common_values_exactly(seed: int, type_name: str) -> None:
    """The segments of these tests are counted whole."""
    drawn = Drawn(seed, type_name)
    assert len(drawn.values) <= SAMPLE_ROWS
    found = drawn.statistics([])
    counts = Counter(drawn.present)
    assert found.null_share == pytest.approx(1 - len(drawn.present) / len(drawn.values))
    assert found.distinct == len(counts)
    for value, share in found.common:
        assert share * len(drawn.values) == pytest.approx(counts[value]), value
    least = min((share for _, share in found.common), default=0.0)
    for value, count in counts.items():
        if comparable(value) not in found.shares and len(counts) > 1:
            mean = len(drawn.present) / len(counts)
            assert count <= max(1.5 * mean, least * len(drawn.values)) + 1e-6, "a frequent value is among them"
    _check_sums(found)


def _check_sums(found: ColumnStatistics) -> None:
    """All shares together are the whole, and none is negative."""
    common = sum(share for _, share in found.common)
    assert all(0 < share <= 1 for _, share in found.common)
    assert found.null_share + common + found.rest == pytest.approx(1.0, abs=1e-6)
    if found.histogram is not None:
        ends, up_to = found.histogram.ends, found.histogram.up_to
        assert [comparable(end) for end in ends] == sorted({comparable(end) for end in ends})
        assert list(up_to) == sorted(up_to)
        assert up_to[0] >= 0
        assert up_to[-1] == 1.0


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_segmentation_describes_the_same_rows(seed: int, type_name: str) -> None:
    drawn = Drawn(seed, type_name)
    cuts, recent = drawn.segmentation()
    found = drawn.statistics(cuts, recent)
    _check_sums(found)
    assert found.null_share == pytest.approx(1 - len(drawn.present) / len(drawn.values))
    assert (found.minimum, found.maximum) == (min(drawn.present), max(drawn.present))
    counts = Counter(drawn.present)
    rows = len(drawn.values)
    for value, share in found.common:
        # A part in which the value is not common knows it as one of its other values, of which it has few.
        assert share * rows == pytest.approx(counts[value], rel=0.1, abs=2), value
    total = len(drawn.present)
    for value in drawn.random.sample(drawn.present, 30):
        actual = sum(comparable(other) <= comparable(value) for other in drawn.present) / total
        assert abs(_share_up_to(found, value) - actual) <= HISTOGRAM_ERROR, value


def _share_up_to(found: ColumnStatistics, value: Any) -> float:
    """Of the rows that have a value."""
    common = sum(share for key, share in found.shares.items() if key <= comparable(value))
    others = 0.0 if found.histogram is None else found.histogram.share_up_to(value)
    assert others is not None
    return (common + found.rest * others) / (1 - found.null_share)


MAP: MapDefinition = define()
CONDITIONS = ("f = {}", "f <> {}", "f < {}", "f <= {}", "f > {}", "f >= {}", "f BETWEEN {} AND {}", "f IN ({}, {})")


@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_of_conditions(seed: int) -> None:
    """A condition and its complement have all rows that are not NULL; a range is no larger than one around it."""
    drawn = Drawn(seed, "narrow BIGINT")
    cuts, recent = drawn.segmentation()
    found = drawn.statistics(cuts, recent)

    def share(condition: str) -> float:
        estimated = selectivity(filter_of(condition, MAP), lambda _: found)
        assert 0.0 <= estimated <= 1.0, condition
        return estimated

    for _ in range(20):
        one, other = sorted(drawn.random.sample([*drawn.present, -5, 30_000], 2))
        for condition in CONDITIONS:
            share(condition.format(one, other))
        whole = 1.0 - found.null_share
        assert share(f"f = {one}") + share(f"f <> {one}") == pytest.approx(whole)
        assert share(f"f <= {one}") + share(f"f > {one}") == pytest.approx(whole)
        assert share(f"f < {one}") <= share(f"f <= {one}") <= share(f"f <= {other}") + 1e-9
        assert share(f"f BETWEEN {one} AND {one}") >= share(f"f = {one}") - 1e-9, "a range of one value is not empty"
        common = found.shares.get(comparable(one))
        if common is not None:
            assert share(f"f = {one}") == common
