"""What is claimed of a relation from its tree is true of its rows, whatever is in the maps."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from remuda.expr import Call, Literal
from remuda.plan import logical
from remuda.plan.aggregates import AggregateCall
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.walk import walk
from remuda.rules.decorrelate.decorrelate import decorrelate
from remuda.rules.decorrelate.free_columns import free_columns
from remuda.rules.normalize.normalize import normalize
from remuda.rules.tree_properties import has_exactly_one_row, not_null_columns, unique_keys
from remuda.types import BIGINT, BOOLEAN
from tests.rules.interpreter import Interpreter
from tests.rules.random_trees import RandomTrees, random_rows
from tests.rules.test_each_rule import joined_tree


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 100))])
def test_claims_hold_for_random_trees(seed: int) -> None:
    for number in range(60):
        random = Random(10_000 + seed * 1_000 + number)
        tree, _ = joined_tree(random, number, single=False)
        maps = [random_rows(random) for _ in range(4)]
        for other in (tree, normalize(tree)):
            for node in walk(other.input):
                if not _reads_working_table(node) and not free_columns(node):
                    for rows in maps:
                        check_claims(node, Interpreter(rows).rows(node, {}))


@pytest.mark.parametrize(("kind", "guard"), [(JoinKind.LEFT, True), (JoinKind.SINGLE, False)])
@pytest.mark.parametrize("grouped", [True, False])
def test_a_column_of_a_sub_query_can_be_null_where_there_is_no_row(kind: JoinKind, guard: bool, grouped: bool) -> None:
    """COUNT(*), or the outer row's key, of a sub-query that the condition, or HAVING, leaves without a row."""
    trees = RandomTrees(Random(1), single=False)
    outer, inner = trees._scan(), trees._scan()
    key = replace(outer.columns[0], outer=True)
    same: Any = logical.Filter(inner, Call("=", (inner.columns[0], key), BOOLEAN))
    if grouped:
        count = AggregateCall(trees._column("n", nullable=False), "count")
        counted = logical.Aggregate(same, (), (count,))
        large = Call(">", (count.column, Literal(5, BIGINT)), BOOLEAN)
        right: Any = counted if guard else logical.Filter(counted, large)
    else:
        right = logical.Project(same, (Assignment(trees._column("k", nullable=False), key),))
    condition = Call(">", (outer.columns[0], Literal(5, BIGINT)), BOOLEAN) if guard else None
    apply = logical.Apply(kind, outer, right, condition)
    tree, _ = decorrelate(logical.Root(apply, apply.columns, ()), trees.next_column)
    assert not_null_columns(tree.input).isdisjoint(column.id for column in right.columns)


def _reads_working_table(node: Any) -> bool:
    """Such a part has rows only within its recursion."""
    recursions = {part.table for part in walk(node) if isinstance(part, logical.Recursive)}
    return any(isinstance(part, logical.WorkingTable) and part.table not in recursions for part in walk(node))


def check_claims(node: Any, rows: list[dict[int, Any]]) -> None:
    for key in unique_keys(node):
        values = [tuple(row[id_] for id_ in sorted(key)) for row in rows]
        assert len(set(values)) == len(values), f"{sorted(key)} is not unique"
    delivered = {column.id for column in node.columns}
    for id_ in not_null_columns(node) & delivered:
        assert all(row[id_] is not None for row in rows), f"{id_} can be NULL"
    if has_exactly_one_row(node):
        assert len(rows) == 1
