"""Direct scans leave out blocks that no row can pass in: the same rows are found, fewer are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.exec.scan import zone_ranges
from remuda.exec.scan.zone_ranges import joined

COUNT = 60_000
"""In one partition: more than seven blocks, through which `n` grows and `r` does not."""


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with remuda.open(partitions=2) as opened:
        opened.sql("CREATE TABLE m (k BIGINT, n BIGINT, x DOUBLE, r INTEGER, PRIMARY KEY (k, n)) PARTITION BY (k)")
        numbers = range(COUNT)
        columns = {
            "k": [number % 2 for number in numbers],
            "n": list(numbers),
            "x": [None if number < 20_000 else number / 2 for number in numbers],
            "r": pa.array([number * 7_919 % 1_000 for number in numbers], pa.int32()),
        }
        opened.load("m", pa.table(columns))
        opened.sql("INSERT INTO m VALUES (0, -5, 1.5, 3)")
        yield opened


@pytest.fixture(autouse=True)
def small_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_ranges, "SMALLEST_GAP", 1)


def rows_read(result: Any) -> int:
    result.fetchall()
    return sum(activity.rows_read for activity in result._execution.activity)


@pytest.mark.parametrize(
    ("condition", "model", "most"),
    [
        ("n >= 59000", lambda row: row.n >= 59_000, 20_000),
        ("n < 100", lambda row: row.n < 100, 20_000),
        ("n <= 100 AND r < 500", lambda row: row.n <= 100 and row.r < 500, 20_000),
        ("n > 30000 AND n < 30010", lambda row: 30_000 < row.n < 30_010, 35_000),
        ("n = 31000 AND r >= 0", lambda row: row.n == 31_000, 35_000),
        ("n > 70000 AND r >= 0", lambda _: False, 1),
        ("n > 10 AND n < 5", lambda _: False, 1),
        ("n > NULL", lambda _: False, 1),
        ("x < 10100.0", lambda row: row.x is not None and row.x < 10_100, 20_000),
        ("r = 500", lambda row: row.r == 500, COUNT + 1),
        ("n < 100 OR r = 500", lambda row: row.n < 100 or row.r == 500, COUNT + 1),
        ("n < 100 AND 10 / (n + 6) > 2", lambda row: row.n < 100 and 10 // (row.n + 6) > 2, COUNT + 1),
    ],
)
def test_filters_find_all_their_rows_and_read_few_others(grid: Any, condition: str, model: Any, most: int) -> None:
    wanted = sorted(row.n for row in grid.sql("SELECT * FROM m").fetchall() if model(row))
    assert sorted(n for (n,) in grid.sql(f"SELECT n FROM m WHERE {condition}").fetchall()) == wanted
    assert rows_read(grid.sql(f"SELECT n FROM m WHERE {condition}")) <= most


@pytest.mark.parametrize("low", [-10, 100, 59_999, 80_000, None])
def test_bounds_may_be_parameters(grid: Any, low: int | None) -> None:
    found = sorted(n for (n,) in grid.sql("SELECT n FROM m WHERE n >= ? AND r >= 0", low).fetchall())
    assert found == [n for n in [-5, *range(COUNT)] if low is not None and n >= low]


def test_blocks_are_left_out_of_one_partition_too(grid: Any) -> None:
    assert grid.sql("SELECT COUNT(*), MIN(n) FROM m WHERE k = 1 AND n > 40000 AND r >= 0").fetchall() == [
        (10_000, 40_001)
    ]


def test_small_gaps_are_read_and_large_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_ranges, "SMALLEST_GAP", 10)
    assert joined([(0, 100)], []) == []
    assert joined([(0, 100)], [(0, 5), (10, 20), (40, 50)]) == [(0, 20), (40, 50)]
    # What lies between two ranges belongs to somebody else, however little it is.
    assert joined([(0, 20), (22, 40)], [(10, 20), (22, 30)]) == [(10, 20), (22, 30)]
