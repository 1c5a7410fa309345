"""Splitting a plan at its exchanges: one fragment for each, joined by numbered edges."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

from remuda.plan import physical
from remuda.plan.explain import explain
from remuda.plan.fragments import Fragment, Plan, split
from remuda.plan.partition_map import PartitionMap
from remuda.plan.physical import Estimate, Phase
from remuda.plan.result_column import ResultColumn
from remuda.plan.traits import Convention
from remuda.plan.walk import change_inputs, inputs, walk, with_inputs
from remuda.types import BIGINT
from tests.plan.trees import (
    AT_ROOT,
    BY_AMOUNT,
    ID,
    INDEX,
    MAP,
    ON_MEMBERS,
    ON_SPARK,
    TEN,
    count,
    exchange,
    keep_all,
    ordered,
    ordered_scan,
    root,
    scan,
)


def shape(fragment: Fragment) -> list[str]:
    return [type(node).__name__ for node in walk(fragment.node)]


def test_without_an_exchange_there_is_one_fragment() -> None:
    tree = root(scan())
    assert split(tree) == (Fragment(0, tree, Convention.LOCAL),)
    assert split(tree)[0].node is tree


def test_an_exchange_becomes_a_send_and_a_receive() -> None:
    tree = root(count(exchange(count(scan(), Phase.PARTIAL, ON_MEMBERS)), Phase.FINAL, AT_ROOT))
    upper, lower = split(tree)
    assert shape(upper) == ["Root", "HashAggregate", "Receive"]
    assert shape(lower) == ["Send", "HashAggregate", "MapScan"]
    assert (upper.number, lower.number) == (0, 1)
    receive, send = list(walk(upper.node))[-1], lower.node
    assert isinstance(receive, physical.Receive)
    assert isinstance(send, physical.Send)
    assert receive.edge == send.edge == 1
    assert receive.columns == send.columns
    assert lower.scans == (scan(),)
    assert upper.scans == ()


def test_the_tree_itself_stays_whole() -> None:
    tree = root(exchange(scan()))
    before = explain(tree)
    split(tree)
    assert explain(tree) == before


def test_a_receive_merges_in_the_order_of_the_exchange() -> None:
    unordered, merged = root(exchange(scan())), root(exchange(ordered_scan(), ordered(AT_ROOT)), ordered(AT_ROOT))
    assert [list(walk(split(tree)[0].node))[-1].collation for tree in (unordered, merged)] == [(), BY_AMOUNT]


def test_a_fragment_runs_in_the_backend_of_its_rows() -> None:
    upper, lower = split(root(exchange(scan(ON_SPARK))))
    assert (upper.convention, lower.convention) == (Convention.LOCAL, Convention.SPARK)


def test_estimates_survive_the_cut() -> None:
    priced = physical.RootExchange(scan(), AT_ROOT, estimate=Estimate(7.0, 9.0))
    upper, _ = split(root(priced))
    assert list(walk(upper.node))[-1].estimate == Estimate(7.0, 9.0)


def test_a_plan_pickles() -> None:
    tree = root(exchange(physical.Limit(ordered_scan(), TEN, None, ordered(ON_MEMBERS)), ordered(AT_ROOT)))
    plan = Plan(
        sql="SELECT ...",
        tree=tree,
        fragments=split(tree),
        parameters=(BIGINT,),
        parameter_names=(),
        columns=(ResultColumn("id", BIGINT, nullable=False),),
        maps=(MAP,),
        partition_map=PartitionMap(1, (("one", (0, 2)), ("two", (1,))), 3),
    )
    copied = pickle.loads(pickle.dumps(plan))
    assert copied == plan
    assert copied.root == plan.fragments[0]
    assert copied.used_indexes == (INDEX,)
    candidate = physical.IndexCandidate(replace(INDEX, id="other"), (), None)
    choosing = replace(plan, tree=root(replace(ordered_scan(), candidates=(candidate,))))
    assert pickle.loads(pickle.dumps(choosing)).used_indexes == (INDEX, candidate.index)
    assert copied.partition_map.members == ("one", "two")


def test_walking_and_rebuilding() -> None:
    tree = root(exchange(keep_all(scan(), ON_MEMBERS)))
    assert [type(node).__name__ for node in walk(tree)] == ["Root", "RootExchange", "Filter", "MapScan"]
    assert inputs(scan()) == ()
    assert with_inputs(tree, inputs(tree)) is tree
    assert change_inputs(tree, lambda node: node) is tree

    def without_filters(node: Any) -> Any:
        return (
            without_filters(node.input) if isinstance(node, physical.Filter) else change_inputs(node, without_filters)
        )

    assert without_filters(tree) == root(exchange(scan()))
    assert without_filters(tree).columns[0] == ID
