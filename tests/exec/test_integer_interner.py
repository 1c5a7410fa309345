"""Ids of integers: equal for equal integers and only for those, by table, by hash and by sorting."""

from __future__ import annotations

import random

import numpy as np
import pytest

from remuda.exec.keys import integer_interner
from remuda.exec.keys.integer_interner import NULL_ID, IntegerInterner
from remuda.exec.keys.integer_tables import NOT_FOUND

ENDS = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1]
SPREADS = {"close": 50, "apart": 10**6, "far apart": 2**62}


@pytest.fixture(params=["few", "many"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many":
        monkeypatch.setattr(integer_interner, "MANY", 20)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("seed", range(8))
def test_equal_integers_have_one_id(seed: int, spread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_interner, "FREE_SLOTS", 64)
    chance = random.Random(seed)
    interner, seen = IntegerInterner(), {}
    pool = [chance.randrange(-SPREADS[spread], SPREADS[spread]) for _ in range(200)] + ENDS * (seed % 2)
    for _ in range(10):
        values = [chance.choice(pool[: chance.randrange(1, len(pool))]) for _ in range(chance.randrange(60))]
        ids = interner.intern(np.array(values, np.int64)).tolist()
        for value, id_ in zip(values, ids, strict=True):
            assert seen.setdefault(value, id_) == id_
        assert sorted([NULL_ID, *seen.values()]) == list(range(interner.count))
        assert interner.values[1:].tolist() == sorted(seen, key=seen.__getitem__)
        if chance.random() < 0.5:
            expected = [seen.get(value, NOT_FOUND) for value in pool]
            assert interner.find(np.array(pool, np.int64)).tolist() == expected


@pytest.mark.usefixtures("many")
def test_values_by_id_and_distinct_values_in_order() -> None:
    values = np.array([7, 2**40, 7, -5] * 10, np.int64)
    interner = IntegerInterner()
    ids = interner.intern(values)
    assert interner.values[ids].tolist() == values.tolist()
    ordered = IntegerInterner(np.array([9, -(2**50), 4], np.int64))
    assert ordered.intern(np.array([4, 9, 5, -(2**50)] * 10, np.int64)).tolist() == [3, 1, 4, 2] * 10


@pytest.mark.parametrize("asked", [1, 10_000])
def test_many_look_ups_pay_for_a_table_that_few_values_do_not_pay_for(asked: int) -> None:
    interner = IntegerInterner()
    known = np.array([0, 100_000, 7], np.int64)
    assert interner.intern(known).tolist() == [1, 2, 3]
    wanted = np.resize(np.array([7, 8, 100_000, -1, 2**62], np.int64), 5 * asked)
    assert interner.find(wanted).tolist() == [3, NOT_FOUND, 2, NOT_FOUND, NOT_FOUND] * asked
    more = interner.intern(np.array([8, 7, 2**62, 0], np.int64))
    assert interner.values[more].tolist() == [8, 7, 2**62, 0]
    assert interner.find(known).tolist() == [1, 2, 3]


@pytest.mark.parametrize("known_share", [0.0, 1.0])
@pytest.mark.parametrize("low", [-(2**63), -300, 2**63 - 301])
def test_presence_is_asked_where_few_values_are_known(
    low: int, known_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integer_interner, "FREE_SLOTS", 64)
    interner = IntegerInterner(np.array([low, low + 300, low + 7], np.int64))
    asked = np.array([low + 7, low, low + 300] if known_share else [*ENDS, low + 8, low + 299], np.int64)
    expected = {low: 1, low + 300: 2, low + 7: 3}
    for _ in range(30):
        assert interner.find(asked).tolist() == [expected.get(value, NOT_FOUND) for value in asked.tolist()]
        assert interner.contains(asked).tolist() == [value in expected for value in asked.tolist()]
    assert (interner._presence is None) == (known_share == 1.0)
    everything = np.array([*ENDS, low, low + 300, low + 7, low + 8], np.int64)
    assert interner.find(everything).tolist() == [expected.get(value, NOT_FOUND) for value in everything.tolist()]
    assert interner.contains(everything).tolist() == [value in expected for value in everything.tolist()]
    added = interner.intern(np.array([low + 8, low + 9, low + 8], np.int64))
    assert added.tolist() == [4, 5, 4]
    assert interner.find(np.array([low + 9, low + 10, low], np.int64)).tolist() == [5, NOT_FOUND, 1]
    assert interner.contains(np.array([low + 9, low + 10, low], np.int64)).tolist() == [True, False, True]


@pytest.mark.parametrize("apart", [1, 10**12])
def test_ids_are_given_in_the_order_in_which_values_come(apart: int) -> None:
    interner = IntegerInterner()
    values = np.array([9, 2, 9, 2, 5, 9, 0, 5], np.int64) * apart
    assert interner.intern(values).tolist() == [1, 2, 1, 2, 3, 1, 4, 3]
    assert interner.intern(np.array([7, 0, 7, 1, 9], np.int64) * apart).tolist() == [5, 4, 5, 6, 1]
