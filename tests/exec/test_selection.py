"""Aggregates over rows that a filter has chosen and nobody has gathered: the same answers as over gathered ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.exec.batch import ArrowBatch
from remuda.exec.selection import SelectedBatch, materialized
from remuda.expr import Column
from remuda.expr.evaluate.mask import true_rows
from remuda.types import BIGINT

COUNT = 3_000
BIG = 2**62


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    """`odd` rows have values that no sum survives; only rows that are not odd are asked for."""
    with remuda.open(partitions=7) as opened:
        opened.sql(
            "CREATE TABLE m (id BIGINT, odd BOOLEAN, d DOUBLE, bad DOUBLE, i INTEGER, big BIGINT, n DOUBLE,"
            " price DECIMAL(10, 2), wide DECIMAL(38, 2), PRIMARY KEY (id))"
        )
        ids = range(COUNT)
        opened.load(
            "m",
            pa.table(
                {
                    "id": ids,
                    "odd": [id_ % 2 == 1 for id_ in ids],
                    "d": [id_ / 8 for id_ in ids],
                    "bad": [[math.inf, math.nan, -math.inf][id_ % 3] if id_ % 2 else id_ / 8 for id_ in ids],
                    "i": pa.array([id_ - 1_500 for id_ in ids], pa.int32()),
                    "big": [BIG if id_ % 4 else -BIG for id_ in ids],
                    "n": [None if id_ % 3 == 0 else float(id_) for id_ in ids],
                    "price": pa.array([Decimal(id_) / 4 for id_ in ids], pa.decimal128(10, 2)),
                    "wide": pa.array([Decimal(id_) * 10**29 for id_ in ids], pa.decimal128(38, 2)),
                }
            ),
        )
        yield opened


EVEN = range(0, COUNT, 2)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("COUNT(*)", len(EVEN)),
        ("COUNT(d)", len(EVEN)),
        ("COUNT(n)", sum(1 for id_ in EVEN if id_ % 3)),
        ("SUM(d)", sum(id_ / 8 for id_ in EVEN)),
        ("SUM(bad)", sum(id_ / 8 for id_ in EVEN)),
        ("AVG(bad)", sum(id_ / 8 for id_ in EVEN) / len(EVEN)),
        ("SUM(i)", sum(id_ - 1_500 for id_ in EVEN)),
        ("AVG(i)", sum(id_ - 1_500 for id_ in EVEN) / len(EVEN)),
        ("SUM(big)", sum(BIG if id_ % 4 else -BIG for id_ in EVEN)),
        ("SUM(n)", float(sum(id_ for id_ in EVEN if id_ % 3))),
        ("SUM(price)", sum(Decimal(id_) / 4 for id_ in EVEN)),
        ("SUM(wide)", sum(Decimal(id_) * 10**29 for id_ in EVEN)),
        ("MIN(bad)", 0.0),
        ("MAX(i)", 1_498),
        ("SUM(DISTINCT i % 5)", 0),
        ("MEDIAN(d)", (COUNT - 2) / 16),
    ],
)
def test_totals_of_chosen_rows(grid: Any, call: str, expected: Any) -> None:
    assert grid.sql(f"SELECT {call} FROM m WHERE NOT odd").fetchall() == [(expected,)]
    assert grid.sql(f"SELECT {call} FROM (SELECT * FROM m WHERE NOT odd) t WHERE id >= 0").fetchall() == [(expected,)]


@pytest.mark.parametrize("call", ["SUM(bad)", "SUM(d)", "MIN(d)", "SUM(i)"])
def test_totals_of_no_rows_are_null(grid: Any, call: str) -> None:
    assert grid.sql(f"SELECT {call}, COUNT(*) FROM m WHERE id < 0").fetchall() == [(None, 0)]


def test_what_is_chosen_counts_as_it_is(grid: Any) -> None:
    assert grid.sql("SELECT SUM(bad) FROM m WHERE id IN (1, 3)").fetchall() != [(0.0,)]
    (row,) = grid.sql("SELECT SUM(bad) FROM m WHERE odd").fetchall()
    assert math.isnan(row[0])


COLUMN = (Column(1, "x", BIGINT),)


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 13])
def test_rows_are_gathered_when_they_are_asked_for(offset: int) -> None:
    values = pa.record_batch([pa.array(range(40))], names=["0"])
    condition = pa.array([None if value % 7 == 0 else value % 3 == 0 for value in range(offset + 40)])
    condition = condition.slice(offset)
    batch = SelectedBatch(COLUMN, values, true_rows(condition))
    expected = [(value,) for value, is_chosen in enumerate(condition.to_pylist()) if is_chosen]
    assert batch.row_count == len(expected)
    assert batch.tuples() == expected
    assert batch.row(1).tuples() == (expected[1],)
    assert np.flatnonzero(batch.mask).tolist() == [value for (value,) in expected]
    handed_on = materialized(batch)
    assert isinstance(handed_on, ArrowBatch)
    assert materialized(handed_on) is handed_on
