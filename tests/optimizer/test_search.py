"""The search: which operators it puts where, that its bound only saves work, and that it always finds the same plan."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from remuda.catalog import MapStatistics
from remuda.errors import SqlError
from remuda.optimizer.search import Search
from remuda.plan import physical
from remuda.plan.checker import check_physical
from remuda.plan.explain import explain
from remuda.plan.fragments import split
from remuda.plan.joins import JoinKind
from remuda.plan.physical import Direction, PhysicalNode
from remuda.plan.traits import Convention, SortKey, Traits
from remuda.plan.walk import walk
from tests.optimizer.maps import STATISTICS, define, plan

MAP = define("SORTED(a, b)", "HASH(b)", "SORTED(x)")
LOCAL, SPARK = Convention.LOCAL, Convention.SPARK

QUERIES = [
    "SELECT * FROM m",
    "SELECT id FROM m WHERE id = 5",
    "SELECT id FROM m WHERE id IN (1, 2, ?) AND a > 1",
    "SELECT * FROM m WHERE b = 5 AND a > 10",
    "SELECT * FROM m WHERE x BETWEEN ? AND ?",
    "SELECT * FROM m WHERE x BETWEEN 1 AND 2 ORDER BY a LIMIT 20",
    "SELECT a, b FROM m WHERE a > 5 ORDER BY a, b",
    "SELECT x, a FROM m ORDER BY x DESC",
    "SELECT a FROM m ORDER BY a LIMIT 5",
    "SELECT a FROM m ORDER BY x DESC LIMIT ? OFFSET 3",
    "SELECT a FROM m ORDER BY c LIMIT 5 OFFSET 2",
    "SELECT * FROM m ORDER BY c LIMIT 5",
    "SELECT a FROM m ORDER BY a DESC, b",
    "SELECT a FROM m LIMIT 7",
    "SELECT a FROM m WHERE x > 3 OFFSET 7",
    "SELECT b FROM m WHERE a = 5 ORDER BY b",
    "SELECT g, COUNT(*) FROM m GROUP BY g",
    "SELECT g, AVG(x) FROM m WHERE a < 100 GROUP BY g HAVING COUNT(*) > 3 ORDER BY g LIMIT 2",
    "SELECT id, COUNT(DISTINCT a) FROM m GROUP BY id",
    "SELECT g, COUNT(DISTINCT a) FROM m GROUP BY g",
    "SELECT DISTINCT a, b FROM m ORDER BY b",
    "SELECT COUNT(*), SUM(x) FROM m WHERE b = ?",
    "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM m GROUP BY g) AS t WHERE n > 5 ORDER BY n DESC LIMIT 3",
    "SELECT a FROM (SELECT a, x FROM m ORDER BY x LIMIT 100) AS t WHERE a > 5 ORDER BY a",
    "SELECT 1",
    "SELECT a FROM m WHERE FALSE ORDER BY a",
    "INSERT INTO m (id) VALUES (1), (2)",
    "UPDATE m SET a = 1 WHERE x < 5",
    "DELETE FROM m WHERE id = ?",
]
CONFIGURATIONS = [
    pytest.param(1, (LOCAL,), id="one member"),
    pytest.param(3, (LOCAL,), id="three members"),
    pytest.param(40, (LOCAL, SPARK), id="forty members"),
    pytest.param(1, (LOCAL, SPARK), id="with Spark"),
    pytest.param(2, (SPARK,), id="Spark alone"),
]
SIZES = [
    pytest.param(STATISTICS, id="million"),
    pytest.param(MapStatistics(rows=0), id="empty"),
    pytest.param(MapStatistics(rows=2_000_000_000), id="billions"),
]


def nodes(tree: Any, kind: Any) -> list[Any]:
    return [node for node in walk(tree) if isinstance(node, kind)]


class UnboundedSearch(Search):
    """The same search without branch and bound: every alternative is followed to its end."""

    def optimize_group(self, number: int, required: Traits, _bound: float, share: float = 1.0) -> PhysicalNode | None:
        return Search.optimize_group(self, number, required, math.inf, share)


@pytest.mark.parametrize("statistics", SIZES)
@pytest.mark.parametrize(("members", "conventions"), CONFIGURATIONS)
@pytest.mark.parametrize("text", QUERIES)
def test_the_bound_changes_no_cost(
    text: str,
    members: int,
    conventions: tuple[Convention, ...],
    statistics: MapStatistics,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounded = plan(text, MAP, members=members, conventions=conventions, statistics=statistics)
    monkeypatch.setattr(sys.modules["remuda.optimizer.optimize"], "Search", UnboundedSearch)
    unbounded = plan(text, MAP, members=members, conventions=conventions, statistics=statistics)
    assert bounded.tree.estimate.cost == unbounded.tree.estimate.cost, explain(unbounded.tree)


@pytest.mark.parametrize("text", QUERIES)
def test_exchanges_are_there_exactly_when_rows_are_elsewhere(text: str) -> None:
    reads = bool(nodes(plan(text, MAP).tree, physical.ScanNode))
    assert not nodes(plan(text, MAP).tree, physical.RootExchange)
    for members, conventions in ((3, (LOCAL,)), (1, (SPARK,))):
        tree = plan(text, MAP, members=members, conventions=conventions).tree
        assert len(nodes(tree, physical.RootExchange)) == reads


@pytest.mark.parametrize(("members", "conventions"), CONFIGURATIONS)
def test_a_replicated_map_is_read_where_the_query_is(members: int, conventions: tuple[Convention, ...]) -> None:
    replicated = define("SORTED(a, b)", "HASH(b)", "SORTED(x)", replicated=True)
    for text in QUERIES:
        tree = plan(text, replicated, members=members, conventions=conventions).tree
        assert not nodes(tree, physical.RootExchange)
        assert all(scan.traits.convention is LOCAL for scan in nodes(tree, physical.ScanNode))


ORDERS = [
    ("ORDER BY a", "SORTED(a, b)", Direction.ASCENDING),
    ("ORDER BY a, b", "SORTED(a, b)", Direction.ASCENDING),
    ("ORDER BY a DESC, b DESC", "SORTED(a, b)", Direction.DESCENDING),
    ("ORDER BY x DESC", "SORTED(x)", Direction.DESCENDING),
    ("WHERE a = 5 ORDER BY b", "SORTED(a, b)", Direction.ASCENDING),
    ("WHERE a = 5 ORDER BY b DESC", "SORTED(a, b)", Direction.DESCENDING),
    ("WHERE a IN (5, 6) ORDER BY a", "SORTED(a, b)", Direction.ASCENDING),
    ("WHERE a BETWEEN 5 AND 6 ORDER BY a, b", "SORTED(a, b)", Direction.ASCENDING),
    ("ORDER BY a NULLS LAST", "SORTED(a, b)", Direction.ASCENDING),
    ("ORDER BY a DESC NULLS FIRST, b DESC", "SORTED(a, b)", Direction.DESCENDING),
    ("WHERE a = 5 ORDER BY b NULLS LAST", "SORTED(a, b)", Direction.ASCENDING),
    ("WHERE a > 5 ORDER BY a NULLS LAST, b", "SORTED(a, b)", Direction.ASCENDING),
]


@pytest.mark.parametrize(("rest", "index", "direction"), ORDERS, ids=[case[0] for case in ORDERS])
@pytest.mark.parametrize("members", [1, 3])
def test_an_index_delivers_its_order(rest: str, index: str, direction: Direction, members: int) -> None:
    tree = plan(f"SELECT a, b, x FROM m {rest} LIMIT 10", MAP, members=members).tree
    assert not nodes(tree, physical.Sort | physical.TopN)
    (scan,) = nodes(tree, physical.IndexScan)
    assert (scan.index.name, scan.direction) == (index, direction)


SORTED = [
    "ORDER BY c",
    "ORDER BY b",
    "ORDER BY a DESC, b",
    "ORDER BY b, a",
    "ORDER BY a, b, c",
    "ORDER BY a, b NULLS LAST",
    "ORDER BY a NULLS LAST, b NULLS LAST",
    "ORDER BY a DESC NULLS FIRST, b",
    "WHERE a IN (5, 6) ORDER BY b",
    "WHERE a > 5 ORDER BY b",
    "ORDER BY a + 1",
]


@pytest.mark.parametrize("rest", SORTED)
@pytest.mark.parametrize("members", [1, 3])
def test_any_other_order_is_sorted(rest: str, members: int) -> None:
    tree = plan(f"SELECT a, b, x, c FROM m {rest}", MAP, members=members).tree
    (sort,) = nodes(tree, physical.Sort)
    assert len(sort.collation) >= 1
    limited = plan(f"SELECT a, b, x, c FROM m {rest} LIMIT 10", MAP, members=members).tree
    assert nodes(limited, physical.TopN | physical.Sort)


def test_where_nobody_needs_an_order_none_is_produced() -> None:
    for text in ("SELECT a FROM m WHERE a = 5", "SELECT COUNT(*) FROM (SELECT a FROM m ORDER BY a) AS t"):
        tree = plan(text, MAP).tree
        assert not nodes(tree, physical.Sort)
        assert all(scan.direction is Direction.UNORDERED for scan in nodes(tree, physical.IndexScan))


def test_the_cheaper_path_wins() -> None:
    def path(condition: str, statistics: MapStatistics = STATISTICS) -> str:
        (scan,) = nodes(
            plan(f"SELECT id FROM m WHERE {condition}", both, statistics=statistics).tree, physical.ScanNode
        )
        return scan.index.name if isinstance(scan, physical.IndexScan) else type(scan).__name__

    both = define("SORTED(a)", "HASH(a)", "SORTED(g)")
    assert path("a = 5") == "HASH(a)"
    assert path("a IN (5, 6)") == "HASH(a)"
    assert path("a BETWEEN 5 AND 50") == "SORTED(a)"
    assert path("a > 5") == "MapScan"
    assert path("g = 1") == "MapScan"
    assert path("id = 1 AND a = 5") == "KeyLookup"
    assert path("x > 1") == "MapScan"
    assert path("a = 5", MapStatistics(rows=10)) == "HASH(a)"


GROUPS = [
    ("SELECT g, COUNT(*) FROM m GROUP BY g", ["final", "intermediate", "partial"]),
    ("SELECT COUNT(*), SUM(x) FROM m", ["final", "intermediate", "partial"]),
    ("SELECT g, COUNT(DISTINCT a) FROM m GROUP BY g", ["final", "partial", "complete"]),
    ("SELECT g, COUNT(DISTINCT a), COUNT(DISTINCT b) FROM m GROUP BY g", ["complete"]),
    ("SELECT id, g, MEDIAN(a) FROM m GROUP BY id, g", ["complete"]),
]


@pytest.mark.parametrize(("text", "phases"), GROUPS)
def test_aggregates_over_three_members(text: str, phases: list[str]) -> None:
    """What cannot be split is brought together by the keys, unless it is already; of one DISTINCT the values are."""
    tree = plan(text, MAP, members=3).tree
    assert [node.phase.value for node in nodes(tree, physical.HashAggregate)] == phases
    (exchange,) = nodes(tree, physical.RootExchange)
    assert nodes(exchange, physical.HashAggregate)
    assert len(nodes(tree, physical.HashExchange)) == ("complete" in phases and "id" not in text)


def test_many_groups_are_finished_by_the_members() -> None:
    """The coordinator would have to merge nearly all rows; with few groups it has next to nothing to do."""
    tree = plan("SELECT b, COUNT(*) AS n FROM m GROUP BY b ORDER BY n LIMIT 5", MAP, members=4).tree
    final, intermediate, partial = nodes(tree, physical.HashAggregate)
    assert isinstance(final.input, physical.HashExchange)
    assert isinstance(intermediate.input, physical.LocalExchange)
    assert partial.phase is physical.Phase.PARTIAL
    tree = plan("SELECT g, COUNT(*) AS n FROM m GROUP BY g ORDER BY n LIMIT 5", MAP, members=40).tree
    assert not nodes(tree, physical.HashExchange)


@pytest.mark.parametrize("rule", ["aggregate_in_two_phases", "aggregate_in_place", "limit_by_top_n"])
def test_a_disabled_rule_does_not_fire(rule: str) -> None:
    for text in QUERIES:
        assert rule not in plan(text, MAP, members=3, disabled=frozenset({rule})).fired


@pytest.mark.parametrize("text", QUERIES)
def test_plans_pickle(text: str) -> None:
    tree = plan(text, MAP, members=3).tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    fragments = split(tree)
    copied = pickle.loads(pickle.dumps(fragments))
    assert copied == fragments
    assert [explain(fragment.node) for fragment in copied] == [explain(fragment.node) for fragment in fragments]


PRINT_PLANS = """
from tests.optimizer.test_search import CONFIGURATIONS, MAP, QUERIES, explain, plan
for parameter in CONFIGURATIONS:
    members, conventions = parameter.values
    for text in QUERIES:
        print(explain(plan(text, MAP, members=members, conventions=conventions).tree))
