"""Folding in known cases, and expressions as text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from remuda.expr import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Folding,
    Literal,
    Parameter,
    constant,
    fold,
    render,
)
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    VARBINARY,
    VARCHAR,
    decimal,
)

A, B, C = (Column(number, name, INTEGER) for number, name in enumerate("abc"))
P, Q = Column(3, "p", BOOLEAN), Column(4, "q", BOOLEAN)
UNKNOWN = Literal(None, BOOLEAN)


def number(value: int) -> Literal:
    return Literal(value, INTEGER)


def plus(*arguments: Expression) -> Call:
    return Call("+", arguments, INTEGER)


def minus(*arguments: Expression) -> Call:
    return Call("-", arguments, INTEGER)


def times(*arguments: Expression) -> Call:
    return Call("*", arguments, INTEGER)


def both(*arguments: Expression) -> Call:
    return Call("and", arguments, BOOLEAN)


def either(*arguments: Expression) -> Call:
    return Call("or", arguments, BOOLEAN)


def test(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments, BOOLEAN)


test.__test__ = False  # type: ignore[attr-defined]

FOLDED: list[tuple[Expression, Expression]] = [
    (plus(number(1), times(number(2), number(3))), number(7)),
    (plus(A, plus(number(1), number(2))), plus(A, number(3))),
    (Call("/", (number(1), number(0)), INTEGER), Call("/", (number(1), number(0)), INTEGER)),
    (both(P, TRUE), P),
    (both(P, FALSE), FALSE),
    (both(P, UNKNOWN), both(P, UNKNOWN)),
    (both(UNKNOWN, FALSE), FALSE),
    (both(TRUE, TRUE), TRUE),
    (both(P, P), P),
    (either(P, TRUE), TRUE),
    (either(P, FALSE), P),
    (either(UNKNOWN, UNKNOWN), UNKNOWN),
    (both(P, both(Q, P)), both(P, Q)),
    (either(P, both(Q, FALSE)), P),
    (Cast(number(3), DOUBLE), Literal(3.0, DOUBLE)),
    (Case(((TRUE, number(1)),), number(2), INTEGER), number(1)),
    (test("is null", Literal(None, INTEGER)), TRUE),
    (Parameter(0, INTEGER), Parameter(0, INTEGER)),
]


@pytest.mark.parametrize(("expression", "expected"), FOLDED, ids=[render(case[0]) for case in FOLDED])
def test_what_is_known_is_folded(expression: Expression, expected: Expression) -> None:
    assert fold(expression) == expected


def test_what_was_folded_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Expression] = []

    def fold_node(node: Expression) -> Expression:
        looked_at.append(node)
        return node

    monkeypatch.setattr(constant, "_fold_node", fold_node)
    folding = Folding()
    total: Expression = Column(0, "a", BIGINT)
    for _ in range(50):
        total = folding.fold(Call("+", (total, Column(1, "b", BIGINT)), BIGINT))
    assert len(looked_at) == 50


RENDERED: list[tuple[Any, str]] = [
    (A, "a"),
    (Parameter(2, BIGINT), "?2"),
    (Literal(None, INTEGER), "NULL"),
    (TRUE, "TRUE"),
    (Literal("it's", VARCHAR), "'it''s'"),
    (Literal(b"\x00\xff", VARBINARY), "X'00FF'"),
    (Literal(1.5, DOUBLE), "1.5"),
    (Literal(Decimal("1.50"), decimal(3, 2)), "1.50"),
    (Literal(19_782, DATE), "DATE '2024-02-29'"),
    (Literal(3_600_000_000, TIME), "TIME '01:00:00'"),
    (Literal(0, TIMESTAMP), "TIMESTAMP '1970-01-01 00:00:00'"),
    (Literal(0, TIMESTAMP_TZ), "TIMESTAMP WITH TIME ZONE '1970-01-01 00:00:00+00:00'"),
    (minus(A, minus(B, C)), "a - (b - c)"),
    (minus(minus(A, B), C), "a - b - c"),
    (times(plus(A, B), C), "(a + b) * c"),
    (plus(A, times(B, C)), "a + b * c"),
    (Call("negate", (plus(A, B),), INTEGER), "-(a + b)"),
    (both(P, either(Q, test("=", A, number(1)))), "p AND (q OR a = 1)"),
    (either(both(P, Q), test("=", A, number(1))), "p AND q OR a = 1"),
    (test("not", either(P, Q)), "NOT (p OR q)"),
    (test("not", test("=", A, B)), "NOT a = b"),
    (test("in", A, number(1), number(2)), "a IN (1, 2)"),
    (test("is not null", plus(A, B)), "a + b IS NOT NULL"),
    (test("is null", test("=", A, B)), "(a = b) IS NULL"),
    (test("=", test("=", A, B), P), "(a = b) = p"),
    (test("like", Column(5, "s", VARCHAR), Literal("a%", VARCHAR)), "s LIKE 'a%'"),
    (Call("upper", (Column(5, "s", VARCHAR),), VARCHAR), "UPPER(s)"),
    (Cast(A, decimal(10, 2)), "CAST(a AS DECIMAL(10, 2))"),
    (Case(((P, A), (Q, B)), C, INTEGER), "CASE WHEN p THEN a WHEN q THEN b ELSE c END"),
]


@pytest.mark.parametrize(("expression", "text"), RENDERED, ids=[case[1] for case in RENDERED])
def test_expressions_are_printed_as_sql(expression: Expression, text: str) -> None:
    assert render(expression) == text


def test_literals_are_equal_where_no_expression_tells_them_apart() -> None:
    nan, zero, below_zero = (Literal(value, DOUBLE) for value in (float("nan"), 0.0, -0.0))
    assert nan == Literal(float("nan"), DOUBLE)
    assert len({nan, Literal(float("nan"), DOUBLE)}) == 1
    assert len({zero, below_zero, Literal(-0.0, DOUBLE), Literal(0, BIGINT), Literal(None, DOUBLE)}) == 4
