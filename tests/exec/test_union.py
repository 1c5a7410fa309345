"""Union over inputs cut in every way."""

from __future__ import annotations

import pytest

from remuda.exec import build_operator
from remuda.exec.relational.union import UnionExec
from remuda.expr import Column
from remuda.plan.physical import Union
from remuda.plan.traits import Traits
from remuda.types import BIGINT, VARCHAR
from tests.exec.scripted import (
    DONE,
    FETCHED,
    FORMS,
    SHAPES,
    WAIT,
    Rows,
    ScriptedExec,
    context,
    drain,
    script,
    source_node,
)

FIRST = (Column(1, "a", BIGINT), Column(2, "b", VARCHAR))
SECOND = (Column(3, "x", VARCHAR), Column(4, "y", BIGINT), Column(5, "z", BIGINT))
COLUMNS = (Column(6, "a", BIGINT), Column(7, "b", VARCHAR))
NODE = Union((source_node(FIRST), source_node(SECOND)), COLUMNS, (FIRST, (SECOND[1], SECOND[0])), Traits())
FIRST_ROWS: Rows = [(1, "a"), (2, None), (1, "a")]
SECOND_ROWS: Rows = [("a", 1, 7), (None, None, 8), ("q", 4, 9), ("r", 5, 9)]


@pytest.mark.parametrize(("shape", "form"), [(shape, form) for shape in SHAPES for form in FORMS], ids=str)
def test_all_rows_of_all_inputs_under_common_columns(shape: str, form: str) -> None:
    first = ScriptedExec(FIRST, script(FIRST, FIRST_ROWS, SHAPES[shape], form))
    second = ScriptedExec(SECOND, script(SECOND, SECOND_ROWS, SHAPES[shape], form))
    rows = drain(UnionExec(NODE, [first, second]))
    assert sorted(rows, key=repr) == sorted([*FIRST_ROWS, *((y, x) for x, y, _ in SECOND_ROWS)], key=repr)


def test_an_input_that_waits_does_not_hold_the_others_up() -> None:
    first = ScriptedExec(FIRST, [WAIT, WAIT, WAIT])
    second = ScriptedExec(SECOND, script(SECOND, SECOND_ROWS))
    union = UnionExec(NODE, [first, second])
    union.setup(context())
    assert [union.advance() for _ in range(4)] == [FETCHED, WAIT, WAIT, DONE]


def test_union_of_no_rows_and_of_columns_alone() -> None:
    assert drain(build_operator(NODE)) == []
    one = Union((source_node(FIRST),), COLUMNS[:1], (FIRST[:1],), Traits())
    assert drain(UnionExec(one, [ScriptedExec(FIRST, script(FIRST, FIRST_ROWS))])) == [(1,), (2,), (1,)]
