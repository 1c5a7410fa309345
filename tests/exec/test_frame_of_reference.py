"""Narrow forms of columns: every comparison is what it is for the column itself."""

from __future__ import annotations

import datetime as dt
import operator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.exec.scan import frame_of_reference
from remuda.exec.scan.frame_of_reference import EncodedColumn, encode_column
from remuda.expr.column_comparison import StoredComparison
from remuda.types import BIGINT, DATE, INTEGER, SMALLINT, TIMESTAMP, decimal
from remuda.types.arrow_arrays import stored_array

COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize(
    ("values", "sql_type", "width"),
    [
        ([5, 260, 17], INTEGER, 1),
        ([-(2**31), -(2**31) + 255], INTEGER, 1),
        ([2**31 - 1, 2**31 - 200], INTEGER, 1),
        ([0, 256], INTEGER, 2),
        ([0, 65_536], INTEGER, None),
        ([-5, 200], SMALLINT, 1),
        ([-5, 300], SMALLINT, None),
        ([2**63 - 1, 2**63 - 70_000], BIGINT, 4),
        ([-(2**63), 2**63 - 1], BIGINT, None),
        ([7, 7, 7], BIGINT, 1),
        ([19_000, 21_500], DATE, 2),
        ([10**15, 10**15 + 10**6], TIMESTAMP, 4),
    ],
)
def test_width_and_comparisons(values: list[int], sql_type: Any, width: int | None) -> None:
    narrow = encode_column(stored_array(values, sql_type), sql_type)
    if width is None:
        assert narrow is None
        return
    assert narrow is not None
    assert narrow.distances.dtype.itemsize == width
    near = {value + step for value in values for step in (-1, 0, 1)} | {-(2**63), 2**63 - 1, 0}
    for function, compare in COMPARE.items():
        for wanted in near:
            passing = narrow.mask(StoredComparison(function, wanted), slice(0, len(values)))
            assert passing.dtype == np.bool_
            assert passing.tolist() == [compare(value, wanted) for value in values], (function, wanted)


def test_rows_of_a_slice() -> None:
    narrow = EncodedColumn(np.array([3, 1, 2, 0], np.uint8), 10, 3)
    assert narrow.mask(StoredComparison(">", 11), slice(1, 3)).tolist() == [False, True]


def test_decimals_are_kept_by_their_units() -> None:
    values = [Decimal("0.04"), Decimal("-0.10"), Decimal("2.00")]
    narrow = encode_column(pa.array(values, pa.decimal128(12, 2)), decimal(12, 2))
    assert narrow is not None
    assert (narrow.least, narrow.widest, narrow.distances.tolist()) == (-10, 210, [14, 0, 210])


def test_columns_without_values_have_none() -> None:
    assert encode_column(pa.array([None, None], pa.int32()), INTEGER) is None
    assert encode_column(pa.array([], pa.int32()), INTEGER) is None


def test_nulls_pass_no_comparison_whatever_is_stored_at_them() -> None:
    stored = np.array([5, 2**31 - 1, 9, -(2**31)], np.int32)
    column = pa.Array.from_buffers(pa.int32(), 4, [pa.py_buffer(bytes([0b0101])), pa.py_buffer(stored)])
    assert column.to_pylist() == [5, None, 9, None]
    narrow = encode_column(column, INTEGER)
    assert narrow is not None
    assert (narrow.least, narrow.widest) == (5, 4)
    for function, compare in COMPARE.items():
        for operand in (-(2**31), 0, 5, 6, 9, 10, 2**31 - 1):
            passing = narrow.mask(StoredComparison(function, operand), slice(0, 4)).tolist()
            assert passing == [compare(5, operand), False, compare(9, operand), False], (function, operand)


QUERIES = [
    "SELECT id FROM m WHERE n < 5",
    "SELECT id FROM m WHERE n >= 40 AND d < 0.07",
    "SELECT id FROM m WHERE d = 0.035",
    "SELECT id FROM m WHERE d > 0.035 AND s = 'b'",
    "SELECT id FROM m WHERE n = 3 OR n = 4",
    "SELECT id FROM m WHERE day >= DATE '2024-02-01' AND day < DATE '2024-03-01' AND n <> 7",
    "SELECT id FROM m WHERE n > 1000",
    "SELECT id FROM m WHERE n < ?",
    "SELECT COUNT(*), SUM(id) FROM m WHERE n < 25",
    "SELECT id FROM m WHERE maybe > 3",
]


@pytest.mark.parametrize("members", [1, 3])
def test_scans_find_the_same_rows(monkeypatch: pytest.MonkeyPatch, members: int) -> None:
    rows = 3_000
    day = dt.date(2024, 1, 1)
    with remuda.open(members=members) as grid:
        grid.sql(
            "CREATE TABLE m (id BIGINT, n INTEGER, d DECIMAL(12, 2), s VARCHAR, day DATE, maybe INTEGER, "
            "PRIMARY KEY (id))"
        )
        columns = {
            "id": range(rows),
            "n": [row % 50 for row in range(rows)],
            "d": pa.array([Decimal(row % 11) / 100 for row in range(rows)], pa.decimal128(12, 2)),
            "s": ["ab"[row % 2] for row in range(rows)],
            "day": [day + dt.timedelta(days=row % 100) for row in range(rows)],
            "maybe": [row % 9 if row % 5 else None for row in range(rows)],
        }
        grid.load("m", pa.table(columns))

        def answers() -> list[Any]:
            return [
                sorted(grid.sql(sql, *([given] if "?" in sql else [])).fetchall())
                for sql in QUERIES
                for given in ((3, None) if "?" in sql else (None,))
            ]

        grid.sql("CHECKPOINT")
        before = answers()
        monkeypatch.setattr(frame_of_reference, "SCANS_BEFORE", -1)
        monkeypatch.setattr(frame_of_reference, "FEWEST_ROWS", 0)
        made = []
        make = frame_of_reference.encode_column
        monkeypatch.setattr(frame_of_reference, "encode_column", lambda *given: made.append(given) or make(*given))
        assert answers() == before
        assert made
        # Rows that later writes hide, and rows of the log, are as they are.
        grid.sql("DELETE FROM m WHERE id < 700")
        grid.sql("UPDATE m SET n = 3 WHERE id BETWEEN 1000 AND 1100")
        after = answers()
        grid.sql("CHECKPOINT")
        assert answers() == after
        assert grid.sql("SELECT COUNT(*) FROM m WHERE n = 3").fetchall() == [
            (sum(row % 50 == 3 or 1000 <= row <= 1100 for row in range(700, rows)),)
        ]


def test_a_column_is_kept_when_it_has_been_asked_about_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_of_reference, "FEWEST_ROWS", 0)
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n INTEGER, PRIMARY KEY (id))")
        grid.load("m", pa.table({"id": range(1_000), "n": [row % 5 for row in range(1_000)]}))
        grid.sql("CHECKPOINT")
        made: list[str] = []
        make = frame_of_reference.encode_column
        monkeypatch.setattr(frame_of_reference, "encode_column", lambda *given: made.append("made") or make(*given))
        counts = []
        for _ in range(6):
            assert grid.sql("SELECT COUNT(id) FROM m WHERE n = 2").fetchall() == [(200,)]
            counts.append(len(made))
        assert counts[0] == 0
        assert counts[-1] == counts[-2] > 0
