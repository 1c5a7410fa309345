"""Merging ordered streams, and the receiving ends of exchanges."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from remuda.exec import Exec, IterationResult
from remuda.exec.exchange.exchange import MergingReceiveExec, ReceiveExec
from remuda.expr import Column
from remuda.plan.physical import Receive
from remuda.plan.traits import Collation, SortKey, Traits
from remuda.runtime import BoundedChannel
from remuda.types import BIGINT, DOUBLE, VARCHAR
from tests.exec.scripted import DONE, FORMS, WAIT, Rows, batch_of, context
from tests.properties.model import order_key

NUMBER, TEXT, SOURCE = Column(1, "number", DOUBLE), Column(2, "text", VARCHAR), Column(3, "source", BIGINT)
COLUMNS = (NUMBER, TEXT, SOURCE)
VALUES = [None, -math.inf, -1.5, -0.0, 0.0, 2.0, 2.0, 7.0, math.inf, math.nan]

COLLATIONS: dict[str, Collation] = {
    "ascending": (SortKey(1),),
    "descending": (SortKey(1, descending=True, nulls_first=False),),
    "ascending, NULL last": (SortKey(1, nulls_first=False),),
    "text, then number": (SortKey(2), SortKey(1)),
    "text descending, number ascending": (SortKey(2, descending=True, nulls_first=False), SortKey(1)),
}


def sort_value(key: SortKey, value: Any) -> tuple[Any, ...]:
    """How the model compares one column, ascending whatever the direction; see `ordered`."""
    if value is None:
        return (0,) if key.nulls_first != key.descending else (2,)
    return (1, order_key(value))


def ordered(rows: Rows, collation: Collation) -> Rows:
    result = list(rows)
    places = {1: 0, 2: 1, 3: 2}
    for key in reversed(collation):
        result.sort(key=lambda row: sort_value(key, row[places[key.column]]), reverse=key.descending)
    return result


def keys_of(rows: Rows, collation: Collation) -> list[tuple[Any, ...]]:
    places = {1: 0, 2: 1}
    return [tuple(sort_value(key, row[places[key.column]]) for key in collation) for row in rows]


def same(rows: Rows) -> list[str]:
    return sorted(repr(row) for row in rows)


def receive(operator: Exec, channels: list[BoundedChannel], arrivals: list[tuple[int, Any]]) -> Rows:
    """Advances between the arrivals; an arrival of None is the end of its stream."""
    operator.setup(context(incoming={1: tuple(channels)}))
    rows: Rows = []
    for number, batch in [*arrivals, (-1, None)]:
        if number >= 0:
            channels[number].finish() if batch is None else channels[number].offer(batch)
        while (result := operator.advance()) is not WAIT:
            rows.extend(operator.current_batch.tuples())
            if result is DONE:
                return rows
    raise AssertionError("all streams have ended, and the operator waits")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COLLATIONS)
@pytest.mark.parametrize("streams", [1, 2, 5])
def test_streams_are_merged_in_order(name: str, form: str, streams: int) -> None:
    collation = COLLATIONS[name]
    for seed in range(8):
        chance = random.Random(seed)
        every: Rows = []
        arrivals: list[tuple[int, Any]] = []
        for number in range(streams):
            count = chance.choice([0, 1, 2, 9])
            rows = [(chance.choice(VALUES), chance.choice([None, "a", "b", ""]), number) for _ in range(count)]
            rows = ordered(rows, collation)
            every += rows
            first = 0
            while first < len(rows):
                size = chance.choice([0, 1, 2, 4])
                arrivals.append((number, batch_of(COLUMNS, rows[first : first + size], form)))
                first += size
            arrivals.append((number, None))
        # The streams come interleaved, each in its own order.
        turns = [number for number, _ in arrivals]
        chance.shuffle(turns)
        by_stream = {number: iter([each for each in arrivals if each[0] == number]) for number in range(streams)}
        arrivals = [next(by_stream[number]) for number in turns]
        channels = [BoundedChannel(lambda: None, capacity=100) for _ in range(streams)]
        found = receive(MergingReceiveExec(Receive(COLUMNS, 1, collation, Traits())), channels, arrivals)
        assert same(found) == same(every)
        assert keys_of(found, collation) == keys_of(ordered(every, collation), collation)


def test_a_merge_hands_rows_on_as_soon_as_they_are_final() -> None:
    """1 and 2 are final when the other stream is known to begin at 3; 4 has to wait for it."""
    channels = [BoundedChannel(lambda: None), BoundedChannel(lambda: None)]
    operator = MergingReceiveExec(Receive(COLUMNS, 1, COLLATIONS["ascending"], Traits()))
    operator.setup(context(incoming={1: tuple(channels)}))
    channels[0].offer(batch_of(COLUMNS, [(1.0, "", 0), (2.0, "", 0), (4.0, "", 0)]))
    assert operator.advance() is WAIT
    channels[1].offer(batch_of(COLUMNS, [(3.0, "", 1)]))
    assert operator.advance() is IterationResult.FETCHED
    assert [row[0] for row in operator.current_batch.tuples()] == [1.0, 2.0, 3.0]
    assert operator.advance() is WAIT


def test_receive_takes_from_whoever_has_something() -> None:
    channels = [BoundedChannel(lambda: None) for _ in range(3)]
    rows: Rows = [(1.0, "a", 0), (None, None, 1), (math.inf, "", 2)]
    arrivals: list[tuple[int, Any]] = [
        (2, batch_of(COLUMNS, rows[:1])),
        (0, None),
        (1, batch_of(COLUMNS, [])),
        (2, batch_of(COLUMNS, rows[1:])),
        (1, None),
        (2, None),
    ]
    assert receive(ReceiveExec(Receive(COLUMNS, 1, (), Traits())), channels, arrivals) == rows


@pytest.mark.parametrize("collation", [(), COLLATIONS["ascending"]])
def test_without_senders_there_are_no_rows(collation: Collation) -> None:
    """Pruning left no member to ask."""
    node = Receive(COLUMNS, 1, collation, Traits())
    operator = MergingReceiveExec(node) if collation else ReceiveExec(node)
    assert receive(operator, [], []) == []
