"""Numbers of strings: equal for equal strings and only for those, from dictionaries and written out, in any order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.exec.keys import text_group_ids
from remuda.exec.keys.text_group_ids import NULL_ID, TextGroupIds
from remuda.types import VARBINARY, VARCHAR
from remuda.types.column_hash import hash_columns


def check(groups: TextGroupIds, seen: dict[Any, int], column: pa.Array) -> None:
    numbers = groups.add(column).tolist()
    for value, number in zip(column.to_pylist(), numbers, strict=True):
        if value is None:
            assert number == NULL_ID
        else:
            assert seen.setdefault(value, number) == number
    assert len(set(seen.values()) | {NULL_ID}) == len(seen) + 1
    known = np.array([NULL_ID, *seen.values()])
    assert groups.take(known).to_pylist() == [None, *seen]
    assert known.max() < groups.count


def drawn(chance: random.Random, words: list[str], form: str) -> pa.Array:
    values = [None if chance.random() < 0.1 else chance.choice(words) for _ in range(40)]
    plain = pa.array(values, pa.string()).slice(chance.randrange(3))
    if form == "plain":
        return plain
    if form == "dictionary":
        return plain.dictionary_encode()
    # Values that no row has, one of them twice, or NULL among them.
    dictionary = [*words, words[0]] if form == "twice" else [*words, None]
    codes = [None if value is None else words.index(value) for value in plain.to_pylist()]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(dictionary))


@pytest.fixture(params=["hashes", "equal hashes", "all hashes equal"])
def hashing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"hashes": 2**62, "equal hashes": 16, "all hashes equal": 1}
    monkeypatch.setattr(
        text_group_ids, "hash_columns", lambda columns, types: hash_columns(columns, types) % kinds[request.param] * 4
    )


@pytest.mark.usefixtures("hashing")
@pytest.mark.parametrize("seed", range(10))
def test_equal_strings_have_one_number(seed: int) -> None:
    chance = random.Random(seed)
    groups, seen = TextGroupIds(VARCHAR), {}
    words = [f"{'ä' * (number % 3)}{number}" for number in range(30)]
    for _ in range(8):
        form = chance.choice(["plain", "dictionary", "twice", "null"])
        check(groups, seen, drawn(chance, chance.sample(words, chance.randrange(1, 30)), form))


@pytest.mark.usefixtures("hashing")
def test_a_dictionary_with_the_same_values_has_the_same_numbers() -> None:
    groups = TextGroupIds(VARCHAR)
    words = ["a", "b", "c"]
    first = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(words))
    again = pa.DictionaryArray.from_arrays(pa.array([1, 2]), pa.array(words))
    assert groups.add(first).tolist() == [3, 1]
    assert groups.add(again).tolist() == [2, 3]
    assert pa.types.is_dictionary(groups.take(np.array([1, 2])).type)
    assert groups.add(pa.array(["c", "d", "a"])).tolist() == [3, 4, 1]
    assert groups.take(np.arange(5)).to_pylist() == [None, *words, "d"]


def test_nothing_and_bytes() -> None:
    groups = TextGroupIds(VARBINARY)
    assert groups.add(pa.array([], pa.binary())).tolist() == []
    assert groups.add(pa.array([None], pa.binary())).tolist() == [NULL_ID]
    assert groups.add(pa.array([b"\xff", b"", b"\xff"])).tolist() == [1, 2, 1]
    assert groups.add(pa.array([b"x", b""])).tolist() == [3, 2]
    assert groups.take(np.array([3, 0, 1])).to_pylist() == [b"x", None, b"\xff"]


def test_of_a_dictionary_much_larger_than_the_rows_only_their_values_are_numbered() -> None:
    words = pa.array([f"word {number:05}" for number in range(2_000)])
    groups, seen = TextGroupIds(VARCHAR), {}

    def rows(codes: list[int | None]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)

    check(groups, seen, rows([1_999, 3, None, 3]))
    assert groups.count <= 4
    check(groups, seen, rows([5, 3]))
    assert groups.count <= 5
    check(groups, seen, rows([*range(100), None]))
    check(groups, seen, rows([1_000, 1_999]))
