"""An error is one only for rows that reach it: the later sides of AND, OR, COALESCE and the branches of CASE."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.expr import Call, Case, Cast, Column, Expression, Literal, Parameters, call, can_fail
from remuda.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, SqlType, decimal
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, identity_of, record_batch

A, B = Column(0, "a", INTEGER), Column(1, "b", INTEGER)
LAYOUT = {0: 0, 1: 1}
ZERO, ONE = Literal(0, INTEGER), Literal(1, INTEGER)


def made(name: str, *arguments: Expression) -> Call:
    found = call(name, *arguments)
    assert found is not None
    return found


QUOTIENT = made("/", A, B)
LARGE = made(">", QUOTIENT, ONE)
GUARDED_AND = Call("and", (made("<>", B, ZERO), LARGE), BOOLEAN)
GUARDED_OR = Call("or", (made("=", B, ZERO), LARGE), BOOLEAN)
GUARDED_CASE = Case(((made("<>", B, ZERO), QUOTIENT),), Literal(-1, INTEGER), INTEGER)
FIRST_KNOWN = made("coalesce", A, made("/", ONE, B))

FEW = [(4, 2), (1, 0), (1, 0), (1, 0), (None, 0), (4, None)]
"""Most rows are excluded by the guard, and would divide by zero."""
MANY = [(4, 2), (4, 4), (9, 3), (8, 1), (1, 0), (None, 7), (3, None)]


def both_ways(expression: Expression, rows: list[tuple[Any, ...]]) -> list[Any]:
    by_row = [evaluate_row(expression, LAYOUT, row, ()) for row in rows]
    batch = record_batch([INTEGER, INTEGER], rows, dictionaries=False)
    assert evaluate_batch(expression, LAYOUT, batch, Parameters()) == by_row
    return [None if value == identity_of(None) else value[1] for value in by_row]


@pytest.mark.parametrize(
    ("expression", "rows", "expected"),
    [
        (GUARDED_AND, FEW, [True, False, False, False, False, None]),
        (GUARDED_AND, MANY, [True, False, True, True, False, None, None]),
        (GUARDED_OR, FEW, [True, True, True, True, True, None]),
        (GUARDED_OR, MANY, [True, False, True, True, True, None, None]),
        (GUARDED_CASE, FEW, [2, -1, -1, -1, -1, -1]),
        (GUARDED_CASE, MANY, [2, 1, 3, 8, -1, None, -1]),
        (FIRST_KNOWN, [(1, 0), (2, 0), (None, 1)], [1, 2, 1]),
        (FIRST_KNOWN, [(1, 0), (None, 1), (None, 2), (None, None)], [1, 1, 0, None]),
    ],
)
def test_rows_that_are_excluded_are_not_asked(
    expression: Expression, rows: list[tuple[Any, ...]], expected: list[Any]
) -> None:
    assert both_ways(expression, rows) == expected


@pytest.mark.parametrize("expression", [GUARDED_AND, GUARDED_OR, GUARDED_CASE, FIRST_KNOWN])
def test_one_row_that_gets_there_is_an_error(expression: Expression) -> None:
    unguarded = _without_guard(expression)
    rows = [(None, 0), (1, 0)]
    batch = record_batch([INTEGER, INTEGER], rows, dictionaries=False)
    assert isinstance(evaluate_batch(unguarded, LAYOUT, batch, Parameters()), Failure)
    assert isinstance(evaluate_row(unguarded, LAYOUT, rows[1], ()), Failure) or expression is FIRST_KNOWN


def _without_guard(expression: Expression) -> Expression:
    """The same with a guard that lets division by zero through."""
    match expression:
        case Case():
            return Case(((made("=", B, ZERO), QUOTIENT),), Literal(-1, INTEGER), INTEGER)
        case Call(function="and"):
            return Call("and", (made("=", B, ZERO), LARGE), BOOLEAN)
        case Call(function="or"):
            return Call("or", (made("<>", B, ZERO), LARGE), BOOLEAN)
    return expression


_SMALL = st.sampled_from([None, 0, 1, -1, 2, 7])
_GUARDS = [made(name, column, ZERO) for name in ("=", "<>", ">", "<=") for column in (A, B)]
_RISKY = [LARGE, made("=", made("%", A, B), ZERO), made("<", made("+", A, Literal(2**31 - 4, INTEGER)), ONE)]
_CONDITIONS = st.sampled_from([*_GUARDS, *_RISKY, *(Call("not", (risky,), BOOLEAN) for risky in _RISKY)])


def _nested(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    lists = st.lists(parts, min_size=2, max_size=4).map(tuple)
    connected = st.builds(lambda name, some: Call(name, some, BOOLEAN), st.sampled_from(["and", "or"]), lists)
    chosen = st.builds(lambda when, then, rest: Case(((when, then),), rest, BOOLEAN), parts, parts, parts)
    return connected | chosen | lists.map(lambda some: made("coalesce", *some))


@given(st.recursive(_CONDITIONS, _nested, max_leaves=8), st.lists(st.tuples(_SMALL, _SMALL), min_size=1, max_size=12))
def test_a_batch_fails_exactly_where_one_of_its_rows_does(expression: Expression, rows: list[tuple[Any, ...]]) -> None:
    by_row = [evaluate_row(expression, LAYOUT, row, ()) for row in rows]
    failures = [outcome for outcome in by_row if isinstance(outcome, Failure)]
    batch = record_batch([INTEGER, INTEGER], rows, dictionaries=False)
    together = evaluate_batch(expression, LAYOUT, batch, Parameters())
    assert together in failures if failures else together == by_row


def test_an_unknown_left_side_does_not_exclude() -> None:
    """NULL AND 1/0 > 1 is an error, as in PostgreSQL: NULL decides nothing."""
    expression = Call("and", (Literal(None, BOOLEAN), made(">", made("/", ONE, B), ONE)), BOOLEAN)
    assert isinstance(evaluate_row(expression, LAYOUT, (1, 0), ()), Failure)
    batch = record_batch([INTEGER, INTEGER], [(1, 0)], dictionaries=False)
    assert isinstance(evaluate_batch(expression, LAYOUT, batch, Parameters()), Failure)


def test_the_middle_of_three_guards_the_last() -> None:
    expression = Call("and", (made(">", A, ZERO), made("<>", B, ZERO), LARGE), BOOLEAN)
    assert both_ways(expression, [*FEW, (-1, 0), (-6, 2)]) == [True, False, False, False, False, None, False, False]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (INTEGER, BIGINT, False),
        (BIGINT, INTEGER, True),
        (INTEGER, decimal(10, 0), False),
        (INTEGER, decimal(9, 0), True),
        (decimal(10, 0), INTEGER, True),
        (decimal(10, 2), decimal(12, 3), False),
        (decimal(10, 2), DOUBLE, False),
        (DOUBLE, BIGINT, True),
        (VARCHAR, INTEGER, True),
        (INTEGER, VARCHAR, False),
        (VARCHAR, BOOLEAN, True),
        (BOOLEAN, INTEGER, False),
    ],
)
def test_which_casts_can_fail(source: SqlType, target: SqlType, expected: bool) -> None:
    assert can_fail(Cast(Column(0, "x", source), target)) is expected
