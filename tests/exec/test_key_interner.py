"""The interner against a Python dictionary, for columns of every type, one or several, null-safe or not."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.exec.keys import integer_interner, text_interner
from remuda.exec.keys.integer_tables import NOT_FOUND
from remuda.exec.keys.key_interner import KeyInterner
from remuda.exec.keys.text_interner import used_values
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    VARBINARY,
    VARCHAR,
    SqlType,
    decimal,
)
from remuda.types.arrow_arrays import stored_array, stored_list

NAN = float("nan")
INTEGERS = {TINYINT: 7, SMALLINT: 15, INTEGER: 31, BIGINT: 63, TIMESTAMP: 63, TIMESTAMP_TZ: 63}
FLOATS = [0.0, -0.0, NAN, -NAN, math.inf, -math.inf, 1.5, -1.5, 2.0**-126]
POOLS: dict[SqlType, list[Any]] = {
    **{type_: [0, 1, -1, 7, 2**bits - 1, -(2**bits), 2 ** (bits - 1)] for type_, bits in INTEGERS.items()},
    BOOLEAN: [True, False],
    DATE: [0, 19_000, -5, 2**31 - 1],
    TIME: [0, 1, 86_399_999_999],
    INTERVAL_MONTHS: [0, 1, -1, 1200],
    INTERVAL_TIME: [0, 10**6, -(10**12)],
    REAL: FLOATS,
    DOUBLE: [*FLOATS, 5e-324, 1.7e308, -1.7e308],
    decimal(5, 2): [Decimal("0.00"), Decimal("-0.01"), Decimal("999.99"), Decimal("-999.99")],
    decimal(18, 0): [Decimal(0), Decimal(10**18 - 1), Decimal(1 - 10**18)],
    decimal(38, 10): [Decimal(0), Decimal("1e-10"), Decimal("-1e-10"), Decimal(2**64), Decimal(-(2**64)), Decimal(1)],
    decimal(38, 0): [Decimal(number) for number in (0, 2**64, 2**64 + 1, -(2**64), 10**38 - 1, 1 - 10**38)],
    VARCHAR: ["", "a", "a\0", "a\0b", "\0", "ä", "\U0001f600", "\uffff", "a" * 300],
    VARBINARY: [b"", b"\0", b"\xff", b"\xff\0"],
    NULL: [None],
}


@pytest.fixture(autouse=True, params=["tables", "sorting", "equal hashes"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets few values take the ways of many, and hashes collide."""
    if request.param == "sorting":
        monkeypatch.setattr(integer_interner, "MANY", 8)
        monkeypatch.setattr(integer_interner, "FREE_SLOTS", 4)
    if request.param == "equal hashes":
        monkeypatch.setattr(text_interner, "hash_columns", lambda columns, _: np.zeros(len(columns[0]), np.int64))


def model_of(value: Any) -> Any:
    """The value as a dictionary tells it from others: there every NaN is another one."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def column_of(chance: random.Random, sql_type: SqlType, rows: int) -> pa.Array:
    pool = chance.sample(POOLS[sql_type], chance.randrange(1, len(POOLS[sql_type]) + 1))
    values = [None if chance.random() < 0.15 else chance.choice(pool) for _ in range(rows + 2)]
    array = stored_array(values, sql_type)
    if sql_type in {VARCHAR, VARBINARY} and chance.random() < 0.6:
        array = array.dictionary_encode()
    return array.slice(chance.randrange(2), rows)


def keys_of(columns: list[pa.Array], types: list[SqlType]) -> list[tuple[Any, ...]]:
    return list(
        zip(
            *(
                [model_of(value) for value in stored_list(column, type_)]
                for column, type_ in zip(columns, types, strict=True)
            ),
            strict=True,
        )
    )


def check(types: list[SqlType], null_safe: list[bool], chance: random.Random) -> None:
    interner, seen = KeyInterner(types, null_safe), {}

    def expected(key: tuple[Any, ...], default: int | None) -> int:
        if any(part is None and not safe for part, safe in zip(key, null_safe, strict=True)):
            return NOT_FOUND
        return seen.get(key, default)

    for _ in range(5):
        columns = [used_values(column_of(chance, type_, 12)) for type_ in types]
        ids = interner.intern(columns)
        keys = keys_of(columns, types)
        for key, id_ in zip(keys, ids.tolist(), strict=True):
            assert id_ == expected(key, id_)
            if id_ != NOT_FOUND:
                seen[key] = id_
        assert len(set(seen.values())) == len(seen)
        assert max(seen.values(), default=-1) < interner.count
        known = np.array(list(seen.values()), np.intp)
        assert keys_of(interner.keys(known), types) == list(seen)
        asked = [column_of(chance, type_, 12) for type_ in types]
        found = interner.find(asked).tolist()
        assert found == [expected(key, NOT_FOUND) for key in keys_of(asked, types)]
        assert interner.contains(asked).tolist() == [id_ != NOT_FOUND for id_ in found]


@pytest.mark.parametrize("null_safe", [True, False])
@pytest.mark.parametrize("sql_type", POOLS, ids=str)
def test_one_column(sql_type: SqlType, null_safe: bool) -> None:
    for seed in range(5):
        check([sql_type], [null_safe], random.Random(seed))


@pytest.mark.parametrize("seed", range(60))
def test_several_columns(seed: int) -> None:
    chance = random.Random(seed)
    types = [chance.choice(list(POOLS)) for _ in range(chance.randrange(2, 4))]
    check(types, [chance.random() < 0.5 for _ in types], chance)


def test_a_second_column_that_grows_keeps_the_ids() -> None:
    interner = KeyInterner([INTEGER, INTEGER])
    first = interner.intern([pa.array([1, 1], pa.int32()), pa.array([1, 2], pa.int32())]).tolist()
    many = pa.array(range(1000), pa.int32())
    interner.intern([pa.array([5] * 1000, pa.int32()), many])
    assert interner.find([pa.array([1, 1, 1], pa.int32()), pa.array([1, 2, 3], pa.int32())]).tolist() == [
        *first,
        NOT_FOUND,
    ]


def test_a_null_within_a_dictionary_is_a_null() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", None, "b"]))
    safe = KeyInterner([VARCHAR])
    ids = safe.intern([column]).tolist()
    assert ids[1] == ids[2]
    assert len(set(ids)) == 3
    assert safe.find([column]).tolist() == ids
    unsafe = KeyInterner([VARCHAR], [False])
    assert (unsafe.intern([column]) == NOT_FOUND).tolist() == [False, True, True, False]
    assert (unsafe.find([column]) == NOT_FOUND).tolist() == [False, True, True, False]
