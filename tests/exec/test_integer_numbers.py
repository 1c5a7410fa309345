"""Numbers of integers: equal for equal integers and only for those, by table, by hash and by sorting."""

from __future__ import annotations

import random

import numpy as np
import pytest

from remuda.exec.keys import integer_interner
from remuda.exec.keys.integer_interner import NOT_FOUND, IntegerInterner

ENDS = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1]
SPREADS = {"close": 50, "apart": 10**6, "far apart": 2**62}


@pytest.fixture(params=["few", "many"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many":
        monkeypatch.setattr(integer_interner, "MANY", 20)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("seed", range(8))
def test_equal_integers_have_one_number(seed: int, spread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_interner, "FREE_SLOTS", 64)
    chance = random.Random(seed)
    numbers, seen = IntegerInterner(np.empty(0, np.int64)), {}
    pool = [chance.randrange(-SPREADS[spread], SPREADS[spread]) for _ in range(200)] + ENDS * (seed % 2)
    for _ in range(10):
        values = [chance.choice(pool[: chance.randrange(1, len(pool))]) for _ in range(chance.randrange(60))]
        given = numbers.add(np.array(values, np.int64)).tolist()
        for value, number in zip(values, given, strict=True):
            assert seen.setdefault(value, number) == number
        assert sorted(seen.values()) == list(range(numbers.count))
        assert numbers.values.tolist() == sorted(seen, key=seen.__getitem__)
        if chance.random() < 0.5:
            expected = [seen.get(value, NOT_FOUND) for value in pool]
            assert numbers.find(np.array(pool, np.int64)).tolist() == expected


@pytest.mark.usefixtures("many")
def test_given_and_in_order() -> None:
    values = np.array([7, 2**40, 7, -5] * 10, np.int64)
    made = IntegerInterner(values)
    assert made.values[made.given].tolist() == values.tolist()
    ordered = IntegerInterner.in_order(np.array([9, -(2**50), 4], np.int64))
    assert ordered.add(np.array([4, 9, 5, -(2**50)] * 10, np.int64)).tolist() == [2, 0, 3, 1] * 10
