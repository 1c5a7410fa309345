"""Arrow arrays made of numpy arrays and lists without pandas, against those that pyarrow makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.types.arrow_arrays import arrow_of, arrow_of_list

KINDS = (
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)


@given(st.one_of(*(st.lists(st.none() | kind, max_size=30) for kind in KINDS)))
def test_a_list_is_what_pyarrow_makes_of_it(values: list[Any]) -> None:
    found = arrow_of_list(values)
    if all(value is None for value in values):
        assert found is None
        return
    assert found is not None
    found.validate(full=True)
    assert found.equals(pa.array(values))


@pytest.mark.parametrize("values", [[], [None], [1, "a"], [1, 1.5], [True], [b"a"]])
def test_other_lists_are_left_to_pyarrow(values: list[Any]) -> None:
    assert arrow_of_list(values) is None


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 8, 21])
def test_numbers_are_what_pyarrow_makes_of_them(dtype: Any, rows: int) -> None:
    values = (np.arange(2 * rows)[::2] % 3).astype(dtype)
    absent = np.arange(rows) % 4 == 1
    for mask in (None, absent):
        found = arrow_of(values, mask)
        found.validate(full=True)
        assert found.equals(pa.array(values, mask=mask))
