"""Expand over input cut and encoded in every way."""

from __future__ import annotations

import pytest

from remuda.exec import ExpressionCache, build_operator
from remuda.exec.relational.expand import ExpandExec
from remuda.expr import Column, Literal
from remuda.plan.physical import Expand
from remuda.plan.traits import Traits
from remuda.types import BIGINT, VARCHAR
from tests.exec.scripted import FORMS, SHAPES, Rows, ScriptedExec, drain, script, source_node

A, B = Column(1, "a", BIGINT), Column(2, "b", VARCHAR)
COLUMNS = (Column(3, "a", BIGINT), Column(4, "b", VARCHAR), Column(5, "set", BIGINT))
NODE = Expand(
    source_node((A, B)),
    COLUMNS,
    ((A, Literal(None, VARCHAR), Literal(0, BIGINT)), (Literal(None, BIGINT), B, Literal(1, BIGINT))),
    Traits(),
)
ROWS: Rows = [(1, "x"), (2, None), (None, "y"), (1, "x"), (5, "z")]


@pytest.mark.parametrize(("shape", "form"), [(shape, form) for shape in SHAPES for form in FORMS], ids=str)
def test_each_row_once_for_each_projection(shape: str, form: str) -> None:
    operator = ExpandExec(NODE, ScriptedExec((A, B), script((A, B), ROWS, SHAPES[shape], form)), ExpressionCache())
    expected = [row for a, b in ROWS for row in ((a, None, 0), (None, b, 1))]
    assert sorted(drain(operator), key=repr) == sorted(expected, key=repr)


def test_nothing_stays_nothing() -> None:
    assert drain(build_operator(NODE)) == []
