"""Rules and costs that a program registers: the documented example runs, and a grid keeps those of its opening."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.expr import Call, Literal, conjunction, conjuncts
from remuda.optimizer import register_cost, register_rule
from remuda.plan import logical, physical
from remuda.rules import extensions
from remuda.rules.extensions import NO_EXTENSIONS
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    yield
    assert extensions.registered() == NO_EXTENSIONS


def explained(grid: Any, text: str) -> str:
    return "\n".join(row[0] for row in grid.sql(f"EXPLAIN {text}"))


def open_grid() -> Any:
    grid = remuda.open()
    grid.sql("CREATE TABLE t (id BIGINT, a BIGINT, PRIMARY KEY (id))")
    grid.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, NULL)")
    return grid


def test_the_documented_example_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    exec("\n".join(blocks), {})


def empty_negative(node: Any) -> Any:
    """Filter(x, a < 0) → no rows."""
    for part in conjuncts(node.filter):
        if isinstance(part, Call) and part.function == "<" and part.arguments[1] == Literal(0, part.arguments[1].type):
            return logical.Values(node.columns, ())
    return None


def test_a_rule_holds_for_grids_opened_afterwards() -> None:
    text = "SELECT id FROM t WHERE a < 0"
    with open_grid() as before:
        assert list(before.sql(text)) == []
        remove = register_rule(empty_negative, kind="normalize", operator=logical.Scan)
        with open_grid() as after:
            assert "MapScan" in explained(before, text)
            assert "MapScan" not in explained(after, text)
            assert list(after.sql(text)) == list(before.sql(text)) == []
            remove()
            assert "MapScan" not in explained(after, text)
        with open_grid() as last:
            assert "MapScan" in explained(last, text)


def test_an_explore_rule_is_weighed() -> None:
    """The tree that it adds is in the memo, and taken only where it is cheaper."""

    def repeat_filter(node: Any, _context: Any) -> Iterator[Any]:
        if node.filter is not None and len(conjuncts(node.filter)) == 1:
            column = node.columns[0]
            yield logical.Scan(
                node.map, node.columns, conjunction([node.filter, Call("is not null", (column,), BOOLEAN)])
            )

    remove = register_rule(repeat_filter, kind="explore", operator=logical.Scan)
    with open_grid() as grid:
        memo = explained(grid, "SELECT id FROM t WHERE a > 5").splitlines()
        assert any("filter: a > 5" in line for line in memo)
        groups = "\n".join(row[0] for row in grid.sql("EXPLAIN MEMO SELECT id FROM t WHERE a > 5"))
        assert "Scan t, Scan t" in groups
        assert sorted(grid.sql("SELECT id FROM t WHERE a > 5")) == [(1,), (2,)]
    remove()


def test_a_tree_with_other_columns_is_refused() -> None:
    def lose_column(node: Any, _context: Any) -> Iterator[Any]:
        yield logical.Scan(node.map, node.columns[:1], node.filter)

    remove = register_rule(lose_column, kind="explore", operator=logical.Scan)
    with open_grid() as grid, pytest.raises(AssertionError, match="lose_column keeps the columns"):
        grid.sql("SELECT id, a FROM t")
    remove()


def test_an_implement_rule_is_asked() -> None:
    asked: list[Any] = []

    def no_way(node: Any, required: Any, _context: Any) -> Iterator[Any]:
        asked.append((node, required))
        return iter(())

    remove = register_rule(no_way, kind="implement", operator=logical.Aggregate)
    with open_grid() as grid:
        assert list(grid.sql("SELECT COUNT(*) FROM t")) == [(3,)]
    remove()
    assert asked


def test_a_cost_changes_the_choice() -> None:
    text = "SELECT id FROM t WHERE id = 1"
    remove = register_cost(physical.KeyLookup, lambda _node, _rows, built_in: built_in + 1e9)
    with open_grid() as grid:
        assert "MapScan" in explained(grid, text)
        assert list(grid.sql(text)) == [(1,)]
    remove()
    with open_grid() as grid:
        assert "KeyLookup" in explained(grid, text)


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of rule"):
        register_rule(empty_negative, kind="other", operator=logical.Scan)  # type: ignore[arg-type]
