"""The first rows of an order, found by a bound: the same rows as a sort gives, whatever the values."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from remuda.exec.sort.sort import SortExec, TopNExec, bound_within, last_value, reaches_bound
from remuda.expr import Column, Literal
from remuda.plan.physical import Sort, TopN
from remuda.plan.traits import SortKey, Traits
from remuda.types import BIGINT, DOUBLE, INTEGER, VARCHAR, SqlType
from tests.exec.scripted import ScriptedExec, batch_of, drain, source_node

COUNT = 6_000
KINDS: dict[str, tuple[SqlType, Any]] = {
    "many integers": (BIGINT, lambda chance: chance.randrange(10**12)),
    "few integers": (INTEGER, lambda chance: chance.randrange(7)),
    "numbers": (DOUBLE, lambda chance: chance.choice([chance.random(), -0.0, 0.0, math.inf, -math.inf])),
    "NaN now and then": (DOUBLE, lambda chance: math.nan if chance.random() < 0.001 else chance.random()),
    "mostly NaN": (DOUBLE, lambda chance: math.nan if chance.random() < 0.9 else chance.random()),
    "NULL now and then": (BIGINT, lambda chance: None if chance.random() < 0.001 else chance.randrange(10**9)),
    "many NULLs": (DOUBLE, lambda chance: None if chance.random() < 0.3 else chance.random()),
    "strings": (VARCHAR, lambda chance: f"text {chance.randrange(10**6)}"),
}


@pytest.mark.parametrize("arranged", ["as they come", "ascending", "descending"])
@pytest.mark.parametrize("descending", [False, True], ids=["lowest", "highest"])
@pytest.mark.parametrize("nulls_first", [False, True], ids=["nulls last", "nulls first"])
@pytest.mark.parametrize("kind", KINDS)
def test_first_rows_are_those_of_a_sort(kind: str, nulls_first: bool, descending: bool, arranged: str) -> None:
    sql_type, value = KINDS[kind]
    chance = random.Random(kind)
    columns = (Column(1, "v", sql_type), Column(2, "id", BIGINT))
    node = source_node(columns)
    collation = (SortKey(1, descending=descending, nulls_first=nulls_first), SortKey(2))
    rows = [(value(chance), id_) for id_ in range(COUNT)]

    def source(given: list[tuple[Any, ...]], size: int) -> ScriptedExec:
        parts = [given[first : first + size] for first in range(0, len(given), size)]
        return ScriptedExec(columns, [batch_of(columns, part, "arrow") for part in parts])

    in_order = drain(SortExec(Sort(node, collation, Traits()), source(rows, COUNT)))
    given = {"as they come": rows, "ascending": in_order, "descending": in_order[::-1]}[arranged]
    for wanted in (1, 10, 400, COUNT + 5):
        top = TopN(node, collation, Literal(wanted, BIGINT), Literal(3, BIGINT), Traits())
        found = drain(TopNExec(top, source(given, 1_000)))
        assert repr(found) == repr(in_order[3 : 3 + wanted])


def test_threshold_of_a_batch() -> None:
    numbers = pa.array(range(100))
    assert bound_within(numbers, 3, descending=False).as_py() == 2  # type: ignore[union-attr]
    assert bound_within(numbers.slice(10), 3, descending=True).as_py() == 97  # type: ignore[union-attr]
    days = pa.array([dt.date(2024, 1, 1 + day) for day in range(30)])
    assert bound_within(days, 2, descending=False).as_py() == dt.date(2024, 1, 2)  # type: ignore[union-attr]
    some = pa.array([None if number % 3 == 0 else number for number in range(100)])
    assert bound_within(some, 3, descending=False).as_py() == 4  # type: ignore[union-attr]
    assert bound_within(some, 3, descending=True).as_py() == 95  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, None, None, *[None] * 95, 1, 2]),
        pa.array([math.nan, *map(float, range(100))]),
        pa.array([str(number) for number in range(100)]),
        pa.array(range(20)),
    ],
    ids=["NULL", "NaN", "strings", "too few"],
)
def test_some_columns_give_no_threshold(column: pa.Array) -> None:
    assert bound_within(column, 3, descending=False) is None


def test_what_can_be_a_threshold() -> None:
    assert last_value(pa.array([1.0, 2.5])).as_py() == 2.5  # type: ignore[union-attr]
    assert last_value(pa.array([1.0, math.nan])) is None
    assert last_value(pa.array([None, 1])).as_py() == 1  # type: ignore[union-attr]
    assert last_value(pa.array([1, None])) is None
    assert last_value(pa.array(["a", "b"]).dictionary_encode()) is None


def test_nan_reaches_every_threshold_from_above() -> None:
    numbers = pa.array([1.0, 2.0, 3.0, math.nan])
    bound = pa.scalar(2.0)
    assert reaches_bound(numbers, bound, descending=True, nulls_first=False).tolist() == [False, True, True, True]
    assert reaches_bound(numbers, bound, descending=False, nulls_first=True).tolist() == [True, True, False, False]


@pytest.mark.parametrize("bound", [2, "b"])
def test_a_null_is_before_every_threshold_or_behind(bound: Any) -> None:
    values = pa.array([1, None, 3] if bound == 2 else ["a", None, "c"])
    for descending, expected in ((True, [False, None, True]), (False, [True, None, False])):
        for nulls_first in (True, False):
            reached = reaches_bound(values, pa.scalar(bound), descending=descending, nulls_first=nulls_first)
            assert reached.tolist() == [nulls_first if each is None else each for each in expected]
