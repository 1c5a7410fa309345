"""Recursive queries, round by round, and the rows that come from members only once."""

from __future__ import annotations

import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.exec import TupleBatch, build_operator
from remuda.exec.relational.recursive import ReplayedChannel
from remuda.expr import Call, Column, Literal
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.physical import Filter, HashJoin, Project, Receive, Recursive, Values, WorkingTable
from remuda.plan.traits import Traits
from remuda.runtime import BoundedChannel
from remuda.types import BIGINT, BOOLEAN, DOUBLE
from tests.exec.scripted import Rows, batch_of, context, drain

HERE = Traits()
START = Column(1, "n", BIGINT)
NUMBER = Column(2, "n", BIGINT)
WORKING = Column(3, "n", BIGINT)
NEXT = Column(4, "n", BIGINT)
SOURCE = Column(5, "source", BIGINT)
TARGET = Column(6, "target", BIGINT)
TABLE = WorkingTable(7, (WORKING,), HERE)


def start(*values: int | None) -> Values:
    return Values((START,), tuple((Literal(value, BIGINT),) for value in values), HERE)


def counting(limit: int, *values: int) -> Recursive:
    """n, then n + 1 as long as n < limit."""
    below = Filter(TABLE, Call("<", (WORKING, Literal(limit, BIGINT)), BOOLEAN), HERE)
    step = Project(below, (Assignment(NEXT, Call("+", (WORKING, Literal(1, BIGINT)), BIGINT)),), HERE)
    return Recursive((start(*values), step), (NUMBER,), ((START,), (NEXT,)), 7, False, HERE)


def reaching(distinct: bool, received: bool = False) -> Recursive:
    """Where the edges of a graph lead from the rows found last."""
    edges = (SOURCE, TARGET)
    right = Receive(edges, 1, (), HERE) if received else Values(edges, tuple(map(literals, EDGES)), HERE)
    step = HashJoin(JoinKind.INNER, TABLE, right, (JoinKey(WORKING, SOURCE),), None, None, None, HERE, row_cutover=256)
    return Recursive((start(1), step), (NUMBER,), ((START,), (TARGET,)), 7, distinct, HERE)


EDGES: Rows = [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]
CYCLE: Rows = [*EDGES, (5, 1)]


def literals(row: tuple[int, ...]) -> tuple[Literal, ...]:
    return tuple(Literal(value, BIGINT) for value in row)


def test_rounds_go_on_until_one_finds_nothing() -> None:
    assert drain(build_operator(counting(4, 1, 3))) == [(1,), (3,), (2,), (4,), (3,), (4,)]
    assert drain(build_operator(counting(0, 1))) == [(1,)]
    assert drain(build_operator(counting(4))) == []


def test_equal_rows_come_as_often_as_they_are_found_or_once() -> None:
    assert sorted(drain(build_operator(reaching(distinct=False)))) == [(1,), (2,), (3,), (4,), (4,), (5,), (5,)]
    assert sorted(drain(build_operator(reaching(distinct=True)))) == [(1,), (2,), (3,), (4,), (5,)]


@pytest.mark.parametrize("capacity", [1, 8])
def test_rows_from_members_are_read_again_in_every_round(capacity: int) -> None:
    channel = BoundedChannel(lambda: None, capacity=10)
    for first in range(0, len(CYCLE), capacity):
        channel.offer(batch_of((SOURCE, TARGET), CYCLE[first : first + capacity]))
    channel.finish()
    rows = drain(build_operator(reaching(distinct=True, received=True)), context(incoming={1: (channel,)}))
    assert sorted(rows) == [(1,), (2,), (3,), (4,), (5,)]


def test_nan_is_found_once() -> None:
    one, other, working, column = (Column(number, "x", DOUBLE) for number in (11, 12, 13, 14))
    first = Values((one,), ((Literal(float("nan"), DOUBLE),),), HERE)
    step = Project(WorkingTable(8, (working,), HERE), (Assignment(other, working),), HERE)
    node = Recursive((first, step), (column,), ((one,), (other,)), 8, True, HERE)
    assert len(drain(build_operator(node))) == 1


def test_recursion_without_end_can_be_cancelled() -> None:
    rounds = 0

    def check() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 50:
            raise SqlError(ErrorCode.CANCELLED_BY_USER, "the query was cancelled")

    with pytest.raises(SqlError, match="cancelled"):
        drain(build_operator(counting(2**62, 1)), context(check=check))


def test_replayed_channel_ends_where_its_channel_does() -> None:
    channel = BoundedChannel(lambda: None)
    replayed = ReplayedChannel(channel)
    assert replayed.poll() is None
    assert not replayed.is_finished
    batch = TupleBatch((START,), [(1,)])
    channel.offer(batch)
    assert replayed.poll() is batch
    assert replayed.poll() is None
    replayed.rewind()
    channel.finish()
    assert not replayed.is_finished
    assert replayed.poll() is batch
    assert replayed.is_finished
