"""Lookups are planned without a memo, and the plan is the one that the search finds."""

from __future__ import annotations

import pytest

from remuda.catalog import MapStatistics
from remuda.optimizer.optimize import FAST_PATH
from remuda.plan.explain import explain
from tests.optimizer.maps import STATISTICS, define, plan

LOOKUPS = [
    "SELECT * FROM m WHERE id = ?",
    "SELECT a, x FROM m WHERE id = 5",
    "SELECT a + 1 AS n, s || s || s || s AS t FROM m WHERE id = ?",
    "SELECT id FROM m WHERE id = ? AND a > 5",
    "SELECT x FROM m WHERE a = ?",
    "SELECT x FROM m WHERE a = ? AND b BETWEEN ? AND ?",
    "SELECT * FROM m WHERE b = ? AND a = 3",
    "SELECT id FROM m WHERE b = ? AND x > ?",
    "SELECT x * 2 AS y FROM m WHERE x = ? AND f < 5",
    "SELECT * FROM m WHERE a IS NULL",
]
OTHERS = [
    "SELECT * FROM m",
    "SELECT * FROM m WHERE g = 5",
    "SELECT * FROM m WHERE a = ? ORDER BY x",
    "SELECT * FROM m WHERE a = ? LIMIT 5",
    "SELECT COUNT(*) FROM m WHERE a = ?",
    "SELECT * FROM m WHERE a = 1 OR b = 2",
    "DELETE FROM m WHERE id = ?",
]
INDEXES = ("SORTED(a, b)", "HASH(b)", "SORTED(x)")


@pytest.mark.parametrize("statistics", [STATISTICS, MapStatistics(rows=0), MapStatistics(rows=10)])
@pytest.mark.parametrize("members", [1, 3, 40])
@pytest.mark.parametrize("replicated", [False, True])
@pytest.mark.parametrize("text", LOOKUPS)
def test_the_plan_is_that_of_the_search(text: str, members: int, replicated: bool, statistics: MapStatistics) -> None:
    definition = define(*INDEXES, replicated=replicated)
    fast = plan(text, definition, members=members, statistics=statistics)
    searched = plan(text, definition, members=members, statistics=statistics, disabled=frozenset({FAST_PATH}))
    assert FAST_PATH in fast.fired
    assert not fast.memo.groups
    assert searched.memo.groups
    assert explain(fast.tree) == explain(searched.tree)
    assert fast.tree == searched.tree


@pytest.mark.parametrize("text", OTHERS)
def test_all_else_is_searched(text: str) -> None:
    found = plan(text, define(*INDEXES))
    assert FAST_PATH not in found.fired
    assert found.memo.groups
