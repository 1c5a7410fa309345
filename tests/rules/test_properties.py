"""What is claimed of a relation from its tree is true of its rows, whatever is in the maps."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from remuda.plan import logical
from remuda.plan.walk import walk
from remuda.rules.decorrelate import decorrelate
from remuda.rules.free_columns import free_columns
from remuda.rules.normalize import normalize
from remuda.rules.properties import has_exactly_one_row, not_null_columns, unique_keys
from tests.rules.interpreter import Interpreter
from tests.rules.random_trees import RandomTrees, random_rows


@pytest.mark.parametrize("seed", range(4))
def test_claims_hold_for_random_trees(seed: int) -> None:
    for number in range(25):
        random = Random(10_000 + seed * 1_000 + number)
        trees = RandomTrees(random, single=False)
        tree, _ = decorrelate(trees.root(3), trees.next_column)
        maps = [random_rows(random) for _ in range(4)]
        for other in (tree, normalize(tree)):
            for node in walk(other.input):
                if not _reads_working_table(node) and not free_columns(node):
                    for rows in maps:
                        check_claims(node, Interpreter(rows).rows(node, {}))


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
