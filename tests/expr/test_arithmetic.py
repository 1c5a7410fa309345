"""Known results of arithmetic, comparison and casts at their edges, by row and by batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from remuda.errors import Span, SqlError
from remuda.expr import Call, Case, Cast, Column, Expression, Literal, Parameters, call, compile_batch, compile_row
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    VARCHAR,
    SqlType,
    decimal,
    to_stored,
)
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, identity_of, record_batch

NAN, INFINITY = math.nan, math.inf
LEAST, GREATEST = -(2**63), 2**63 - 1


def outcomes(types: list[SqlType], make: Any, values: tuple[Any, ...]) -> list[Any]:
    """The outcome by row; by batch; and by batch with constants instead of columns."""
    columns = [Column(number, f"c{number}", type_) for number, type_ in enumerate(types)]
    layout = {column.id: column.id for column in columns}
    batch = record_batch(types, [values], dictionaries=False)
    constants = make(*(Literal(value, type_) for value, type_ in zip(values, types, strict=True)))
    found = [evaluate_row(make(*columns), layout, values, ())]
    for expression in (make(*columns), constants):
        together = evaluate_batch(expression, layout, batch, Parameters())
        found.append(together if isinstance(together, Failure) else together[0])
    return found


def apply(name: str) -> Callable[..., Expression]:
    def make(*arguments: Expression) -> Expression:
        made = call(name, *arguments)
        assert made is not None
        return made

    return make


ARITHMETIC = [
    (INTEGER, 7, "/", 2, 3),
    (INTEGER, -7, "/", 2, -3),
    (INTEGER, 7, "/", -2, -3),
    (INTEGER, -7, "/", -2, 3),
    (INTEGER, 7, "%", 3, 1),
    (INTEGER, -7, "%", 3, -1),
    (INTEGER, 7, "%", -3, 1),
    (INTEGER, -7, "%", -3, -1),
    (BIGINT, LEAST, "%", -1, 0),
    (BIGINT, GREATEST, "-", 1, GREATEST - 1),
    (BIGINT, 2**53 + 1, "*", 1, 2**53 + 1),
    (DOUBLE, 7.5, "%", 2.0, 1.5),
    (DOUBLE, -7.5, "%", 2.0, -1.5),
    (DOUBLE, -0.0, "%", 2.0, -0.0),
    (DOUBLE, INFINITY, "%", 2.0, NAN),
    (DOUBLE, 7.5, "%", INFINITY, 7.5),
    (DOUBLE, 1e308, "*", 10.0, INFINITY),
    (DOUBLE, INFINITY, "-", INFINITY, NAN),
    (REAL, 1.0, "/", 3.0, to_stored(REAL, 1 / 3)),
    (REAL, 16_777_216.0, "+", 1.0, 16_777_216.0),
    (INTEGER, None, "%", 0, None),
    (INTEGER, None, "/", 0, None),
    (INTEGER, 1, "%", None, None),
    (DOUBLE, None, "%", 0.0, None),
]


@pytest.mark.parametrize(("type_", "left", "operator", "right", "expected"), ARITHMETIC)
def test_what_operators_give(type_: SqlType, left: Any, operator: str, right: Any, expected: Any) -> None:
    assert outcomes([type_, type_], apply(operator), (left, right)) == [identity_of(expected)] * 3


FAILURES = [
    (TINYINT, 127, "+", 1, "the result overflows TINYINT"),
    (SMALLINT, -(2**15), "-", 1, "the result overflows SMALLINT"),
    (INTEGER, 2**16, "*", 2**16, "the result overflows INTEGER"),
    (INTEGER, -(2**31), "/", -1, "the result overflows INTEGER"),
    (BIGINT, LEAST, "/", -1, "the result overflows BIGINT"),
    (BIGINT, GREATEST, "+", 1, "the result overflows BIGINT"),
    (INTEGER, 1, "/", 0, "division by zero"),
    (INTEGER, 1, "%", 0, "division by zero"),
    (DOUBLE, 1.0, "/", 0.0, "division by zero"),
    (DOUBLE, 1.0, "%", -0.0, "division by zero"),
    (DOUBLE, NAN, "/", 0.0, "division by zero"),
]


@pytest.mark.parametrize(("type_", "left", "operator", "right", "message"), FAILURES)
def test_operators_that_fail_say_why(type_: SqlType, left: Any, operator: str, right: Any, message: str) -> None:
    assert outcomes([type_, type_], apply(operator), (left, right)) == [Failure(message)] * 3


@pytest.mark.parametrize("name", ["negate", "abs"])
@pytest.mark.parametrize("type_", [TINYINT, SMALLINT, INTEGER, BIGINT])
def test_the_least_integer_has_no_opposite(name: str, type_: SqlType) -> None:
    least = {TINYINT: -(2**7), SMALLINT: -(2**15), INTEGER: -(2**31), BIGINT: LEAST}[type_]
    assert outcomes([type_], apply(name), (least,)) == [Failure(f"the result overflows {type_}")] * 3


def test_signs_of_wide_decimals_keep_every_digit() -> None:
    wide = Decimal("-" + "9" * 38)
    for name in ("negate", "abs"):
        assert outcomes([decimal(38, 0)], apply(name), (wide,)) == [identity_of(wide.copy_negate())] * 3


def test_an_error_has_the_place_of_the_call() -> None:
    a = Column(0, "a", INTEGER)
    for expression in (
        Call("/", (a, Literal(0, INTEGER)), INTEGER, Span(7, 12)),
        Cast(Column(0, "a", VARCHAR), INTEGER, Span(7, 12)),
    ):
        type_ = expression.arguments[0].type if isinstance(expression, Call) else VARCHAR
        value = 1 if type_ == INTEGER else "x"
        batch = pa.record_batch([pa.array([value], type_.arrow)], names=["a"])
        with pytest.raises(SqlError) as by_row:
            compile_row(expression, {0: 0})((value,), ())
        with pytest.raises(SqlError) as by_batch:
            compile_batch(expression, {0: 0})(batch, Parameters())
        assert by_row.value.span == by_batch.value.span == Span(7, 12)


ORDERED = [-INFINITY, -1.5, 0.0, 1.5, INFINITY, NAN]


@pytest.mark.parametrize("type_", [REAL, DOUBLE])
@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_nan_is_equal_to_itself_and_above_every_number(type_: SqlType, operator: str) -> None:
    by_position = {
        "=": int.__eq__,
        "<>": int.__ne__,
        "<": int.__lt__,
        "<=": int.__le__,
        ">": int.__gt__,
        ">=": int.__ge__,
    }
    for left, low in enumerate(ORDERED):
        for right, high in enumerate(ORDERED):
            expected = identity_of(by_position[operator](left, right))
            assert outcomes([type_, type_], apply(operator), (low, high)) == [expected] * 3


@pytest.mark.parametrize("name", ["=", "<=", ">=", "in"])
def test_the_zeros_are_equal(name: str) -> None:
    assert outcomes([DOUBLE, DOUBLE], apply(name), (-0.0, 0.0)) == [identity_of(True)] * 3


def test_in_with_zero_and_null() -> None:
    def make(value: Expression) -> Expression:
        return apply("in")(value, Literal(0.0, DOUBLE), Literal(None, DOUBLE))

    assert outcomes([DOUBLE], make, (1.0,)) == [identity_of(None)] * 3
    assert outcomes([DOUBLE], make, (-0.0,)) == [identity_of(True)] * 3


CASTS = [
    (DOUBLE, 2.5, INTEGER, 2),
    (DOUBLE, 3.5, INTEGER, 4),
    (DOUBLE, -2.5, INTEGER, -2),
    (BIGINT, 2**53 + 1, DOUBLE, float(2**53)),
    (INTEGER, 5, decimal(10, 2), Decimal("5.00")),
    (BIGINT, 99_999_999, decimal(10, 2), Decimal("99999999.00")),
    (decimal(10, 2), Decimal("99999999.99"), BIGINT, 100_000_000),
    (decimal(10, 2), Decimal("2.50"), INTEGER, 3),
    (decimal(10, 2), Decimal("-2.50"), INTEGER, -3),
    (decimal(10, 2), Decimal("1.25"), decimal(10, 1), Decimal("1.3")),
    (decimal(38, 0), Decimal("9" * 38), decimal(38, 0), Decimal("9" * 38)),
    (VARCHAR, " 12 ", INTEGER, 12),
    (VARCHAR, "1.5", DOUBLE, 1.5),
    (VARCHAR, "true", BOOLEAN, True),
    (VARCHAR, "2024-02-29", DATE, 19_782),
    (BOOLEAN, True, VARCHAR, "true"),
    (INTEGER, -7, VARCHAR, "-7"),
    (DATE, 19_782, VARCHAR, "2024-02-29"),
    (DATE, -1, TIMESTAMP, -86_400_000_000),
    (TIMESTAMP, -1, DATE, -1),
    (TIMESTAMP, 86_400_000_001, DATE, 1),
    (INTEGER, None, VARCHAR, None),
]


@pytest.mark.parametrize(("source", "value", "target", "expected"), CASTS)
def test_what_casts_give(source: SqlType, value: Any, target: SqlType, expected: Any) -> None:
    assert outcomes([source], lambda operand: Cast(operand, target), (value,)) == [identity_of(expected)] * 3


BAD_CASTS = [
    (BIGINT, 2**31, INTEGER),
    (DOUBLE, 1e30, BIGINT),
    (DOUBLE, NAN, INTEGER),
    (decimal(10, 2), Decimal("128.00"), TINYINT),
    (INTEGER, 10**9, decimal(10, 2)),
]


@pytest.mark.parametrize(("source", "value", "target"), BAD_CASTS)
def test_casts_that_fail_say_so(source: SqlType, value: Any, target: SqlType) -> None:
    by_row, by_batch, constant = outcomes([source], lambda operand: Cast(operand, target), (value,))
    assert by_row == by_batch == constant
    assert isinstance(by_row, Failure)
    assert by_row.message.startswith(f"CAST from {source} to {target}: ")


BAD_TEXTS = [
    ("twelve", INTEGER),
    ("1.5", INTEGER),
    ("0x1F", INTEGER),
    ("+ 1", INTEGER),
    ("300", TINYINT),
    ("", DOUBLE),
    ("1_000", DOUBLE),
    ("2023-02-29", DATE),
    ("2023-02-29", TIMESTAMP),
    ("1,5", decimal(10, 2)),
    ("NaN", decimal(10, 2)),
    ("maybe", BOOLEAN),
    ("24:00", TIME),
    ("10:00+02", TIME),
    ("noon", TIMESTAMP_TZ),
]


@pytest.mark.parametrize(("text", "target"), BAD_TEXTS)
def test_text_that_is_no_value(text: str, target: SqlType) -> None:
    message = f"{text!r} is not a value of type {target}"
    assert outcomes([VARCHAR], lambda operand: Cast(operand, target), (text,)) == [Failure(message)] * 3


def test_case_evaluates_only_the_branch_it_takes() -> None:
    divided = Call("/", (Literal(6, INTEGER), Column(0, "a", INTEGER)), INTEGER)
    is_zero = Call("=", (Column(0, "a", INTEGER), Literal(0, INTEGER)), BOOLEAN)
    guarded = Case(((is_zero, Literal(None, INTEGER)),), divided, INTEGER)
    batch = record_batch([INTEGER], [(0,), (2,), (None,), (3,)], dictionaries=False)
    expected = [identity_of(value) for value in (None, 3, None, 2)]
    assert evaluate_batch(guarded, {0: 0}, batch, Parameters()) == expected


def test_a_dictionary_value_that_no_row_has_cannot_fail() -> None:
    text = Column(0, "text", VARCHAR)
    is_number = Call("<>", (text, Literal("none", VARCHAR)), BOOLEAN)
    guarded = Case(((is_number, Cast(text, INTEGER)),), Literal(0, INTEGER), INTEGER)
    batch = record_batch([VARCHAR], [("1",), ("none",), ("2",)], dictionaries=True)
    assert evaluate_batch(guarded, {0: 0}, batch, Parameters()) == [identity_of(value) for value in (1, 0, 2)]
    assert evaluate_batch(Cast(text, INTEGER), {0: 0}, batch.slice(0, 1), Parameters()) == [identity_of(1)]
