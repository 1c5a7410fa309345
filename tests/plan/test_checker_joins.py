"""The plan checker on joins, windows and unions: what stands where must fit what is asked of it."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.errors import SqlError
from remuda.expr import Column
from remuda.plan import physical
from remuda.plan.checker import check_physical
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.traits import (
    PARTITIONED,
    REPLICATED,
    ROOT,
    Convention,
    Distribution,
    DistributionKind,
    Traits,
)
from remuda.types import BIGINT, INTEGER

A, B, C, D = (Column(number, name, BIGINT) for number, name in enumerate("abcd"))


def by(*columns: Column) -> Distribution:
    return Distribution(DistributionKind.PARTITIONED, tuple(column.id for column in columns))


def source(place: Distribution, *columns: Column) -> physical.Values:
    return physical.Values(columns, (), Traits(Convention.LOCAL, place))


def hash_join(left: Any, right: Any, place: Distribution, *keys: JoinKey, kind: JoinKind = JoinKind.INNER) -> Any:
    return physical.HashJoin(kind, left, right, keys, None, None, None, Traits(Convention.LOCAL, place))


def check(node: Any, members: int = 3) -> None:
    if node.traits.distribution.kind is DistributionKind.PARTITIONED:
        node = physical.RootExchange(node, Traits(Convention.LOCAL, ROOT))
    root = physical.Root(node, node.columns, tuple(column.name for column in node.columns), node.traits)
    check_physical(root, members=members)


KEY, OTHER = JoinKey(A, C), JoinKey(B, D)
GOOD = [
    hash_join(source(ROOT, A, B), source(ROOT, C, D), ROOT, KEY),
    hash_join(source(REPLICATED, A, B), source(ROOT, C, D), ROOT, KEY),
    hash_join(source(by(A), A, B), source(by(C), C, D), by(A), KEY),
    hash_join(source(by(A), A, B), source(by(C), C, D), by(A), KEY, OTHER),
    hash_join(source(by(B, A), A, B), source(by(D, C), C, D), by(B, A), KEY, OTHER),
    hash_join(source(by(A), A, B), source(by(C), C, D), PARTITIONED, KEY, kind=JoinKind.FULL),
    hash_join(source(PARTITIONED, A, B), source(REPLICATED, C, D), PARTITIONED, KEY, kind=JoinKind.LEFT),
    hash_join(source(REPLICATED, A, B), source(REPLICATED, C, D), REPLICATED, KEY),
]
BAD = [
    ("coordinator", hash_join(source(by(A), A, B), source(ROOT, C, D), ROOT, KEY)),
    ("coordinator", hash_join(source(ROOT, A, B), source(by(C), C, D), ROOT, KEY)),
    ("equal keys", hash_join(source(by(B), A, B), source(by(C), C, D), by(B), KEY)),
    ("equal keys", hash_join(source(by(A), A, B), source(by(D), C, D), by(A), KEY, OTHER)),
    ("equal keys", hash_join(source(by(A, B), A, B), source(by(D, C), C, D), by(A, B), KEY, OTHER)),
    ("equal keys", hash_join(source(PARTITIONED, A, B), source(PARTITIONED, C, D), PARTITIONED, KEY)),
    ("every member", hash_join(source(by(A), A), source(REPLICATED, C), PARTITIONED, KEY, kind=JoinKind.RIGHT)),
    ("every member", hash_join(source(by(A), A), source(REPLICATED, C), PARTITIONED, KEY, kind=JoinKind.FULL)),
    ("left side", hash_join(source(REPLICATED, A), source(by(C), C), by(C), KEY)),
    ("every member", hash_join(source(ROOT, A), source(REPLICATED, C), REPLICATED, KEY)),
    ("either side", hash_join(source(ROOT, A), source(ROOT, C), ROOT, JoinKey(C, A))),
    (
        "one type",
        hash_join(source(ROOT, A), source(ROOT, Column(9, "i", INTEGER)), ROOT, JoinKey(A, Column(9, "i", INTEGER))),
    ),
    (
        "each on one member",
        physical.BroadcastExchange(source(REPLICATED, A), Traits(Convention.LOCAL, REPLICATED)),
    ),
    (
        "union names",
        physical.Union((source(ROOT, A),), (C,), ((B,),), Traits(Convention.LOCAL, ROOT)),
    ),
    (
        "coordinator",
        physical.Window(source(by(A), A, B), (B,), (), (), Traits(Convention.LOCAL, by(A))),
    ),
]


@pytest.mark.parametrize("node", GOOD)
def test_a_fitting_plan_passes(node: Any) -> None:
    check(node)


@pytest.mark.parametrize(("need", "node"), BAD, ids=[f"{number} {case[0]}" for number, case in enumerate(BAD)])
def test_a_plan_that_does_not_fit_is_refused(need: str, node: Any) -> None:
    with pytest.raises(SqlError, match=need):
        check(node)


def test_with_one_member_all_rows_are_on_the_coordinator() -> None:
    for node in (BAD[0][1], BAD[1][1]):
        root = physical.Root(node, node.columns, ("x",) * len(node.columns), node.traits)
        check_physical(root, members=1)
