"""Joins of every kind by both operators, over input cut and encoded in every way, against pairs made row by row."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExpressionCache, build_operator
from remuda.exec.join import join_table
from remuda.exec.join.hash_join import HashJoinExec, build_join
from remuda.exec.join.nested_loop_join import NestedLoopJoinExec
from remuda.expr import Call, Column, Expression, compile_row
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.physical import HashJoin, NestedLoopJoin
from remuda.plan.traits import Traits
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    REAL,
    TIMESTAMP,
    VARBINARY,
    VARCHAR,
    SqlType,
    decimal,
)
from tests.exec.scripted import FORMS, SELECTED, SHAPES, Rows, ScriptedExec, context, drain, script, source_node

LEFT_NUMBER = Column(1, "number", BIGINT)
LEFT_NAME = Column(2, "name", VARCHAR)
RIGHT_NUMBER = Column(3, "number", BIGINT)
RIGHT_NAME = Column(4, "name", VARCHAR)
LEFT = (LEFT_NUMBER, LEFT_NAME)
RIGHT = (RIGHT_NUMBER, RIGHT_NAME)
MARK = Column(9, "mark", BOOLEAN)

LEFT_ROWS: Rows = [(1, "a"), (2, "b"), (None, "n"), (2, None), (3, "c"), (7, "x"), (1, "b"), (8, "a")]
RIGHT_ROWS: Rows = [(2, "b"), (1, "a"), (None, "n"), (2, "a"), (9, "b"), (7, None), (2, None)]

KEY = JoinKey(LEFT_NUMBER, RIGHT_NUMBER)
NAME_KEY = JoinKey(LEFT_NAME, RIGHT_NAME)

each_kind = pytest.mark.parametrize("kind", list(JoinKind), ids=lambda kind: kind.value)
JOIN_FORMS = (*FORMS, SELECTED)

each_input = pytest.mark.parametrize(
    ("shape", "form"), [(shape, form) for shape in SHAPES for form in JOIN_FORMS], ids=str
)


def is_equal(left: Any, right: Any, null_safe: bool) -> bool:
    if left is None or right is None:
        return null_safe and left is None and right is None
    return bool(left == right or (left != left and right != right))


def expected(node: HashJoin | NestedLoopJoin, lefts: Rows, rights: Rows) -> Rows:
    """The join as its definition says, row by row; SINGLE takes the first match."""
    layout = {column.id: place for place, column in enumerate((*node.left.columns, *node.right.columns))}

    def value(expression: Expression | None, pair: tuple[Any, ...]) -> Any:
        return True if expression is None else compile_row(expression, layout)(pair, ())

    def is_match(pair: tuple[Any, ...]) -> bool:
        keys = getattr(node, "keys", ())
        return all(
            is_equal(pair[layout[key.left.id]], pair[layout[key.right.id]], key.null_safe) for key in keys
        ) and bool(value(node.condition, pair))

    rows: Rows = []
    met: set[int] = set()
    no_left, no_right = (None,) * len(node.left.columns), (None,) * len(node.right.columns)
    for left in lefts:
        matches = [number for number, right in enumerate(rights) if is_match((*left, *right))]
        met.update(matches)
        match node.kind:
            case JoinKind.SEMI if matches:
                rows.append(left)
            case JoinKind.ANTI if not matches:
                rows.append(left)
            case JoinKind.SEMI | JoinKind.ANTI:
                pass
            case JoinKind.MARK:
                marks = [value(node.compared, (*left, *rights[number])) for number in matches]
                rows.append((*left, True if True in marks else None if None in marks else False))
            case kind:
                rows.extend(
                    (*left, *rights[number]) for number in (matches[:1] if kind is JoinKind.SINGLE else matches)
                )
                if not matches and kind.keeps_left:
                    rows.append((*left, *no_right))
    if node.kind.keeps_right:
        rows.extend((*no_left, *right) for number, right in enumerate(rights) if number not in met)
    return rows


def ordered(rows: Rows) -> Rows:
    """In some order, and with a NaN that equals itself."""
    return sorted([tuple("NaN" if value != value else value for value in row) for row in rows], key=repr)


def hash_join(
    kind: JoinKind,
    keys: tuple[JoinKey, ...] = (KEY,),
    condition: Expression | None = None,
    compared: Expression | None = None,
    left: tuple[Column, ...] = LEFT,
    right: tuple[Column, ...] = RIGHT,
) -> HashJoin:
    mark = MARK if kind is JoinKind.MARK else None
    return HashJoin(kind, source_node(left), source_node(right), keys, condition, compared, mark, Traits())


def run(
    node: HashJoin | NestedLoopJoin, lefts: Rows, rights: Rows, shape: str = "one batch", form: str = "tuples"
) -> Rows:
    """Tuples are joined row by row, and by Arrow."""
    build: Callable[..., Any] = build_join if isinstance(node, HashJoin) else NestedLoopJoinExec
    results: list[Rows] = []
    for cutover in (None, 0, 256) if form == "tuples" and not node.kind.keeps_right else (None,):
        left = ScriptedExec(node.left.columns, script(node.left.columns, lefts, SHAPES[shape], form))
        right = ScriptedExec(node.right.columns, script(node.right.columns, rights, SHAPES[shape], form))
        results.append(drain(build(replace(node, row_cutover=cutover), left, right, ExpressionCache())))
    assert all(ordered(each) == ordered(results[0]) for each in results)
    return results[-1]


def check(
    node: HashJoin | NestedLoopJoin, lefts: Rows, rights: Rows, shape: str = "one batch", form: str = "tuples"
) -> None:
    assert ordered(run(node, lefts, rights, shape, form)) == ordered(expected(node, lefts, rights))


SMALLER_NAME = Call("<", (LEFT_NAME, RIGHT_NAME), BOOLEAN)
SAME_NAME = Call("=", (LEFT_NAME, RIGHT_NAME), BOOLEAN)
SAME_NUMBER = Call("=", (LEFT_NUMBER, RIGHT_NUMBER), BOOLEAN)


@each_kind
@each_input
def test_kinds_over_every_cut_of_the_input(kind: JoinKind, shape: str, form: str) -> None:
    if kind is JoinKind.SINGLE:
        check(hash_join(kind), LEFT_ROWS, RIGHT_ROWS[1:4], shape, form)
    else:
        check(hash_join(kind), LEFT_ROWS, RIGHT_ROWS, shape, form)


@each_kind
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("lefts", "rights"), [([], RIGHT_ROWS), (LEFT_ROWS, []), ([], [])], ids=["left", "right", "both"]
)
def test_empty_sides(kind: JoinKind, form: str, lefts: Rows, rights: Rows) -> None:
    check(hash_join(kind), lefts, rights, "one batch", form)
    check(nested(hash_join(kind, condition=SMALLER_NAME)), lefts, rights, "one batch", form)


@each_kind
@pytest.mark.parametrize("form", JOIN_FORMS)
def test_condition_beside_the_keys(kind: JoinKind, form: str) -> None:
    """A left row whose only matches fail the condition has no match."""
    rights = RIGHT_ROWS if kind is not JoinKind.SINGLE else RIGHT_ROWS[1:3]
    check(hash_join(kind, condition=SMALLER_NAME), LEFT_ROWS, rights, "two by two", form)


@each_kind
@pytest.mark.parametrize("form", ["tuples", SELECTED])
def test_unique_right_side(kind: JoinKind, form: str) -> None:
    unique: Rows = [(1, "x"), (2, "y"), (5, "z")]
    check(hash_join(kind), LEFT_ROWS, unique, form=form)
    check(hash_join(kind), [(2, "a"), (1, "b")], unique, form=form)
    check(hash_join(kind, condition=SMALLER_NAME), LEFT_ROWS, unique, form=form)


@each_kind
def test_null_safe_keys_and_several_keys(kind: JoinKind) -> None:
    rights = [(2, "b"), (None, "n"), (2, None), (None, None)]
    lefts = [*LEFT_ROWS, (None, None)]
    check(hash_join(kind, (JoinKey(LEFT_NUMBER, RIGHT_NUMBER, null_safe=True),)), lefts, rights[:2])
    check(hash_join(kind, (KEY, NAME_KEY)), lefts, rights)
    safe = JoinKey(LEFT_NAME, RIGHT_NAME, null_safe=True)
    check(hash_join(kind, (KEY, safe)), lefts, rights)


def nested(node: HashJoin) -> NestedLoopJoin:
    return NestedLoopJoin(node.kind, node.left, node.right, node.condition, node.compared, node.mark, Traits())


@each_kind
@each_input
def test_nested_loop_join(kind: JoinKind, shape: str, form: str) -> None:
    rights = RIGHT_ROWS if kind is not JoinKind.SINGLE else [(0, "bb")]
    check(nested(hash_join(kind, condition=SMALLER_NAME)), LEFT_ROWS, rights, shape, form)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.FULL])
def test_join_without_any_condition_pairs_all_rows(kind: JoinKind) -> None:
    check(nested(hash_join(kind)), LEFT_ROWS, RIGHT_ROWS)
    check(hash_join(kind, ()), LEFT_ROWS, RIGHT_ROWS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "rights", [RIGHT_ROWS, [], [(None, None)], [(2, "b"), (1, "a")]], ids=["null", "none", "only null", "plain"]
)
def test_mark_of_in_is_a_lookup_with_three_values(rights: Rows, form: str) -> None:
    """x IN (...): NULL where x is NULL, or where it is not found among values one of which is NULL."""
    for compared in (SAME_NUMBER, Call("=", (RIGHT_NUMBER, LEFT_NUMBER), BOOLEAN)):
        node = hash_join(JoinKind.MARK, (), compared=compared)
        assert isinstance(
            build_join(node, ScriptedExec(LEFT, []), ScriptedExec(RIGHT, []), ExpressionCache()), HashJoinExec
        )
        assert ordered(run(node, LEFT_ROWS, rights, "two by two", form)) == ordered(
            expected(nested(node), LEFT_ROWS, rights)
        )


@pytest.mark.parametrize("compared", [SMALLER_NAME, SAME_NAME, None], ids=["any", "in", "exists"])
def test_mark_compares_the_pairs_that_the_keys_give(compared: Expression | None) -> None:
    check(hash_join(JoinKind.MARK, (KEY,), None, compared), LEFT_ROWS, RIGHT_ROWS)
    check(hash_join(JoinKind.MARK, (KEY,), SMALLER_NAME, compared), LEFT_ROWS, RIGHT_ROWS)
    check(hash_join(JoinKind.MARK, (), SMALLER_NAME, compared), LEFT_ROWS, RIGHT_ROWS)
    check(nested(hash_join(JoinKind.MARK, (), None, compared)), LEFT_ROWS, RIGHT_ROWS)


@pytest.mark.parametrize("form", FORMS)
def test_second_match_of_a_single_join_is_an_error(form: str) -> None:
    with pytest.raises(SqlError, match="more than one row") as caught:
        run(hash_join(JoinKind.SINGLE), LEFT_ROWS, RIGHT_ROWS, form=form)
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    with pytest.raises(SqlError, match="more than one row"):
        run(nested(hash_join(JoinKind.SINGLE)), LEFT_ROWS, RIGHT_ROWS, form=form)
    # A row that has several matches of which the condition leaves one is none.
    assert run(hash_join(JoinKind.SINGLE, condition=SAME_NAME), [(2, "b")], RIGHT_ROWS, form=form) == [(2, "b", 2, "b")]


VALUES: list[tuple[SqlType, list[Any]]] = [
    (INTEGER, [1, -1, 0, 2**31 - 1, -(2**31), None]),
    (BIGINT, [1, -1, 0, 2**63 - 1, -(2**63), None]),
    (BOOLEAN, [True, False, None]),
    (DOUBLE, [0.0, -0.0, float("nan"), -float("nan"), 1.5, float("inf"), -1.5, None]),
    (REAL, [0.0, -0.0, float("nan"), 1.5, -1.5, None]),
    (DATE, [0, 1, -400, 20_000, None]),
    (TIMESTAMP, [0, 1, -1, 10**15, None]),
    (INTERVAL_MONTHS, [0, 12, -1, None]),
    (INTERVAL_TIME, [0, 86_400_000_000, -1, None]),
    (VARCHAR, ["", "a", "b", "aa", "ä", "x" * 40, "x" * 41, "x\0", "x", None]),
    (VARBINARY, [b"", b"a", b"\0", b"\0\0", b"\xff" * 33, None]),
    (decimal(10, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal("99999999.99"), None]),
    (decimal(38, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal(10) ** 35, Decimal(10) ** 35 + 1, None]),
]


@pytest.mark.parametrize(
    ("sql_type", "values"), VALUES, ids=lambda value: str(value) if isinstance(value, SqlType) else ""
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("null_safe", [False, True], ids=["plain", "null-safe"])
def test_keys_of_every_type(sql_type: SqlType, values: list[Any], form: str, null_safe: bool) -> None:
    left, right = Column(1, "a", sql_type), Column(2, "b", sql_type)
    other = Column(3, "c", BIGINT)
    chooser = random.Random(str(sql_type))
    for _ in range(10):
        lefts = [(chooser.choice(values),) for _ in range(7)]
        rights = [(chooser.choice(values), number) for number in range(5)]
        for kind in (JoinKind.INNER, JoinKind.FULL, JoinKind.ANTI):
            node = hash_join(kind, (JoinKey(left, right, null_safe),), left=(left,), right=(right, other))
            check(node, lefts, rights, "two by two", form)


def test_pairs_are_made_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_table, "PAIRS_AT_ONCE", 5)
    monkeypatch.setattr(join_table.cuts, "__defaults__", (5,))
    lefts = [(number % 3, f"{number}") for number in range(20)]
    rights = [(number % 4, f"{number}") for number in range(9)]
    for kind in JoinKind:
        if kind is not JoinKind.SINGLE:
            check(hash_join(kind), lefts, rights, form="arrow")
            check(hash_join(kind, condition=SMALLER_NAME), lefts, rights, form="arrow")
            check(nested(hash_join(kind, condition=SMALLER_NAME)), lefts, rights, form="arrow")


def test_left_rows_keep_their_order() -> None:
    for kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
        for form in FORMS:
            rows = run(hash_join(kind), LEFT_ROWS, RIGHT_ROWS, form=form)
            lefts = [row[:2] for row in rows]
            assert lefts == sorted(lefts, key=LEFT_ROWS.index)


def test_left_side_is_not_read_where_the_right_side_is_empty() -> None:
    left = ScriptedExec(LEFT, script(LEFT, LEFT_ROWS))
    join = build_join(hash_join(JoinKind.INNER), left, ScriptedExec(RIGHT, []), ExpressionCache())
    assert drain(join) == []
    assert left.advanced == 0


def test_build_knows_the_joins() -> None:
    assert isinstance(build_operator(hash_join(JoinKind.INNER)), HashJoinExec)
    assert isinstance(build_operator(nested(hash_join(JoinKind.INNER))), NestedLoopJoinExec)
    assert drain(build_operator(hash_join(JoinKind.INNER)), context()) == []
