"""The keys of one side of a join filter the other: the same rows come out, and far fewer are held or grouped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.exec import Exec, ExpressionCache
from remuda.exec.build import build_operator
from remuda.exec.context import ExecContext
from remuda.expr import Call, Column, Parameters
from remuda.optimizer import cost
from remuda.optimizer.finishing.runtime_decisions import place_runtime_filters
from remuda.plan.aggregates import AggregateCall
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.physical import (
    Estimate,
    Filter,
    HashAggregate,
    HashJoin,
    JoinSide,
    Phase,
    Project,
    RootExchange,
    RuntimeFilter,
)
from remuda.plan.traits import Traits
from remuda.types import BIGINT, BOOLEAN, VARCHAR
from tests.exec.scripted import FORMS, SHAPES, Rows, ScriptedExec, drain, script, source_node
from tests.exec.test_joins import (
    KEY,
    LEFT,
    LEFT_ROWS,
    NAME_KEY,
    RIGHT,
    RIGHT_NUMBER,
    RIGHT_ROWS,
    SMALLER_NAME,
    expected,
    ordered,
)

FEW, MANY = Estimate(rows=10), Estimate(rows=1_000_000)
CUTS = ("one batch", "two by two", "waits")
SAFE = replace(KEY, null_safe=True)

each_input = pytest.mark.parametrize(("shape", "form"), [(shape, form) for shape in CUTS for form in FORMS], ids=str)
each_key = pytest.mark.parametrize(
    "keys", [(KEY,), (SAFE,), (NAME_KEY,), (SAFE, NAME_KEY)], ids=["number", "NULL-safe", "text", "both"]
)


ONLY_MATCHES = [kind for kind in JoinKind if kind.ignores_unmatched_right]
NEEDS_MATCH = [kind for kind in JoinKind if kind.drops_unmatched_left]


def test_which_rows_a_join_may_do_without() -> None:
    assert {kind.name for kind in ONLY_MATCHES} == {"INNER", "LEFT", "SEMI", "ANTI", "SINGLE"}
    assert {kind.name for kind in NEEDS_MATCH} == {"INNER", "SEMI", "RIGHT"}


def placed(node: HashJoin) -> HashJoin:
    """The join as the rule leaves it, its filter being #1."""
    changed = place_runtime_filters(node, lambda: 1)
    assert isinstance(changed, HashJoin)
    return changed


class Scripts(ExpressionCache):
    """Plays what is scripted for a node; all others are built as ever."""

    __slots__ = ("_form", "_scripts", "_shape")

    def __init__(self, shape: str, form: str, *scripts: tuple[Any, Rows]) -> None:
        super().__init__()
        self._scripts = scripts
        self._shape = shape
        self._form = form

    def built(self, node: Any, operator: Exec) -> Exec:
        for scripted, rows in self._scripts:
            if node is scripted:
                return ScriptedExec(node.columns, script(node.columns, rows, SHAPES[self._shape], self._form))
        return operator


def small_left(kind: JoinKind, keys: tuple[JoinKey, ...], condition: Any = None) -> HashJoin:
    left, right = replace(source_node(LEFT), estimate=FEW), replace(source_node(RIGHT), estimate=MANY)
    return HashJoin(kind, left, right, keys, condition, None, None, Traits())


def joined(node: HashJoin, lefts: Rows, rights: Rows, shape: str = "one batch", form: str = "arrow") -> Rows:
    changed: Any = placed(node)
    assert changed.runtime_keys.side is JoinSide.LEFT
    assert changed.right == RuntimeFilter(node.right, 1, tuple(key.right for key in node.keys), Traits())
    code = Scripts(shape, form, (node.left, lefts), (node.right, rights))
    return drain(build_operator(changed, code))


@pytest.mark.parametrize("kind", ONLY_MATCHES, ids=str)
@each_key
@each_input
def test_left_side_read_first(kind: JoinKind, keys: tuple[JoinKey, ...], shape: str, form: str) -> None:
    rights = RIGHT_ROWS[1:3] if kind is JoinKind.SINGLE else RIGHT_ROWS
    for condition in (None, SMALLER_NAME):
        node = small_left(kind, keys, condition)
        for lefts in (LEFT_ROWS, []):
            found = joined(node, lefts, rights, shape, form)
            assert ordered(found) == ordered(expected(node, lefts, rights))
        assert ordered(joined(node, LEFT_ROWS, [], shape, form)) == ordered(expected(node, LEFT_ROWS, []))


