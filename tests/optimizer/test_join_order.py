"""Orders of joins: every one that is tried has the rows of the one that was written, and good ones are found."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.catalog import IndexDefinition, IndexType
from remuda.expr import call
from remuda.optimizer.join.join_bounds import JoinBounds
from remuda.optimizer.join.join_order import MAXIMUM_PAIRS, _pairs
from remuda.plan import logical, physical
from remuda.plan.joins import JoinKind
from remuda.plan.walk import walk
from remuda.types import BOOLEAN
from tests.optimizer.evaluation import as_bag, evaluate
from tests.optimizer.join_trees import Shop, column, equal, join

KINDS = [
    JoinKind.INNER,
    JoinKind.INNER,
    JoinKind.INNER,
    JoinKind.LEFT,
    JoinKind.RIGHT,
    JoinKind.FULL,
    JoinKind.SEMI,
    JoinKind.ANTI,
    JoinKind.MARK,
]


def random_tree(shop: Shop, chance: random.Random, relations: int) -> Any:
    """A tree of joins, bushy, with conditions between any of the columns that are visible."""
    if relations == 1:
        rows = chance.choice([1, 10, 1_000, 100_000])
        return shop.scan(f"t{shop.next_column}", rows, {"x": max(1, rows // 3), "y": 3})
    left_size = chance.randint(1, relations - 1)
    left, right = random_tree(shop, chance, left_size), random_tree(shop, chance, relations - left_size)
    kind = chance.choice(KINDS)
    conditions = [
        call(chance.choice(["=", "=", "=", "<", "is not distinct from"]), chance.choice(left.columns), other)
        for other in chance.choices(right.columns, k=chance.choice([0, 1, 1, 2]))
    ]
    if kind is not JoinKind.MARK:
        return join(left, right, *conditions, kind=kind)
    compared = equal(chance.choice(left.columns), chance.choice(right.columns))
    mark = shop.column("mark")
    mark = type(mark)(mark.id, "mark", BOOLEAN)
    return logical.Join(kind, left, right, conditions[0] if conditions else None, compared, mark)


def random_rows(tree: Any, chance: random.Random) -> dict[str, list[dict[str, Any]]]:
    scans = [node for node in walk(tree) if isinstance(node, logical.Scan)]
    return {
        scan.map.name: [
            {"id": place, "x": chance.choice([None, 0, 1, 2]), "y": chance.choice([None, 0, 1])}
            for place in range(chance.randint(0, 4))
        ]
        for scan in scans
    }


@pytest.mark.parametrize("members", [1, 3])
@given(seed=st.integers(0, 1_000_000), relations=st.integers(2, 6))
def test_every_plan_has_the_rows_of_the_query(members: int, seed: int, relations: int) -> None:
    chance = random.Random(seed)
    shop = Shop()
    tree = random_tree(shop, chance, relations)
    maps = random_rows(tree, chance)
    best = shop.plan(tree, members=members)
    written = shop.plan(tree, members=members, disabled=frozenset({"explore_join_orders"}))
    ids = [each.id for each in tree.columns]
    expected = as_bag([{id_: row[id_] for id_ in ids} for row in evaluate(tree, maps)])
    assert as_bag(evaluate(best.tree, maps)) == expected
    assert as_bag(evaluate(written.tree, maps)) == expected


def connected(mask: int, neighbours: list[int]) -> bool:
    reached = mask & -mask
    while True:
        wider = reached
        for place, others in enumerate(neighbours):
            if reached >> place & 1:
                wider |= others & mask
        if wider == reached:
            return reached == mask
        reached = wider


@given(st.integers(2, 6), st.integers(0, 1 << 15))
def test_pairs_are_all_splits_of_connected_sets_smaller_ones_first(size: int, seed: int) -> None:
    chance = random.Random(seed)
    neighbours = [0] * size
    for one, other in itertools.combinations(range(size), 2):
        if chance.random() < 0.5:
            neighbours[one] |= 1 << other
            neighbours[other] |= 1 << one
    expected = {
        frozenset((left, right))
        for left, right in itertools.combinations(range(1, 1 << size), 2)
        if not left & right
        and connected(left, neighbours)
        and connected(right, neighbours)
        and connected(left | right, neighbours)
    }
    found = list(_pairs(neighbours, 1_000_000))
    assert len(found) == len(expected)
    assert {frozenset(pair) for pair in found} == expected
    built = {1 << place for place in range(size)}
    for left, right in found:
        assert left in built
        assert right in built
        built.add(left | right)


def hash_joins(shop: Shop, tree: Any, **options: Any) -> list[Any]:
    return [node for node in walk(shop.plan(tree, **options).tree) if isinstance(node, physical.HashJoin)]


def scans_below(node: Any) -> list[str]:
    return [each.map.name for each in walk(node) if isinstance(each, physical.MapScan)]


def test_the_smaller_side_is_built() -> None:
    shop = Shop()
    large, small = shop.scan("large", 1_000_000, {"s": 100}), shop.scan("small", 100, {})
    for tree in (
        join(large, small, equal(column(large, "s"), column(small, "id"))),
        join(small, large, equal(column(large, "s"), column(small, "id"))),
    ):
        (found,) = hash_joins(shop, tree)
        assert scans_below(found.right) == ["small"]


def test_an_outer_join_is_turned_round() -> None:
    shop = Shop()
    large, small = shop.scan("large", 1_000_000, {"s": 100}), shop.scan("small", 100, {})
    tree = join(small, large, equal(column(large, "s"), column(small, "id")), kind=JoinKind.LEFT)
    (found,) = hash_joins(shop, tree)
    assert (found.kind, scans_below(found.right)) == (JoinKind.RIGHT, ["small"])


def test_no_product_where_a_condition_connects() -> None:
    """a and c have nothing to do with each other, whatever the order in which they are written."""
    shop = Shop()
    a, c = shop.scan("a", 10, {"n": 10}), shop.scan("c", 10, {"n": 10})
    b = shop.scan("b", 100_000, {"x": 10, "y": 10})
    tree = join(join(a, c), b, equal(column(a, "n"), column(b, "x")), equal(column(c, "n"), column(b, "y")))
    plan = shop.plan(tree).tree
    assert not [node for node in walk(plan) if isinstance(node, physical.NestedLoopJoin)]


def test_a_selective_relation_is_joined_first() -> None:
    shop = Shop()
    fact = shop.scan("fact", 1_000_000, {"wide": 1_000, "narrow": 1_000})
    wide, narrow = shop.scan("wide", 1_000, {}), shop.scan("narrow", 1_000, {"kind": 500})
    few = logical.Filter(narrow, equal(column(narrow, "kind"), column(narrow, "id")))
    tree = join(
        join(fact, wide, equal(column(fact, "wide"), column(wide, "id"))),
        few,
        equal(column(fact, "narrow"), column(narrow, "id")),
    )
    _, inner = hash_joins(shop, tree)
    assert sorted(scans_below(inner)) == ["fact", "narrow"]


@pytest.mark.parametrize("size", [9, 12, 30])
@pytest.mark.parametrize("members", [1, 3])
def test_large_joins_stay_within_bounds(size: int, members: int) -> None:
    shop = Shop()
    first = shop.scan("t0", 1_000, {"n": 100})
    tree: Any = first
    for place in range(1, size):
        other = shop.scan(f"t{place}", 1_000 * (place + 1), {"n": 10 * place})
        tree = join(tree, other, equal(column(first, "n"), column(other, "n")))
    optimized = shop.plan(tree, members=members)
    memo = optimized.memo
    assert memo.expression_count <= memo.split_count + len(memo.groups) < MAXIMUM_PAIRS + size * size
    written = shop.plan(tree, members=members, disabled=frozenset({"explore_join_orders"}))
    assert optimized.tree.estimate.cost <= written.tree.estimate.cost * 1.1


@pytest.mark.parametrize(("rows", "pairs"), [(1_000, MAXIMUM_PAIRS), (50_000_000, 3_025)])
def test_more_orders_are_tried_where_the_inputs_are_large(rows: int, pairs: int) -> None:
    """Eight relations on one key have 3,025 splits; planning may take as long as one pass over the rows."""
    shop = Shop()
    first = shop.scan("t0", rows, {"n": 100})
    tree: Any = first
    for place in range(1, 8):
        other = shop.scan(f"t{place}", rows + place, {"n": 10 * place})
        tree = join(tree, other, equal(column(first, "n"), column(other, "n")))
    memo = shop.plan(tree).memo
    found = memo.split_count + len(memo.groups)
    assert found <= pairs + 30
    assert (found > 3_000) == (pairs > 3_000)


def test_a_split_is_explored_only_where_it_may_be_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 1,024 splits of a star of nine relations the search makes expressions of few."""
    shop = Shop()
    hub = shop.scan("hub", 100_000, {f"k{place}": 10 * place + 10 for place in range(8)})
    tree: Any = hub
    for place in range(8):
        other = shop.scan(f"d{place}", 10 * place + 10, {"x": 10 * place + 10})
        tree = join(tree, other, equal(column(hub, f"k{place}"), column(other, "x")))
    optimized = shop.plan(tree)
    memo = optimized.memo
    assert memo.split_count + sum(isinstance(group.expressions[0], logical.Join) for group in memo.groups) == 1_024
    assert memo.expression_count < len(memo.groups) + 100
    for name in ("_least_cost", "least_of_way"):
        monkeypatch.setattr(JoinBounds, name, lambda *_: 0.0)
    unbounded = shop.plan(tree)
    assert unbounded.memo.expression_count >= 1_024
    assert optimized.tree.estimate.cost == unbounded.tree.estimate.cost


