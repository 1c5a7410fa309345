"""The memo: which sub-trees share a group, what is derived once, and what the search remembers of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from remuda.optimizer import memo as memo_module
from remuda.optimizer.estimates import group_properties
from remuda.optimizer.memo import GroupReference, Memo
from remuda.optimizer.populate import populate_memo
from remuda.optimizer.search import Search
from remuda.plan import logical, physical
from remuda.plan.explain import explain
from remuda.plan.traits import ROOT, Convention, SortKey, Traits
from remuda.plan.walk import inputs, walk
from remuda.rules.construct import NewColumns
from remuda.rules.decorrelate.decorrelate import decorrelate
from remuda.rules.normalize.normalize import normalize
from remuda.rules.normalize.trim import trim_columns
from tests.optimizer.maps import STATISTICS, bound, define, plan

MAP = define("SORTED(a, b)", "HASH(b)", "SORTED(x)")
TWICE = "WITH c AS (SELECT g, COUNT(*) AS n FROM m WHERE a > ? GROUP BY g) SELECT * FROM c p JOIN c q ON p.n = q.n"


def tree_of(text: str) -> tuple[logical.Root, int]:
    query = bound(text, MAP)
    tree, next_column = decorrelate(query.tree, query.next_column)
    return normalize(trim_columns(tree)), next_column


def memo_of(text: str) -> Memo:
    tree, next_column = tree_of(text)
    memo = Memo({MAP.id: STATISTICS})
    populate_memo(tree, memo, NewColumns(next_column).add)
    return memo


def groups(memo: Memo, kind: type) -> int:
    return sum(isinstance(group.expressions[0], kind) for group in memo.groups)


SHARED = [
    ("SELECT x.a, y.a FROM m AS x JOIN m AS y ON x.a = y.a", logical.Scan, 1),
    ("SELECT x.a, y.b FROM m AS x JOIN m AS y ON x.a = y.b WHERE x.g > 5 AND y.g > 5", logical.Scan, 2),
    ("SELECT x.a, y.a FROM m AS x JOIN m AS y ON x.a = y.a WHERE x.a > 5 AND y.a > 6", logical.Scan, 2),
    ("SELECT a FROM m WHERE g = 1 UNION ALL SELECT a FROM m WHERE g = 1", logical.Scan, 1),
    ("SELECT a FROM m WHERE g = 1 UNION ALL SELECT a FROM m WHERE g = 2", logical.Scan, 2),
    ("SELECT a FROM m UNION ALL SELECT b FROM m", logical.Scan, 2),
    (TWICE, logical.Scan, 1),
    (TWICE, logical.Aggregate, 1),
    (TWICE.replace("m WHERE", "m AS s JOIN (SELECT id AS i FROM m) AS t ON s.b = t.i WHERE"), logical.Aggregate, 3),
]


@pytest.mark.parametrize(("text", "kind", "expected"), SHARED)
def test_equal_sub_trees_share_a_group(text: str, kind: type, expected: int) -> None:
    """Whatever the ids of their columns: of one map, with the same columns and the same filter.

    The aggregate over a join has two more by an explore rule, which are shared as well.
    """
    assert groups(memo_of(text), kind) == expected


def test_a_reference_has_columns_of_its_own() -> None:
    memo = memo_of("SELECT x.a, y.a FROM m AS x JOIN m AS y ON x.a = y.a")
    (join,) = (each.expressions[0] for each in memo.groups if isinstance(each.expressions[0], logical.Join))
    left, right = inputs(join)
    assert isinstance(left, GroupReference)
    assert left.group == right.group
    assert left != right
    assert not {column.id for column in left.columns} & {column.id for column in right.columns}
    own, other = memo.properties(left), memo.properties(right)
    assert own.columns.keys() == {column.id for column in left.columns}
    assert other.columns.keys() == {column.id for column in right.columns}
    assert own.rows == other.rows


ORDERED = [
    "SELECT x.a, y.b FROM m AS x JOIN m AS y ON x.b = y.b ORDER BY y.a, x.a",
    "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM m GROUP BY g UNION ALL SELECT g, COUNT(*) AS n FROM m GROUP BY g)",
    "SELECT a FROM m WHERE a > (SELECT AVG(b) FROM m WHERE x > 1) AND b < (SELECT AVG(b) FROM m WHERE x > 1)",
    TWICE + " ORDER BY q.g LIMIT 3",
]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("text", ORDERED)
def test_no_column_of_a_shared_plan_stands_for_two(text: str, members: int) -> None:
    """Two inputs of one operator deliver different columns, and the plan checker finds all that are used."""
    tree = plan(text, MAP, members=members).tree
    for node in walk(tree):
        if isinstance(node, physical.HashJoin | physical.NestedLoopJoin):
            left, right = ({column.id for column in side.columns} for side in inputs(node))
            assert not left & right, explain(tree)


def test_properties_are_derived_once_for_each_group(monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[Any] = []
    derive = group_properties.derive

    def counting(node: Any, *rest: Any) -> Any:
        derived.append(node)
        return derive(node, *rest)

    monkeypatch.setattr(memo_module, "derive", counting)
    for text in (TWICE, "SELECT COUNT(*) FROM m AS x, m AS y, m AS z WHERE x.a = y.b AND y.g = z.id"):
        derived.clear()
        found = plan(text, MAP, members=3)
        assert len(derived) == len(found.memo.groups)


def searching(text: str) -> tuple[Search, int]:
    tree, next_column = tree_of(text)
    search = Search(1, (Convention.LOCAL,), {MAP.id: STATISTICS}, next_column)
    return search, populate_memo(tree.input, search.memo, search.new_column)


def test_a_bound_below_which_there_is_no_plan_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    search, group = searching("SELECT x.a FROM m AS x JOIN m AS y ON x.a = y.b")
    required = Traits(Convention.LOCAL, ROOT)
    assert search.optimize_group(group, required, 10.0) is None

    def failing(*_: object) -> Any:
        raise AssertionError("the group is searched again")

    with monkeypatch.context() as patch:
        patch.setattr(Search, "_alternative_plans", failing)
        assert search.optimize_group(group, required, 10.0) is None
        assert search.optimize_group(group, required, 9.0) is None
        with pytest.raises(AssertionError, match="searched again"):
            search.optimize_group(group, required, 11.0)
    assert search.optimize_group(group, required, math.inf) is not None


def test_a_winner_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    search, group = searching("SELECT a FROM m")
    required = Traits(Convention.LOCAL, ROOT, (SortKey(search.memo.groups[group].columns[0].id),))
    winner = search.optimize_group(group, required, math.inf)
    monkeypatch.delattr(Search, "_alternative_plans")
    assert winner is not None
    assert search.optimize_group(group, required, math.inf) is winner
    assert search.optimize_group(group, required, winner.estimate.cost) is None


def test_an_equal_expression_is_found_again() -> None:
    memo = memo_of("SELECT a FROM m")
    scan = memo.groups[0].expressions[0]
    assert memo.group_of(scan) == 0
    assert len(memo.groups) == len(memo_of("SELECT a FROM m").groups)