@pytest.mark.parametrize("shape", SHAPES)
def test_left_side_that_is_larger_than_expected(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    node = replace(small_left(JoinKind.LEFT, (KEY,)), left=replace(source_node(LEFT), estimate=Estimate(rows=2)))
    monkeypatch.setattr(cost, "SPOOLED_PROBE_ROWS", 2)
    assert ordered(joined(node, LEFT_ROWS, RIGHT_ROWS, shape)) == ordered(expected(node, LEFT_ROWS, RIGHT_ROWS))


def test_only_rows_with_a_match_are_held() -> None:
    node = small_left(JoinKind.SEMI, (KEY,))
    lefts: Rows = [(5, "a"), (7, "b"), (-1, "c")]
    rights: Rows = [(number, "x") for number in range(1_000)]
    code = Scripts("one batch", "arrow", (node.left, lefts), (node.right, rights))
    context = ExecContext(Parameters(), {})
    assert drain(build_operator(placed(node), code), context) == [(5, "a"), (7, "b")]
    assert context.activity.decisions == {
        "runtime filter #1: {} keys of {} rows": (3, 3),
        "build side: right, {} rows": (2,),
    }


@pytest.mark.parametrize("kind", [kind for kind in JoinKind if kind not in ONLY_MATCHES], ids=str)
def test_joins_that_need_every_right_row_read_it_first(kind: JoinKind) -> None:
    node = small_left(kind, (KEY,))
    assert placed(node) is node


def test_a_left_side_that_waits_for_senders_is_not_read_ahead() -> None:
    node: Any = small_left(JoinKind.SEMI, (KEY,))
    received = replace(node, left=RootExchange(node.left, Traits(), estimate=FEW))
    assert placed(received) is received


@pytest.mark.parametrize(("left", "right"), [(0, 1_000_000), (20_000, 60_000), (10, 49_999), (300_000, 10_000_000)])
def test_only_a_small_left_side_of_a_large_right_one_is_read_ahead(left: float, right: float) -> None:
    node: Any = small_left(JoinKind.SEMI, (KEY,))
    other = replace(
        node,
        left=replace(node.left, estimate=Estimate(rows=left)),
        right=replace(node.right, estimate=Estimate(rows=right)),
    )
    assert placed(other) is other


GROUP = Column(20, "group", BIGINT)
VALUE = Column(21, "value", BIGINT)
LABEL = Column(22, "label", VARCHAR)
TOTAL = Column(23, "total", BIGINT)
RENAMED = Column(24, "renamed", BIGINT)
LINES = (GROUP, VALUE, LABEL)
LINE_ROWS: Rows = [(number % 5 if number % 7 else None, number, "ab"[number % 2]) for number in range(60)]


def grouped_left(kind: JoinKind, *, null_safe: bool = False) -> HashJoin:
    """Groups by two columns, of which the join knows one, under another name."""
    lines = replace(source_node(LINES), estimate=MANY)
    call = AggregateCall(TOTAL, "count", VALUE)
    groups = HashAggregate(lines, (GROUP, LABEL), (call,), ((),), Phase.COMPLETE, Traits())
    positive = Filter(groups, Call("is not null", (TOTAL,), BOOLEAN), Traits())
    assignments = (Assignment(RENAMED, GROUP), Assignment(LABEL, LABEL), Assignment(TOTAL, TOTAL))
    project = Project(positive, assignments, Traits())
    keys = (JoinKey(RENAMED, RIGHT_NUMBER, null_safe),)
    return HashJoin(kind, project, source_node(RIGHT), keys, None, None, None, Traits())


@pytest.mark.parametrize("kind", NEEDS_MATCH, ids=str)
@pytest.mark.parametrize("null_safe", [False, True])
@each_input
def test_rows_are_filtered_before_they_are_grouped(kind: JoinKind, null_safe: bool, shape: str, form: str) -> None:
    node: Any = grouped_left(kind, null_safe=null_safe)
    lines = node.left.input.input.input
    groups: dict[tuple[Any, ...], int] = {}
    for group, _, label in LINE_ROWS:
        groups[group, label] = groups.get((group, label), 0) + 1
    lefts = [(*key, count) for key, count in groups.items()]
    changed: Any = placed(node)
    assert changed.runtime_keys.side is JoinSide.RIGHT
    assert changed.left.input.input.input == RuntimeFilter(lines, 1, (GROUP,), Traits())
    for rights in ([(2, "b"), (1, "a"), (None, "n"), (9, "b")], []):
        code = Scripts(shape, form, (lines, LINE_ROWS), (node.right, rights))
        context = ExecContext(Parameters(), {})
        found = drain(build_operator(changed, code), context)
        assert ordered(found) == ordered(expected(node, lefts, rights))
        table = context.runtime_filters[1].table
        assert table is not None
        assert table.contains([pa.array([2, 3])]).tolist() == [bool(rights), False]


def test_no_filter_is_made_of_too_many_rows() -> None:
    node: Any = grouped_left(JoinKind.INNER)
    lines = node.left.input.input.input
    changed: Any = placed(node)
    assert changed.runtime_keys.most_rows == 250_000
    changed = replace(changed, runtime_keys=replace(changed.runtime_keys, most_rows=3))
    rights: Rows = [(number, "x") for number in range(4)]
    context = ExecContext(Parameters(), {})
    code = Scripts("one batch", "arrow", (lines, LINE_ROWS), (node.right, rights))
    assert len(drain(build_operator(changed, code), context)) == 8
    assert context.runtime_filters[1].table is None
    assert context.activity.decisions["runtime filter #1: not made of {} rows"] == (4,)


def test_an_outer_join_needs_all_groups() -> None:
    node: Any = grouped_left(JoinKind.LEFT)
    assert placed(node) is node


def test_a_key_that_is_no_key_of_the_groups_does_not_filter_them() -> None:
    node: Any = grouped_left(JoinKind.INNER)
    by_total = replace(node, keys=(JoinKey(TOTAL, RIGHT_NUMBER),))
    assert placed(by_total) is by_total


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE lines (id BIGINT, item BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE items (item BIGINT, kind BIGINT, PRIMARY KEY (item))")
        rows = 200_000
        lines = {
            "id": range(rows),
            "item": [row % 50_000 for row in range(rows)],
            "n": [row % 97 for row in range(rows)],
        }
        opened.load("lines", pa.table(lines))
        opened.load("items", pa.table({"item": range(50_000), "kind": [item % 10_000 for item in range(50_000)]}))
        yield opened


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT item FROM items i WHERE kind = 3 AND EXISTS (SELECT 1 FROM lines l WHERE l.item = i.item)", 5),
        (
            "SELECT item FROM items WHERE kind = 3 AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.item = items.item)",
            0,
        ),
        (
            "SELECT * FROM items JOIN (SELECT item, SUM(n) FROM lines GROUP BY item) g USING (item) WHERE kind = 3",
            5,
        ),
        ("SELECT item FROM items i WHERE kind = 3 AND (SELECT AVG(n) FROM lines l WHERE l.item = i.item) >= 0", 5),
    ],
    ids=["exists", "not exists", "groups", "scalar sub-query"],
)
def test_few_rows_need_little_memory_of_a_large_map(grid: Any, sql: str, rows: int) -> None:
    grid.sql("SET memory_limit = off")
    whole = grid.sql(sql).fetchall()
    assert len(whole) == rows
    grid.sql("SET memory_limit = '400kB'")
    try:
        assert sorted(grid.sql(sql).fetchall()) == sorted(whole)
        assert "spilled" not in _analyzed(grid, sql)
        without = "SELECT COUNT(*) FROM items i JOIN lines l ON l.n = i.kind JOIN lines m ON m.id = l.id"
        assert "spilled" in _analyzed(grid, without)
    finally:
        grid.sql("SET memory_limit = off")


def _analyzed(grid: Any, sql: str) -> str:
    return "\n".join(str(row[0]) for row in grid.sql(f"EXPLAIN ANALYZE {sql}"))
