"""Every Apply becomes a join, and the answers stay what they are with the sub-query run for each row."""

from __future__ import annotations

from random import Random

import pytest

from remuda.plan import logical
from remuda.plan.checker import check_logical
from remuda.plan.walk import walk
from remuda.rules.decorrelate.decorrelate import decorrelate
from remuda.rules.decorrelate.free_columns import free_columns
from remuda.rules.normalize.normalize import NORMALIZE_RULES, RuleTrace, normalize
from remuda.rules.normalize.trim import trim_columns
from tests.rules.interpreter import Interpreter
from tests.rules.random_trees import RandomTrees, random_rows

NAMES = sorted({rule.__name__ for rules in NORMALIZE_RULES.values() for rule in rules})


@pytest.mark.parametrize(
    "seed", [*range(8), 161, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 200) if seed != 161)]
)
def test_random_trees(seed: int) -> None:
    """Trees of a few operators, each over several contents of the maps, rewritten, trimmed and normalised.

    Sometimes without a few of the rules: none depends on another for its answers, nor for coming to an end.
    An error (of two rows where one is asked for) may come later or earlier than row by row, where no outer row
    reaches the sub-query; rows that both give are the same.
    """
    for number in range(25):
        random = Random(seed * 1_000 + number)
        trees = RandomTrees(random, single=number % 3 == 0)
        tree = trees.root(random.choice([2, 3, 3, 4]))
        joined, _ = decorrelate(tree, trees.next_column)
        trimmed = trim_columns(joined)
        disabled = frozenset(random.sample(NAMES, random.choice([0, 0, 5, 15])))
        normalized = normalize(trimmed, RuleTrace(disabled, checked=True))
        assert not any(isinstance(node, logical.Apply) for node in walk(joined))
        for other in (joined, trimmed, normalized):
            assert not free_columns(other)
            check_logical(other)
            assert_sides_are_apart(other)
        for _ in range(4):
            maps = random_rows(random)
            expected = Interpreter(maps).result(tree)
            for other in (joined, trimmed, normalized):
                answer = Interpreter(maps).result(other)
                assert answer == expected or isinstance(answer, str) or isinstance(expected, str)


def assert_sides_are_apart(tree: logical.Root) -> None:
    """No column comes from both sides of a join, whichever copies of the left side were made."""
    for node in walk(tree):
        if isinstance(node, logical.Join):
            left = {column.id for column in node.left.columns}
            assert left.isdisjoint(column.id for column in node.right.columns)
