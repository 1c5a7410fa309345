"""Sorting by packed integers: the order of Python's own sort, whatever the types, ends, NULLs and ties."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.exec.batch import positional
from remuda.exec.sort import sort_keys
from remuda.exec.sort.ordering import order_codes, sort_positions
from remuda.exec.sort.sort_keys import Part, changes, sort_parts, sorted_by
from remuda.plan.traits import SortKey

COUNT = 400


def drawn(values: list[Any], arrow: pa.DataType, seed: str, *, nulls: bool = True, offset: int = 3) -> pa.Array:
    chance = random.Random(seed)
    chosen = [None if nulls and chance.random() < 0.1 else chance.choice(values) for _ in range(COUNT + offset)]
    return pa.array(chosen, arrow).slice(offset)


WIDE = pa.decimal128(38, 0)
COLUMNS: dict[str, pa.Array] = {
    "tiny": drawn([-128, 0, 127], pa.int8(), "tiny"),
    "int": drawn([-5, 3, 9], pa.int32(), "int"),
    "ends": drawn([-(2**63), -1, 0, 2**63 - 1], pa.int64(), "ends"),
    "real": drawn([-1.5, 0.0, 2.5, math.nan, math.inf], pa.float32(), "real"),
    "double": drawn([-math.inf, -1e300, -0.0, 0.0, 1e-300, math.nan, -math.nan], pa.float64(), "double"),
    "boolean": drawn([True, False], pa.bool_(), "boolean"),
    "day": drawn([-3, 0, 19_000], pa.int32(), "day").view(pa.date32()),
    "time": drawn([-3, 0, 10**15], pa.int64(), "time").view(pa.timestamp("us")),
    "narrow": drawn([Decimal(-7), Decimal(0), Decimal(7)], pa.decimal128(9, 2), "narrow"),
    "wide": drawn([Decimal(-(10**30)), Decimal(-1), Decimal(1), Decimal(2**64), Decimal(10**30)], WIDE, "wide"),
    "text": drawn(["", "a", "ab", "ä", "b"], pa.string(), "text"),
    "sorted dictionary": pa.DictionaryArray.from_arrays(
        drawn([0, 1, 2], pa.int32(), "codes"), pa.array(["a", "b", "c"])
    ),
    "dictionary": pa.DictionaryArray.from_arrays(
        drawn([0, 1, 2, 3], pa.int32(), "more"), pa.array(["b", "a", "c", "a"])
    ),
    "no NULL": drawn([4, 5, 6], pa.int64(), "no NULL", nulls=False),
    "one value": drawn([4], pa.int64(), "one value", nulls=False),
    "only NULL": drawn([None], pa.int64(), "only NULL"),
}


def python_key(value: Any) -> Any:
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value)
    return value


def expected(columns: list[pa.Array], keys: list[SortKey]) -> list[int]:
    positions = list(range(len(columns[0])))
    for column, key in reversed(list(zip(columns, keys, strict=True))):
        values = [value if value is None else python_key(value) for value in column.to_pylist()]
        present = [position for position in positions if values[position] is not None]
        present.sort(key=lambda position: values[position], reverse=key.descending)
        if key.descending:  # Python keeps ties as they were, reversed or not
            present.sort(key=lambda position: _Descending(values[position]))
        absent = [position for position in positions if values[position] is None]
        positions = absent + present if key.nulls_first else present + absent
    return positions


class _Descending:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)


@pytest.mark.parametrize("nulls_first", [False, True], ids=["nulls last", "nulls first"])
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("name", COLUMNS)
def test_rows_come_in_the_order_of_one_key(name: str, descending: bool, nulls_first: bool) -> None:
    column, key = COLUMNS[name], SortKey(1, descending=descending, nulls_first=nulls_first)
    found = sort_positions(positional([column]), (0,), (key,)).to_pylist()
    assert found == expected([column], [key])


@pytest.mark.parametrize("word", [64, 30, 20], ids=lambda word: f"{word} bits")
@pytest.mark.parametrize("seed", range(12))
def test_rows_come_in_the_order_of_several_keys(seed: int, word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words of fewer bits most keys do not fit, and ties are sorted among themselves, level by level."""
    monkeypatch.setattr(sort_keys, "WORD", word)
    chance = random.Random(seed)
    names = chance.sample(list(COLUMNS), 4)
    keys = [SortKey(n, descending=chance.random() < 0.5, nulls_first=chance.random() < 0.5) for n in range(4)]
    columns = [COLUMNS[name] for name in names]
    found = sort_positions(positional(columns), range(4), tuple(keys)).to_pylist()
    assert found == expected(columns, keys)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 3), st.integers(0, 2**40)), max_size=60))
def test_rows_that_tie_keep_their_order(rows: list[tuple[int, int, int]]) -> None:
    widths = (64, 2, 41)
    parts = [Part(np.array([row[place] for row in rows], np.uint64), width) for place, width in enumerate(widths)]
    assert sorted_by(parts, len(rows)).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


def test_no_keys_and_no_rows() -> None:
    assert sorted_by([], 3).tolist() == [0, 1, 2]
    assert sorted_by([Part(np.empty(0, np.uint64), 7)], 0).tolist() == []


def test_changes_are_where_a_key_differs_from_the_one_before() -> None:
    parts = sort_parts(positional([pa.array([2, 1, 2, None, None])]), (0,), (SortKey(1, nulls_first=False),))
    assert parts is not None
    positions = sorted_by(parts, 5)
    assert changes(parts, positions).tolist() == [True, True, False, True, False]
    assert changes(parts, positions[:0]).tolist() == []


@pytest.mark.parametrize("name", COLUMNS)
def test_codes_order_as_the_values_do(name: str) -> None:
    column = COLUMNS[name]
    codes = order_codes(column).tolist()
    pairs = [(code, python_key(v)) for code, v in zip(codes, column.to_pylist(), strict=True) if v is not None]
    for (code, value), (other_code, other) in zip(pairs, pairs[1:] + pairs[:1], strict=True):
        assert (code < other_code, code == other_code) == (value < other, value == other)