@pytest.mark.parametrize("seed", range(30))
def test_least_costs_change_no_plan(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random graphs of joins, by keys, by indexed columns and by others: a bound that is too high would lose a plan."""
    drawn, shop = random.Random(seed), Shop()
    scans = []
    for place in range(drawn.randint(3, 6)):
        indexes = (IndexDefinition(f"i{place}", f"i{place}", ("n",), drawn.choice(list(IndexType))),)
        rows = drawn.choice((1, 10, 1_000, 200_000))
        columns = {"n": drawn.randint(1, rows), "m": drawn.randint(1, rows)}
        scans.append(shop.scan(f"t{place}", rows, columns, indexes=indexes if drawn.random() < 0.5 else ()))
    tree: Any = scans[0]
    for place, scan in enumerate(scans[1:], 1):
        other = drawn.choice(scans[:place])
        parts = [equal(column(other, drawn.choice("nm")), column(scan, drawn.choice(("id", "n", "m"))))]
        tree = join(tree, scan, *parts)
    bounded = shop.plan(tree).tree.estimate.cost
    for name in ("_least_cost", "least_of_way"):
        monkeypatch.setattr(JoinBounds, name, lambda *_: 0.0)
    assert bounded == shop.plan(tree).tree.estimate.cost


def test_a_join_that_costs_too_much_is_not_searched() -> None:
    """What its inputs and the join itself cost at least is known before one of its orders is planned."""
    shop = Shop()
    hub, few = shop.scan("hub", 1_000_000, {"a": 10, "b": 100_000}), shop.scan("few", 10, {"x": 10})
    many = shop.scan("many", 900_000, {"y": 100_000})
    tree = join(
        join(hub, many, equal(column(hub, "b"), column(many, "y"))), few, equal(column(hub, "id"), column(few, "x"))
    )
    memo = shop.plan(tree).memo
    groups = [group for group in memo.groups if isinstance(group.expressions[0], logical.Join)]
    assert any(not group.weighed for group in groups), "hub with many is never planned"


def test_many_relations_that_nothing_connects_are_joined_one_after_the_other() -> None:
    """As many sub-queries of one row in a select list: any two of them could be joined first, and none is better."""
    shop, size = Shop(), 60
    tree: Any = shop.scan("t0", 1, {"n": 1})
    for place in range(1, size):
        tree = join(tree, shop.scan(f"t{place}", 1, {"n": 1}))
    assert shop.plan(tree).memo.expression_count < MAXIMUM_PAIRS + 5 * size