"""


def test_every_process_makes_the_same_plans() -> None:
    """Whatever the seed of hashes and the addresses of objects: nothing depends on the order of a set."""

    def plans(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(["src", "."])}
        command = [sys.executable, "-c", PRINT_PLANS]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first = plans("1")
    assert first.count("Root  ") >= len(QUERIES)
    assert plans("2") == first


DOMINATED = [
    ("a = 5 AND b > 2", ["SORTED(a, b)"]),
    ("a = 5", ["HASH(a)"]),
    ("a = 5 AND c > 2", ["SORTED(a, c)"]),
    ("a = 5 AND b > 2 AND c > 2", ["SORTED(a, b)", "SORTED(a, c)"]),
    ("a > 5", ["SORTED(a, b)"]),
    ("a = 5 AND b = 2", ["HASH(b, a)"]),
    ("a = 5 ORDER BY b", ["HASH(a)", "SORTED(a, b)"]),
    ("c > 5 ORDER BY a", ["SORTED(a, b)"]),
]


@pytest.mark.parametrize(("rest", "expected"), DOMINATED, ids=[case[0] for case in DOMINATED])
def test_a_dominated_index_is_left_out_of_the_search(rest: str, expected: list[str]) -> None:
    """Another index has its bounds, or more, and finds a row no slower; of equal ones the first stays."""
    several = define("SORTED(a, b)", "SORTED(a, c)", "SORTED(a)", "HASH(a)", "HASH(b, a)")
    memo = plan(f"SELECT id, a, b, c FROM m WHERE {rest}", several, disabled=frozenset({"plan_lookup"})).memo
    weighed = [node for group in memo.groups for nodes in group.weighed.values() for node in nodes]
    scans = [node for node in weighed if isinstance(node, physical.IndexScan)]
    assert sorted({each.index.name for scan in scans for each in scan.usable}) == expected


def test_a_dominated_index_is_not_looked_up_in() -> None:
    several = define("SORTED(a, b)", "SORTED(a, c)", "HASH(a)", "SORTED(g)")
    memo = plan("SELECT x.id FROM m AS x JOIN m AS y ON x.f = y.a WHERE x.id < 3", several).memo
    weighed = [node for group in memo.groups for nodes in group.weighed.values() for node in nodes]
    assert {node.index.name for node in weighed if isinstance(node, physical.LookupJoin)} == {"HASH(a)"}


HASH_JOINS = frozenset({"hash_join", "commuted_hash_join"})
MERGED = "SELECT x.a FROM m AS x JOIN m AS y ON x.a = y.a ORDER BY x.a"


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_merge_join_of_rows_without_order_is_refused(side: str) -> None:
    tree = plan(MERGED, MAP, disabled=HASH_JOINS).tree
    (join,) = nodes(tree, physical.MergeJoin)
    source = getattr(join, side)
    unordered = replace(source, traits=replace(source.traits, collation=()))
    wrong = replace(join, **{side: unordered})
    with pytest.raises(SqlError, match=f"the {side} side comes in the order of the keys"):
        check_physical(physical.Root(wrong, wrong.columns[:1], ("a",), tree.traits), members=1)


def test_a_merge_join_promises_no_order_where_right_rows_come_alone() -> None:
    (join,) = nodes(plan(MERGED, MAP, disabled=HASH_JOINS).tree, physical.MergeJoin)
    wrong = replace(join, kind=JoinKind.FULL)
    with pytest.raises(SqlError, match="come out of turn"):
        check_physical(physical.Root(wrong, wrong.columns[:1], ("a",), join.traits), members=1)
    unsorted = replace(
        join, traits=replace(join.traits, collation=(SortKey(join.left.columns[0].id, descending=True),))
    )
    with pytest.raises(SqlError, match="the order that is promised"):
        check_physical(physical.Root(unsorted, wrong.columns[:1], ("a",), join.traits), members=1)


FIRST_ROWS = "SELECT * FROM m WHERE c = 5 ORDER BY x LIMIT 10"


def test_first_rows_come_from_an_ordered_index_that_knows_its_goal() -> None:
    (scan,) = nodes(plan(FIRST_ROWS, MAP).tree, physical.IndexScan)
    assert scan.row_goal == 10
    assert scan.filter_cutover is not None


def test_a_row_goal_without_a_limit_is_refused() -> None:
    tree = plan(FIRST_ROWS, MAP).tree
    (limit,) = nodes(tree, physical.Limit)
    with pytest.raises(SqlError, match="a row goal is that of a LIMIT"):
        check_physical(replace(tree, input=limit.input), members=1)


def test_a_cutover_of_a_filter_that_is_not_there_is_refused() -> None:
    tree = plan(FIRST_ROWS, MAP).tree
    (limit,) = nodes(tree, physical.Limit)
    wrong = replace(limit, input=replace(limit.input, residual=None))
    with pytest.raises(SqlError, match="tests entries by their columns"):
        check_physical(replace(tree, input=wrong), members=1)


def test_a_hash_join_promises_no_order_but_that_of_its_left_side() -> None:
    text = "SELECT p.a FROM m AS p JOIN m AS q ON p.b = q.id ORDER BY p.a LIMIT 10"
    tree = plan(text, MAP, disabled=frozenset({"lookup_join"})).tree
    (join,) = nodes(tree, physical.HashJoin)
    assert join.traits.collation
    for wrong, message in (
        (replace(join, left=replace(join.left, traits=replace(join.left.traits, collation=()))), "order of its left"),
        (replace(join, kind=JoinKind.RIGHT, row_cutover=None), "come last"),
    ):
        with pytest.raises(SqlError, match=message):
            check_physical(physical.Root(wrong, wrong.columns[:1], ("a",), tree.traits), members=1)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize(
    "text",
    [
        FIRST_ROWS,
        "SELECT * FROM m WHERE c % 7 = 5 ORDER BY x DESC LIMIT ? OFFSET 7",
        "SELECT p.id, q.id FROM m AS p JOIN m AS q ON p.b = q.id WHERE q.c = 3 ORDER BY p.x LIMIT 10",
        "SELECT p.id, q.id, r.id FROM m AS p, m AS q, m AS r WHERE p.b = q.id AND q.a = r.b ORDER BY p.x LIMIT 20",
        "SELECT p.id FROM m AS p WHERE EXISTS (SELECT 1 FROM m AS q WHERE q.a = p.b AND q.x > 3) ORDER BY x LIMIT 5",
        "SELECT a, COUNT(*) FROM m WHERE c = 3 GROUP BY a ORDER BY a LIMIT 4",
        "SELECT x FROM (SELECT x FROM m WHERE c = 3 UNION ALL SELECT a FROM m) AS u ORDER BY x LIMIT 4",
    ],
)
def test_the_bound_changes_no_cost_of_first_rows(text: str, members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = plan(text, MAP, members=members)
    monkeypatch.setattr(sys.modules["remuda.optimizer.optimize"], "Search", UnboundedSearch)
    unbounded = plan(text, MAP, members=members)
    assert bounded.tree.estimate.cost == unbounded.tree.estimate.cost, explain(unbounded.tree)
