"""Ids of strings: equal for equal strings and only for those, from dictionaries and written out, in any order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.exec.keys import text_interner
from remuda.exec.keys.integer_interner import NULL_ID
from remuda.exec.keys.integer_tables import NOT_FOUND
from remuda.exec.keys.key_interner import KeyInterner
from remuda.exec.keys.text_interner import used_values
from remuda.types import VARBINARY, VARCHAR
from remuda.types.column_hash import hash_columns


def intern(interner: KeyInterner, column: pa.Array) -> list[int]:
    ids: list[int] = interner.intern([column]).tolist()
    return ids


def take(interner: KeyInterner, ids: Any) -> pa.Array:
    return interner.keys(np.array(ids))[0]


def check(interner: KeyInterner, seen: dict[Any, int], column: pa.Array) -> None:
    for value, id_ in zip(column.to_pylist(), intern(interner, column), strict=True):
        if value is None:
            assert id_ == NULL_ID
        else:
            assert seen.setdefault(value, id_) == id_
    assert len(set(seen.values()) | {NULL_ID}) == len(seen) + 1
    known = [NULL_ID, *seen.values()]
    assert take(interner, known).to_pylist() == [None, *seen]
    assert max(known) < interner.count


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
        text_interner, "hash_columns", lambda columns, types: hash_columns(columns, types) % kinds[request.param] * 4
    )


@pytest.mark.usefixtures("hashing")
@pytest.mark.parametrize("seed", range(10))
def test_equal_strings_have_one_id(seed: int) -> None:
    chance = random.Random(seed)
    interner, seen = KeyInterner([VARCHAR]), {}
    words = [f"{'ä' * (number % 3)}{number}" for number in range(30)]
    for _ in range(8):
        form = chance.choice(["plain", "dictionary", "twice", "null"])
        check(interner, seen, drawn(chance, chance.sample(words, chance.randrange(1, 30)), form))


@pytest.mark.usefixtures("hashing")
@pytest.mark.parametrize("seed", range(10))
def test_find_finds_what_was_interned_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    interner, seen = KeyInterner([VARCHAR]), {}
    words = [f"{'ä' * (number % 3)}{number}" for number in range(30)]
    for _ in range(4):
        check(interner, seen, used_values(drawn(chance, words[:20], chance.choice(["plain", "dictionary", "null"]))))
        for form in ["plain", "dictionary", "twice", "null"]:
            asked = drawn(chance, chance.sample(words, chance.randrange(1, 30)), form)
            known = {None: NULL_ID, **seen} if None in take(interner, range(interner.count)).to_pylist() else seen
            for value, id_ in zip(asked.to_pylist(), interner.find([asked]).tolist(), strict=True):
                assert id_ == known.get(value, NOT_FOUND) or (value is None and id_ in {NULL_ID, NOT_FOUND})


def test_used_values_leaves_out_what_no_row_has() -> None:
    rows = pa.DictionaryArray.from_arrays(pa.array([2, None, 2, 0]), pa.array(["a", "b", "c"]))
    assert used_values(rows).to_pylist() == rows.to_pylist()
    assert sorted(used_values(rows).dictionary.to_pylist()) == ["a", "c"]
    interner = KeyInterner([VARCHAR])
    interner.intern([used_values(rows)])
    assert interner.find([pa.array(["a", "b", "c"])]).tolist().count(NOT_FOUND) == 1


@pytest.mark.usefixtures("hashing")
def test_a_dictionary_with_the_same_values_has_the_same_ids() -> None:
    interner = KeyInterner([VARCHAR])
    words = ["a", "b", "c"]
    first = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(words))
    again = pa.DictionaryArray.from_arrays(pa.array([1, 2]), pa.array(words))
    assert intern(interner, first) == [3, 1]
    assert intern(interner, again) == [2, 3]
    assert pa.types.is_dictionary(take(interner, [1, 2]).type)
    assert intern(interner, pa.array(["c", "d", "a"])) == [3, 4, 1]
    assert take(interner, range(5)).to_pylist() == [None, *words, "d"]


def test_nothing_and_bytes() -> None:
    interner = KeyInterner([VARBINARY])
    assert intern(interner, pa.array([], pa.binary())) == []
    assert intern(interner, pa.array([None], pa.binary())) == [NULL_ID]
    assert intern(interner, pa.array([b"\xff", b"", b"\xff"])) == [1, 2, 1]
    assert intern(interner, pa.array([b"x", b""])) == [3, 2]
    assert take(interner, [3, 0, 1]).to_pylist() == [b"x", None, b"\xff"]


def test_of_a_dictionary_much_larger_than_the_rows_only_their_values_are_interned() -> None:
    words = pa.array([f"word {number:05}" for number in range(2_000)])
    interner, seen = KeyInterner([VARCHAR]), {}

    def rows(codes: list[int | None]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)

    check(interner, seen, rows([1_999, 3, None, 3]))
    assert interner.count <= 4
    check(interner, seen, rows([5, 3]))
    assert interner.count <= 5
    check(interner, seen, rows([*range(100), None]))
    check(interner, seen, rows([1_000, 1_999]))
