"""Aggregation in the order of the groups: the same results as by hashing, in the input's order, however it is cut."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from remuda.exec.aggregate.aggregate import HashAggregateExec
from remuda.exec.aggregate.streaming_aggregate import StreamingAggregateExec
from remuda.expr import Column
from remuda.plan.aggregates import AGGREGATES, AggregateCall
from remuda.plan.physical import HashAggregate, Phase, StreamingAggregate
from remuda.plan.traits import Traits
from remuda.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, SqlType, decimal
from tests.exec.scripted import DONE, FETCHED, FORMS, SHAPES, Rows, ScriptedExec, drain, script, source_node
from tests.storage.sample_values import TYPES, random_value

VALUE = Column(9, "v", INTEGER)
FUNCTIONS = [("count", False), ("sum", False), ("avg", False), ("min", False), ("count", True), ("stddev_samp", False)]


def _calls() -> tuple[AggregateCall, ...]:
    calls = [AggregateCall(Column(20, "n", BIGINT), "count")]
    for number, (name, distinct) in enumerate(FUNCTIONS):
        result = AGGREGATES[name].result(INTEGER)
        assert result is not None
        calls.append(AggregateCall(Column(21 + number, name, result), name, VALUE, distinct))
    return tuple(calls)


def _identity(row: tuple[Any, ...]) -> str:
    """NaN equals itself here, and 0.0 is the same key as -0.0."""
    return repr(tuple(0.0 if isinstance(value, float) and value == 0 else value for value in row))


def _run(keys: tuple[Column, ...], rows: Rows, shape: str, form: str) -> tuple[list[str], list[str]]:
    columns = (*keys, VALUE)
    streaming = StreamingAggregate(source_node(columns), keys, _calls(), Traits())
    hashing = HashAggregate(source_node(columns), keys, _calls(), (), Phase.COMPLETE, Traits())
    found = drain(StreamingAggregateExec(streaming, ScriptedExec(columns, script(columns, rows, SHAPES[shape], form))))
    expected = drain(HashAggregateExec(hashing, ScriptedExec(columns, script(columns, rows))))
    return [_identity(row) for row in found], [_identity(row) for row in expected]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_groups_come_in_the_order_of_the_rows(shape: str, form: str) -> None:
    keys = (Column(1, "k", VARCHAR),)
    rows = [("a", 1), ("a", None), ("b", 3), (None, 4), (None, 5), (None, 4), ("", 7), ("c", 1), ("c", 1), ("c", 2)]
    found, expected = _run(keys, rows, shape, form)
    assert sorted(found) == sorted(expected)
    order = [row[0] for row in map(eval, found)]
    assert order == ["a", "b", None, "", "c"]


@pytest.mark.parametrize("type_", [*TYPES, BOOLEAN, decimal(38, 10)], ids=str)
def test_keys_of_every_type(type_: SqlType) -> None:
    random = Random(str(type_))
    values = [None, *(random_value(type_, random) for _ in range(6))]
    rows = [(value, random.randrange(5)) for value in values for _ in range(random.choice([1, 2, 5]))]
    for shape in SHAPES:
        found, expected = _run((Column(1, "k", type_),), rows, shape, "arrow")
        if len({_identity((value,)) for value in values}) == len(values):
            assert sorted(found) == sorted(expected)


def test_nan_and_zero_are_one_group_each() -> None:
    rows = [(math.nan, 1), (-math.nan, 2), (0.0, 3), (-0.0, 4)]
    for shape in SHAPES:
        found, _ = _run((Column(1, "k", DOUBLE),), rows, shape, "arrow")
        assert len(found) == 2


@pytest.mark.parametrize("seed", range(20))
def test_random_rows_of_two_keys(seed: int) -> None:
    random = Random(seed)
    keys = (Column(1, "k", INTEGER), Column(2, "l", VARCHAR))
    pairs = [(one, other) for one in (None, 1, 2) for other in (None, "x", "y")]
    chosen = [pair for pair in pairs if random.random() < 0.7]
    rows = [(*pair, random.choice([None, 1, 2, 3])) for pair in chosen for _ in range(random.randrange(1, 6))]
    for shape in SHAPES:
        for form in FORMS:
            found, expected = _run(keys, rows, shape, form)
            assert sorted(found) == sorted(expected)


def test_a_group_comes_out_when_the_next_one_begins() -> None:
    keys = (Column(1, "k", INTEGER),)
    columns = (*keys, VALUE)
    node = StreamingAggregate(source_node(columns), keys, _calls()[:1], Traits())
    source = ScriptedExec(columns, script(columns, [(1, 1), (1, 1), (2, 1), (2, 1)], (2,)))
    operator = StreamingAggregateExec(node, source)
    source.setup(None)  # type: ignore[arg-type]
    assert operator.advance() is FETCHED
    assert operator.current_batch.row_count == 0
    assert operator.advance() is DONE
    assert list(operator.current_batch.tuples()) == [(1, 2), (2, 2)]
