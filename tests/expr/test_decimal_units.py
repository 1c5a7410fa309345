"""Which 128-bit numbers are 64-bit ones."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from remuda.expr.functions.decimal_words import are_words
from remuda.types.arrow_arrays import decimal_words


@pytest.mark.parametrize(
    ("units", "fits"),
    [
        ([], True),
        ([0, 1, 2**63 - 1], True),
        ([0, 2**63], False),
        ([1, -1, -(2**63)], True),
        ([-(2**63) - 1], False),
        ([2**64], False),
        ([2**64 + 5, 7], False),
        ([-1, 2**63], False),
        ([10**37], False),
    ],
)
def test_are_words(units: list[int], fits: bool) -> None:
    array = pa.array([Decimal(unit) for unit in units], pa.decimal128(38, 0))
    low, high = decimal_words(array)
    assert are_words(np.ascontiguousarray(low).view(np.int64), high) is fits
