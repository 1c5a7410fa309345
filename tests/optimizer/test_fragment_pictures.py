"""Plans cut into fragments, on one member and on three: who sends to whom. Places other than PARTITIONED are named."""

from __future__ import annotations

import re

import pytest

from remuda.plan.fragments import split
from remuda.plan.operator_attributes import head_of
from remuda.plan.walk import walk
from tests.optimizer.maps import define, plan

MAP = define("SORTED(a, b)")

PICTURES = [
    (
        "SELECT a FROM m WHERE c > 5",
        1,
        ["Root, LocalExchange, MapScan m"],
    ),
    (
        "SELECT a FROM m WHERE c > 5",
        3,
        ["Root, Receive edge=1 [ROOT]", "Send edge=1, LocalExchange, MapScan m"],
    ),
    (
        "SELECT g, COUNT(*) FROM m GROUP BY g",
        1,
        ["Root, HashAggregate final [ROOT], LocalExchange, HashAggregate partial, MapScan m"],
    ),
    (
        "SELECT g, COUNT(*) FROM m GROUP BY g",
        3,
        [
            "Root, HashAggregate final [ROOT], Receive edge=1 [ROOT]",
            "Send edge=1, HashAggregate intermediate, LocalExchange, HashAggregate partial, MapScan m",
        ],
    ),
    (
        "SELECT g, COUNT(DISTINCT a) FROM m GROUP BY g",
        3,
        [
            "Root, HashAggregate final [ROOT], Receive edge=2 [ROOT]",
            "Send edge=1, LocalExchange, MapScan m",
            "Send edge=2, HashAggregate partial, HashAggregate complete, Receive edge=1",
        ],
    ),
    (
        "SELECT g, COUNT(DISTINCT a), COUNT(DISTINCT b) FROM m GROUP BY g",
        3,
        [
            "Root, Receive edge=2 [ROOT]",
            "Send edge=1, LocalExchange, MapScan m",
            "Send edge=2, HashAggregate complete, Receive edge=1",
        ],
    ),
    (
        "SELECT a FROM m ORDER BY a LIMIT 5",
        3,
        [
            "Root, Limit [ROOT], Receive edge=1 [ROOT]",
            "Send edge=1, Limit, IndexScan m using SORTED(a, b) (SORTED, ascending)",
        ],
    ),
    (
        "SELECT x.a FROM m AS x JOIN m AS y ON x.id = y.id",
        3,
        [
            "Root, Receive edge=1 [ROOT]",
            "Send edge=1, LocalExchange, Project, HashJoin INNER, MapScan m, LocalExchange, MapScan m",
        ],
    ),
    (
        "SELECT x.a FROM m AS x JOIN m AS y ON x.c = y.c",
        3,
        [
            "Root, Receive edge=3 [ROOT]",
            "Send edge=1, LocalExchange, MapScan m",
            "Send edge=2, LocalExchange, MapScan m",
            "Send edge=3, Project, HashJoin INNER, Receive edge=1, Receive edge=2",
        ],
    ),
    (
        "SELECT a FROM m WHERE id = ?",
        3,
        ["Root, Receive edge=1 [ROOT]", "Send edge=1, KeyLookup m"],
    ),
    ("VALUES (1), (2)", 3, ["Root, Values [REPLICATED]"]),
]


@pytest.mark.parametrize(("text", "members", "expected"), PICTURES, ids=[f"{c[0]} on {c[1]}" for c in PICTURES])
def test_fragments(text: str, members: int, expected: list[str]) -> None:
    fragments = split(plan(text, MAP, members=members).tree)
    pictures = [", ".join(head_of(node) for node in walk(each.node)) for each in fragments]
    assert [re.sub(r" \[PARTITIONED.*?\]", "", picture) for picture in pictures] == expected
