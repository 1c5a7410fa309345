"""`stable_order` is numpy's stable argsort, only faster."""

from __future__ import annotations

import numpy as np
import pytest

from remuda.storage.segment.row_order import order_in_place, stable_order

_LEAST, _GREATEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "keys",
    [
        np.array([], np.int64),
        np.array([7], np.int64),
        np.array([70, 30, 70, 30], np.int32),
        np.array([_GREATEST, _LEAST, 0, _LEAST, _GREATEST, -1], np.int64),
        np.array([2**64 - 1, 0, 2**63, 2**64 - 1], np.uint64),
        np.arange(1000, dtype=np.uint16)[::-1],
        np.random.default_rng(1).integers(_LEAST, _GREATEST, 5000),
        np.random.default_rng(2).integers(0, 50, 5000),
        # All differ, but only in bits that do not fit beside the position: one run to be repaired, and many.
        np.concatenate([np.arange(2000)[::-1], [2**62, _LEAST]]),
        np.concatenate([np.arange(3000)[::-1] // 2 * 2**40 + (np.arange(3000) + 1) % 2, [2**62, _LEAST]]),
        # Some hundred runs of three among many rows that need no repair, equal keys in them.
        np.concatenate([np.arange(9000) * 2**48, np.repeat(np.arange(0, 9000, 30) * 2**48, 2) + [3, 1] * 300]),
    ],
    ids=lambda keys: f"{keys.dtype}-{len(keys)}",
)
def test_order_is_that_of_a_stable_argsort(keys: np.ndarray) -> None:
    assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()
    if keys.dtype == np.int64:
        used_up = keys.copy()
        assert order_in_place(used_up, keys.take).tolist() == np.argsort(keys, kind="stable").tolist()
