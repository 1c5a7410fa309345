"""Large queries: rules must not be applied, or look at things, more often than there are things."""

from __future__ import annotations

import cProfile
from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda import sql
from remuda.plan import logical
from remuda.plan.walk import walk
from remuda.rules.decorrelate.decorrelate import decorrelate
from remuda.rules.normalize.normalize import RuleTrace, normalize
from remuda.rules.normalize.trim import trim_columns

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        for name in "rs":
            opened.sql(f"CREATE TABLE {name} (id BIGINT, a BIGINT, b BIGINT, PRIMARY KEY (id))")
        yield opened


def normalized(grid: Any, text: str) -> tuple[logical.Root, RuleTrace]:
    planner = grid.default_session.planner()
    statement = sql.parse(text)
    assert isinstance(statement, sql.Query)
    bound = sql.bind(statement, planner.catalog, planner.search_path)
    trace = RuleTrace()
    return normalize(trim_columns(decorrelate(bound.tree, bound.next_column)[0]), trace), trace


@pytest.mark.parametrize("count", [10, 1_000])
def test_conjuncts_move_together(grid: Any, count: int) -> None:
    """A thousand conjuncts sink in as few steps as ten."""
    condition = " AND ".join(f"r.a <> {number} AND s.b > {number}" for number in range(count // 2))
    tree, trace = normalized(grid, f"SELECT r.id FROM r JOIN s ON r.id = s.a WHERE {condition}")
    assert len(trace.fired) < 10
    assert all(node.filter is not None for node in walk(tree) if isinstance(node, logical.Scan))


@pytest.mark.parametrize("count", [10, 5_000])
def test_a_list_crosses_the_join_once(grid: Any, count: int) -> None:
    values = ", ".join(map(str, range(count)))
    tree, trace = normalized(grid, f"SELECT r.id FROM r JOIN s ON r.id = s.id WHERE r.id IN ({values})")
    assert trace.fired.count("infer_transitive_equality") == 1
    assert len(trace.fired) < 10
    assert all(node.filter is not None for node in walk(tree) if isinstance(node, logical.Scan))


def test_unions_merge(grid: Any) -> None:
    tree, trace = normalized(grid, " UNION ALL ".join(["SELECT id FROM r WHERE a = 1"] * 100))
    assert len([node for node in walk(tree) if isinstance(node, logical.Union)]) == 1
    assert len(trace.fired) < 500


def test_nested_subqueries_stay_small(grid: Any) -> None:
    """Each level pulls its predicates up, though all name the outermost row too."""
    tests = "".join(
        f"EXISTS (SELECT 1 FROM s AS s{number} WHERE s{number}.a = {f's{number - 1}' if number else 'r'}.a"
        f" AND s{number}.b <> r.b AND "
        for number in range(8)
    )
    tree, _ = normalized(grid, f"SELECT id FROM r WHERE {tests} TRUE {')' * 8}")
    assert len([node for node in walk(tree) if isinstance(node, logical.Scan)]) == 9


def test_planning_a_list_is_linear(grid: Any) -> None:
    """Four times the values take four times the calls, from the text to the plan."""

    def calls(count: int, column: str) -> int:
        text = f"SELECT id FROM r WHERE {column} IN ({', '.join(map(str, range(count)))})"
        profile = cProfile.Profile()
        profile.enable()
        statement = sql.parse(text)
        assert isinstance(statement, sql.Query)
        planner = grid.default_session.planner()
        bound = sql.bind(statement, planner.catalog, planner.search_path)
        planner.finish(text, bound, planner.optimize(bound))
        profile.disable()
        return sum(entry.callcount for entry in profile.getstats())

    for column in ("id", "a"):
        assert calls(4_000, column) < 4.5 * calls(1_000, column)
