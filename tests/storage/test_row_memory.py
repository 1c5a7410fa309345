"""Rows are taken as Arrow takes them, into memory of numpy."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from remuda.storage.segment import row_memory
from remuda.storage.segment.row_memory import rows_of

_COLUMNS: dict[str, pa.Array] = {
    "bool": pa.array([True, None, False, True]),
    "int8": pa.array([1, None, -3, 4], pa.int8()),
    "int64": pa.array([2**62, 2, None, -(2**63)]),
    "no null": pa.array([1.5, 2.5, float("nan"), -0.0]),
    "float": pa.array([1.5, None, 2.5, 0.0], pa.float32()),
    "decimal": pa.array([Decimal("1.25"), None, Decimal("-3.50"), Decimal("0.00")], pa.decimal128(38, 2)),
    "date": pa.array([dt.date(2024, 1, 1), None, dt.date(1969, 12, 31), dt.date(1, 1, 1)]),
    "timestamp": pa.array([dt.datetime(2024, 1, 1), None, None, dt.datetime(1900, 1, 1)], pa.timestamp("us", "UTC")),
    "string": pa.array(["a", None, "", "ä" * 40]),
    "binary": pa.array([b"a", None, b"", b"\xff" * 40]),
    "dictionary": pa.array(["b", "a", None, "b"]).dictionary_encode(),
    "nothing": pa.array([None, None, None, None], pa.int32()),
}


@pytest.mark.parametrize("column", _COLUMNS.values(), ids=_COLUMNS.keys())
@pytest.mark.parametrize("large", [1, 1 << 22])
def test_rows_are_those_at_the_positions(column: pa.Array, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_memory, "LARGE", large)
    for given in (column, column.slice(1), pa.chunked_array([column.slice(2), column, column.slice(1, 2)])):
        for positions in (pa.array([], pa.int64()), _positions(given, np.uint32), _positions(given, np.int64)):
            found = rows_of(given, positions)
            found.validate(full=True)
            wanted = pc.take(given, positions)
            if isinstance(wanted, pa.ChunkedArray):
                wanted = wanted.combine_chunks()
            assert found.type == wanted.type
            assert found.null_count == wanted.null_count
            assert _bits(found) == _bits(wanted)


def _positions(column: pa.Array | pa.ChunkedArray, dtype: Any) -> pa.Array:
    return pa.array(np.array([len(column) - 1, 0, 1, 1, 0], dtype))


def _bits(array: pa.Array) -> list[str]:
    """NaN and the sign of zero are seen in the text, not by `==`."""
    return [repr(value) for value in array.to_pylist()]
