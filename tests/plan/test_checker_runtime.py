"""The plan checker on what operators tell each other when they run: runtime filters, top-N bounds, row joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from remuda.catalog import ColumnDefinition, IndexDefinition, IndexType, MapDefinition
from remuda.errors import SqlError
from remuda.expr import Call, Column, Literal
from remuda.plan import physical
from remuda.plan.bounds import Interval
from remuda.plan.checker import check_physical
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.physical import JoinSide
from remuda.plan.traits import PARTITIONED, ROOT, Convention, SortKey, Traits
from remuda.types import BIGINT

HERE = Traits(Convention.LOCAL, ROOT)
A, B, C, D, E = (Column(number, name, BIGINT) for number, name in enumerate("abcde"))
LEFT, RIGHT = physical.Values((A, B), (), HERE), physical.Values((C, D), (), HERE)
SPREAD = replace(LEFT, traits=Traits(Convention.LOCAL, PARTITIONED))
KEY, OTHER = JoinKey(A, C), JoinKey(B, D)


def keys(side: JoinSide, *made: JoinKey, number: int = 1) -> physical.RuntimeKeys:
    return physical.RuntimeKeys(number, side, made, 100)


def filtered(source: Any, *columns: Column, number: int = 1) -> physical.RuntimeFilter:
    return physical.RuntimeFilter(source, number, columns, HERE)


def groups(source: Any, *by: Column) -> physical.HashAggregate:
    return physical.HashAggregate(source, by, (), (), physical.Phase.COMPLETE, HERE)


def join(left: Any, right: Any, made: physical.RuntimeKeys | None, kind: JoinKind = JoinKind.INNER) -> Any:
    return physical.HashJoin(kind, left, right, (KEY, OTHER), None, None, None, HERE, made)


def check(node: Any) -> None:
    check_physical(physical.Root(node, node.columns, tuple(each.name for each in node.columns), HERE), members=1)


BY_LEFT = join(LEFT, filtered(RIGHT, C), keys(JoinSide.LEFT, KEY), JoinKind.SEMI)
BY_RIGHT = join(groups(filtered(LEFT, A, B), A, B), RIGHT, keys(JoinSide.RIGHT, KEY, OTHER))
RENAMED = physical.Project(groups(filtered(LEFT, A), A), (Assignment(E, A), Assignment(B, Literal(1, BIGINT))), HERE)
TWICE = physical.HashJoin(
    JoinKind.INNER, RENAMED, RIGHT, (JoinKey(E, C),), None, None, None, HERE, keys(JoinSide.RIGHT, JoinKey(E, C))
)


@pytest.mark.parametrize("node", [BY_LEFT, BY_RIGHT, TWICE, join(LEFT, RIGHT, None)])
def test_right_runtime_filters(node: Any) -> None:
    check(node)


WRONG = {
    "drops no row": [
        replace(BY_LEFT, kind=JoinKind.RIGHT),
        replace(BY_LEFT, kind=JoinKind.MARK, mark=E),
        replace(BY_RIGHT, kind=JoinKind.LEFT),
        replace(BY_RIGHT, kind=JoinKind.ANTI),
    ],
    "keys of its join": [
        join(LEFT, filtered(RIGHT, C), keys(JoinSide.LEFT, JoinKey(B, C))),
        join(LEFT, filtered(RIGHT, C), keys(JoinSide.LEFT)),
    ],
    "is of its join": [
        join(LEFT, filtered(RIGHT, D), keys(JoinSide.LEFT, KEY)),
        join(LEFT, filtered(RIGHT, C, number=2), keys(JoinSide.LEFT, KEY)),
    ],
    "below groups by its keys": [
        join(LEFT, RIGHT, keys(JoinSide.LEFT, KEY)),
        join(LEFT, replace(groups(filtered(RIGHT, C), C, D), phase=physical.Phase.FINAL), keys(JoinSide.LEFT, KEY)),
        join(physical.Sort(filtered(LEFT, A), (SortKey(A.id),), HERE), RIGHT, keys(JoinSide.RIGHT, KEY)),
    ],
    "makes every runtime filter": [join(LEFT, filtered(RIGHT, C), None)],
    "number of its own": [
        physical.NestedLoopJoin(JoinKind.SEMI, BY_LEFT, BY_LEFT, None, None, None, HERE),
    ],
    "no sender": [join(physical.RootExchange(SPREAD, HERE), filtered(RIGHT, C), keys(JoinSide.LEFT, KEY))],
}


@pytest.mark.parametrize(("need", "node"), [(need, node) for need, nodes in WRONG.items() for node in nodes])
def test_wrong_runtime_filters(need: str, node: Any) -> None:
    with pytest.raises(SqlError, match=need):
        check(node)


def test_a_row_join_does_not_know_which_right_rows_met_none() -> None:
    check(replace(join(LEFT, RIGHT, None), row_cutover=256))
    with pytest.raises(SqlError, match="row join"):
        check(replace(join(LEFT, RIGHT, None, JoinKind.FULL), row_cutover=256))


COLUMNS = (ColumnDefinition("a", BIGINT), ColumnDefinition("b", BIGINT))
MAP = MapDefinition("1", "public", "m", COLUMNS, ("a",), ("a",), 7)


def scan(order: physical.ZoneOrder | None) -> physical.MapScan:
    return physical.MapScan(MAP, (A, B), None, None, HERE, order)


def top(source: Any, bound: int | None) -> physical.TopN:
    return physical.TopN(source, (SortKey(A.id), SortKey(B.id)), Literal(3, BIGINT), None, HERE, bound)


def order(number: int = 1, column: Column = A) -> physical.ZoneOrder:
    return physical.ZoneOrder(number, SortKey(column.id), 100, 1e6)


def positive(source: Any) -> physical.Filter:
    return physical.Filter(source, Call("is not null", (A,), BIGINT), HERE)


@pytest.mark.parametrize("node", [top(scan(None), None), top(scan(order()), 1), top(positive(scan(order())), 1)])
def test_right_bounds(node: Any) -> None:
    check(node)


@pytest.mark.parametrize(
    ("need", "node"),
    [
        ("reaches a scan", top(scan(None), 1)),
        ("reaches a scan", top(scan(order(2)), 1)),
        ("reaches a scan", top(groups(scan(order()), A, B), 1)),
        ("the first key", top(scan(order(1, B)), 1)),
        ("bounds every scan", top(scan(order()), None)),
        ("bounds every scan", scan(order())),
    ],
)
def test_wrong_bounds(need: str, node: Any) -> None:
    with pytest.raises(SqlError, match=need):
        check(node)


def pruned(number: int = 1, columns: tuple[str, ...] = ("a",), places: tuple[int, ...] = (0,)) -> physical.MapScan:
    rule = physical.DynamicPruning(number, columns, places, 28, 100)
    return replace(scan(None), dynamic_pruning=rule)


def test_right_dynamic_pruning() -> None:
    check(join(pruned(), RIGHT, keys(JoinSide.RIGHT, KEY)))
    check(join(positive(pruned()), RIGHT, keys(JoinSide.RIGHT, KEY)))


@pytest.mark.parametrize(
    ("need", "node"),
    [
        ("makes the keys", join(pruned(), RIGHT, None)),
        ("are used", join(scan(None), RIGHT, keys(JoinSide.RIGHT, KEY))),
        ("are used", join(pruned(2), RIGHT, keys(JoinSide.RIGHT, KEY))),
        ("all partitioning columns", join(pruned(columns=("b",)), RIGHT, keys(JoinSide.RIGHT, KEY))),
        ("no row that the join delivers", join(pruned(), RIGHT, keys(JoinSide.RIGHT, KEY), JoinKind.LEFT)),
    ],
)
def test_wrong_dynamic_pruning(need: str, node: Any) -> None:
    with pytest.raises(SqlError, match=need):
        check(node)


def looking_up(
    number: int = 1, columns: tuple[str, ...] = ("a",), index: IndexDefinition | None = None
) -> physical.MapScan:
    rule = physical.DynamicLookup(number, index, columns, (0,), 28, None if index is None else 100)
    return replace(scan(None), dynamic_lookup=rule)


def test_right_dynamic_lookup() -> None:
    check(join(looking_up(), RIGHT, keys(JoinSide.RIGHT, KEY)))
    check(join(positive(looking_up()), RIGHT, keys(JoinSide.RIGHT, KEY)))


NO_INDEX = IndexDefinition("a", "a", ("a",), IndexType.SORTED)


@pytest.mark.parametrize(
    ("need", "node"),
    [
        ("makes the keys", join(looking_up(), RIGHT, None)),
        ("are used", join(looking_up(2), RIGHT, keys(JoinSide.RIGHT, KEY))),
        ("looks up its key", join(looking_up(columns=("b",)), RIGHT, keys(JoinSide.RIGHT, KEY))),
        ("an index of its map", join(looking_up(index=NO_INDEX), RIGHT, keys(JoinSide.RIGHT, KEY))),
        ("no row that the join delivers", join(looking_up(), RIGHT, keys(JoinSide.RIGHT, KEY), JoinKind.LEFT)),
    ],
)
def test_wrong_dynamic_lookup(need: str, node: Any) -> None:
    with pytest.raises(SqlError, match=need):
        check(node)


BY_A, BY_B, ELSEWHERE = (IndexDefinition(name, name, (name,), IndexType.SORTED) for name in "abc")
INDEXED = MapDefinition("t", "s", "t", (ColumnDefinition("a", BIGINT),), ("a",), ("a",), 271, indexes=(BY_A, BY_B))
ANYTHING = (Interval(),)


def chosen(*candidates: physical.IndexCandidate) -> physical.IndexScan:
    unordered = physical.Direction.UNORDERED
    return physical.IndexScan(INDEXED, BY_A, (A,), ANYTHING, None, unordered, None, HERE, candidates=candidates)


def test_right_candidates() -> None:
    check(chosen())
    check(chosen(physical.IndexCandidate(BY_B, ANYTHING, None)))


@pytest.mark.parametrize(
    ("need", "candidates"),
    [
        ("another index", (physical.IndexCandidate(BY_A, ANYTHING, None),)),
        ("another index", (physical.IndexCandidate(BY_B, ANYTHING, None),) * 2),
        ("an index of the map", (physical.IndexCandidate(ELSEWHERE, ANYTHING, None),)),
        ("has bounds", (physical.IndexCandidate(BY_B, (), None),)),
        ("has bounds", (physical.IndexCandidate(BY_B, (*ANYTHING, *ANYTHING), None),)),
    ],
)
def test_wrong_candidates(need: str, candidates: tuple[physical.IndexCandidate, ...]) -> None:
    with pytest.raises(SqlError, match=need):
        check(chosen(*candidates))


RULE = physical.SortRule(0.3, 0.3, 1.0)


def ordered(*candidates: physical.IndexCandidate, rule: physical.SortRule | None) -> physical.IndexScan:
    direction = physical.Direction.ASCENDING
    traits = replace(HERE, collation=(SortKey(A.id),))
    return replace(chosen(*candidates), direction=direction, traits=traits, sort_rule=rule)


def test_a_scan_in_order_has_a_rule_for_its_candidates() -> None:
    candidate = physical.IndexCandidate(BY_B, ANYTHING, None)
    check(ordered(candidate, rule=RULE))
    with pytest.raises(SqlError, match="sorts the rows"):
        check(ordered(candidate, rule=None))
    with pytest.raises(SqlError, match="sorts the rows"):
        check(replace(chosen(candidate), sort_rule=RULE))


def united(scan: physical.MapScan, *sources: Any, cutover: physical.ScanCutover | None) -> physical.Union:
    return physical.Union(sources, (A,), ((A,),) * len(sources), HERE, scan, cutover)


WHOLE = physical.MapScan(INDEXED, (A,), None, None, HERE)
CUTOVER = physical.ScanCutover(((100.0, 0.0),))
OTHER_MAP = replace(INDEXED, id="u", name="u")


def test_a_right_scan_for_a_union() -> None:
    check(united(WHOLE, chosen(), chosen(), cutover=CUTOVER))


@pytest.mark.parametrize(
    ("need", "union"),
    [
        ("a rule for its scan", united(WHOLE, chosen(), chosen(), cutover=None)),
        ("columns of its union", united(replace(WHOLE, columns=(A, B)), chosen(), chosen(), cutover=CUTOVER)),
        ("of the map", united(replace(WHOLE, map=OTHER_MAP), chosen(), chosen(), cutover=CUTOVER)),
        ("of the map", united(WHOLE, chosen(), WHOLE, cutover=CUTOVER)),
    ],
)
def test_wrong_scans_for_a_union(need: str, union: physical.Union) -> None:
    with pytest.raises(SqlError, match=need):
        check(union)
