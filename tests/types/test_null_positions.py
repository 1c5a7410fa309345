"""The positions of NULLs and of true values: of any share, in slices that begin and end within a byte of bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from remuda.exec.keys.key_interner import KeyInterner
from remuda.types import BIGINT, DOUBLE, SqlType
from remuda.types.arrow_arrays import null_mask, null_positions, true_positions

ROWS = 3000


def column(share: float, arrow: pa.DataType) -> pa.Array:
    """Make a column whose bytes at a NULL are those of a value that no row has."""
    random = np.random.default_rng(int(1000 * share))
    is_null = random.random(ROWS) < share
    values = np.where(is_null, 77, random.integers(0, 5, ROWS)).astype(arrow.to_pandas_dtype())
    validity = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(arrow, ROWS, [validity, pa.py_buffer(values)])


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.02, 0.1, 0.2, 0.7, 1.0])
def test_positions_are_those_that_the_mask_has(share: float) -> None:
    whole = column(share, pa.int64())
    random = np.random.default_rng(1)
    bounds = [(0, ROWS), (0, 0), (0, 1), (3, 4), (5, 21), (8, 16), (7, 2999), *random.integers(0, ROWS, (200, 2))]
    for start, stop in bounds:
        array = whole.slice(start, max(0, stop - start))
        expected = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()
        positions, mask = null_positions(array), null_mask(array)
        if not expected:
            assert positions is None
            assert mask is None
        else:
            assert positions is not None
            assert mask is not None
            assert positions.tolist() == np.flatnonzero(mask).tolist() == expected


def test_an_array_of_the_type_null_is_null_everywhere() -> None:
    positions = null_positions(pa.nulls(11))
    assert positions is not None
    assert positions.tolist() == list(range(11))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize(("sql_type", "arrow"), [(BIGINT, pa.int64()), (DOUBLE, pa.float64())])
def test_bytes_at_a_null_are_no_key(share: float, sql_type: SqlType, arrow: pa.DataType) -> None:
    array = column(share, arrow)
    keys = KeyInterner([sql_type, sql_type])
    ids = keys.intern([array, array.slice(0)])
    found = keys.keys(np.unique(ids))
    rows = {tuple(row) for row in zip(array.to_pylist(), array.to_pylist(), strict=True)}
    assert {tuple(row) for row in zip(*(each.to_pylist() for each in found), strict=True)} == rows
    assert len(np.unique(ids)) == keys.distinct == len(rows)
    assert (keys.find([array, array]) == ids).all()


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 11, 64, 1000, 4097])
def test_true_values_are_found_in_either_way(rows: int) -> None:
    random = np.random.default_rng(rows)
    for share in (0.0, 0.01, 0.04, 0.05, 0.08, 0.1, 0.11, 0.5, 1.0):
        mask = random.random(rows) < share
        before = mask.copy()
        assert true_positions(mask).tolist() == np.flatnonzero(mask).tolist()
        assert (mask == before).all()
