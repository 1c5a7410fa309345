"""The search through a table of slots finds what the search without it finds, wherever the keys and the ends lie."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.storage.index.interpolation_table import ROWS_IN_A_SLOT, build_key_slots, key_search, searched_keys
from remuda.types import BIGINT, DOUBLE
from remuda.types.normalized_key import NULL_KEY

LEAST, GREATEST = -(2**63), 2**63 - 1
ROWS = 20 * ROWS_IN_A_SLOT
INTEGERS = st.one_of(
    st.integers(LEAST + 1, GREATEST), st.integers(-200, 200), st.integers(2**62, 2**62 + 100), st.just(NULL_KEY)
)
NUMBERS = st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)
ENDS = st.one_of(NUMBERS, st.sampled_from([-1.0, 0.0, math.inf, -math.inf, math.nan]))


def found(keys: np.ndarray, begin: float, end: float) -> tuple[int, int]:
    low, high = keys.searchsorted((begin, end)).tolist()
    return low, max(low, high)


def check(keys: np.ndarray, ends: list[tuple[float, float]]) -> None:
    search = key_search(keys, build_key_slots(keys))
    for begin, end in ends:
        assert search(begin, end) == found(keys, begin, end)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(INTEGERS, min_size=3 * ROWS_IN_A_SLOT, max_size=ROWS),
    st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=20),
)
def test_whole_numbers(values: list[int], ends: list[tuple[int, int]]) -> None:
    keys = np.sort(np.array(values, np.int64))
    nearby = [(value, value + 1) for value in values[:10] if value < GREATEST]
    check(keys, [*ends, *nearby, *[(value, end) for value in values[:5] for _, end in ends]])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(NUMBERS, min_size=3 * ROWS_IN_A_SLOT, max_size=ROWS),
    st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=20),
)
def test_floating_point_numbers(values: list[float], ends: list[tuple[float, float]]) -> None:
    keys = np.sort(np.array(values))
    nearby = [(value, math.nextafter(value, math.inf)) for value in values[:10]]
    check(keys, [*ends, *nearby, *[(value, end) for value in values[:5] for _, end in ends]])


@pytest.mark.parametrize("scale", [1, 2**40 + 1])
def test_every_key_and_what_lies_between(scale: int) -> None:
    random = np.random.default_rng(scale)
    keys = np.sort(random.integers(-3_000, 3_000, 5_000)) * scale
    keys[:40] = NULL_KEY
    table = build_key_slots(keys)
    assert table is not None
    assert table[0] == 40
    assert table[-1] == len(keys)
    search = key_search(keys, table)
    for key in np.unique(keys[40:]).tolist():
        for begin, end in [(key, key + 1), (key - 1, key), (key + 1, key + 3 * scale), (key, key - 1)]:
            assert search(begin, end) == found(keys, begin, end)


def test_no_table_where_it_would_not_help() -> None:
    assert build_key_slots(np.empty(0, np.int64)) is None
    assert build_key_slots(np.full(1_000, 7)) is None
    assert build_key_slots(np.full(1_000, NULL_KEY)) is None
    assert build_key_slots(np.array([5e-324] * 500 + [1e-323] * 500)) is None  # no factor tells these two apart
    far = np.arange(100_000)
    far[-1] = GREATEST
    assert build_key_slots(far) is None


def test_the_keys_of_numbers_are_searched_as_numbers_where_their_order_is_the_same() -> None:
    numbers = np.array([0.5, 1.0, 2.0])
    assert searched_keys(numbers.view(np.int64), DOUBLE).tolist() == [0.5, 1.0, 2.0]
    assert searched_keys(np.array([NULL_KEY, 1]), DOUBLE).dtype.kind == "i"
    assert searched_keys(np.array([1, 2]), BIGINT).dtype.kind == "i"
    assert searched_keys(np.array([0.5, math.inf]).view(np.int64), DOUBLE).dtype.kind == "i"
