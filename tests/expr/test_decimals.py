"""DECIMAL arithmetic: the types of results are Spark's, the values are exact ones rounded once."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from remuda.expr import Cast, Column, Parameters, call
from remuda.expr.functions.decimals import fit_batch
from remuda.types import BIGINT, DOUBLE, INTEGER, REAL, SqlType, decimal, to_stored
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, record_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
OPERATORS = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide, "%": EXACT.remainder}
TYPES = [
    decimal(1, 0),
    decimal(3, 2),
    decimal(10, 2),
    decimal(18, 18),
    decimal(20, 0),
    decimal(28, 10),
    decimal(38, 0),
    decimal(38, 6),
    decimal(38, 20),
    decimal(38, 38),
]


def result_type(operator: str, left: SqlType, right: SqlType) -> SqlType:
    made = call(operator, Column(0, "a", left), Column(1, "b", right))
    assert made is not None
    return made.type


KNOWN = [
    ("+", decimal(10, 2), decimal(10, 2), "DECIMAL(11, 2)"),
    ("+", decimal(38, 10), decimal(38, 2), "DECIMAL(38, 6)"),
    ("*", decimal(10, 2), decimal(10, 2), "DECIMAL(21, 4)"),
    ("*", decimal(38, 10), decimal(38, 10), "DECIMAL(38, 6)"),
    ("/", decimal(10, 2), decimal(10, 2), "DECIMAL(23, 13)"),
    ("/", decimal(38, 0), decimal(38, 0), "DECIMAL(38, 6)"),
    ("%", decimal(10, 2), decimal(5, 4), "DECIMAL(5, 4)"),
    ("*", decimal(10, 2), INTEGER, "DECIMAL(21, 2)"),
    ("-", BIGINT, decimal(10, 2), "DECIMAL(23, 2)"),
]


@pytest.mark.parametrize(("operator", "left", "right", "name"), KNOWN)
def test_types_of_results(operator: str, left: SqlType, right: SqlType, name: str) -> None:
    assert str(result_type(operator, left, right)) == name


def test_types_are_those_of_spark(spark: SparkSession) -> None:
    cases = [(operator, left, right) for operator in OPERATORS for left in TYPES for right in TYPES]
    columns = [
        f"typeof(CAST(NULL AS {left.spark}) {operator} CAST(NULL AS {right.spark}))" for operator, left, right in cases
    ]
    found = list(spark.sql(f"SELECT {', '.join(columns)}").first() or ())
    assert found == [result_type(*case).spark for case in cases]


def random_value(type_: SqlType, source: random.Random) -> Decimal:
    """Short and long ones; all nines and powers of ten and of two turn up often."""
    digits = source.randrange(1, type_.precision + 1)
    unscaled = source.choice(
        [
            10**digits - 1,
            10 ** (digits - 1),
            5 * 10 ** (digits - 1),
            source.randrange(10**digits),
            min(2 ** source.randrange(1, 4 * digits), 10**digits - 1),
        ]
    )
    return Decimal(source.choice([-1, 1]) * unscaled).scaleb(-type_.scale, EXACT)


def expected(operator: str, left: Decimal, right: Decimal, result: SqlType) -> Any:
    if operator in "/%" and not right:
        return Failure("division by zero")
    value = OPERATORS[operator](left, right).quantize(Decimal(1).scaleb(-result.scale), context=EXACT)
    return Failure(f"the result overflows {result}") if len(value.as_tuple().digits) > result.precision else value


@pytest.mark.parametrize("operator", OPERATORS)
def test_values_are_exact(operator: str) -> None:
    source = random.Random(operator)
    for left in TYPES:
        for right in TYPES:
            columns = Column(0, "a", left), Column(1, "b", right)
            expression, layout = call(operator, *columns), {0: 0, 1: 1}
            assert expression is not None
            rows = [(random_value(left, source), random_value(right, source)) for _ in range(40)]
            wanted = [expected(operator, *row, expression.type) for row in rows]
            for row, value in zip(rows, wanted, strict=True):
                found = evaluate_row(expression, layout, row, ())
                assert found == (value if isinstance(value, Failure) else (Decimal, value)), (left, right, row)
            good = [row for row, value in zip(rows, wanted, strict=True) if not isinstance(value, Failure)]
            batch = record_batch((left, right), good, dictionaries=False)
            together = evaluate_batch(expression, layout, batch, Parameters())
            values = [(Decimal, value) for value in wanted if not isinstance(value, Failure)]
            assert together == values, (left, right)
            whole = evaluate_batch(
                expression, layout, record_batch((left, right), rows, dictionaries=False), Parameters()
            )
            assert whole in [[*values], *(value for value in wanted if isinstance(value, Failure))]


def test_rounding_of_wide_numbers() -> None:
    """Arrow's own rounding of these is wrong: 10**73 - 1 at 28 digits after the point to 2 of them."""
    for digits in range(40, 66):
        value = Decimal(10**digits - 1).scaleb(-28, EXACT)
        found = fit_batch(pa.scalar(value, pa.decimal256(76, 28)), decimal(38, 0))
        assert found.as_py() == value.quantize(Decimal(1), context=EXACT)


@pytest.mark.parametrize("target", [decimal(10, 2), decimal(38, 6), decimal(5, 0), decimal(38, 25)])
@pytest.mark.parametrize("type_", [REAL, DOUBLE])
def test_floating_point_numbers_round_as_they_are_written(type_: SqlType, target: SqlType) -> None:
    """Ties above all: 2.675 is 2.68, though its bits are a little less."""
    source = random.Random(1)
    written = [f"{source.randrange(-9999, 9999)}.{source.randrange(1000)}5" for _ in range(500)]
    written += [f"{source.randrange(10**6)}e{source.randrange(-12, 3)}" for _ in range(500)]
    numbers = [None, *(to_stored(type_, float(text)) for text in written)]
    expression, layout = Cast(Column(0, "x", type_), target), {0: 0}
    rows = [(number,) for number in numbers]
    outcomes = [evaluate_row(expression, layout, row, ()) for row in rows]
    good = [row for row, outcome in zip(rows, outcomes, strict=True) if not isinstance(outcome, Failure)]
    together = evaluate_batch(expression, layout, record_batch((type_,), good, dictionaries=False), Parameters())
    assert together == [outcome for outcome in outcomes if not isinstance(outcome, Failure)]
    if type_ == DOUBLE and target == decimal(38, 6):
        for text, outcome in zip(written, outcomes[1:], strict=True):
            assert outcome[1] == Decimal(text).quantize(Decimal("0.000001"), context=EXACT)


LONG = [(decimal(15, 2), decimal(15, 2)), (decimal(18, 0), decimal(18, 6)), (decimal(38, 2), decimal(38, 4))]


@pytest.mark.parametrize(("left", "right"), LONG, ids=str)
def test_divisors_of_more_than_32_bits(left: SqlType, right: SqlType) -> None:
    """By numpy as on paper: Arrow would be wrong, and Python, row by row, is what it is compared with."""
    chance = random.Random(7)

    def number(type_: SqlType) -> Decimal | None:
        digits = chance.choice([1, 9, 10, 15, min(18, type_.precision)])
        return None if chance.random() < 0.05 else Decimal(chance.randrange(1, 10**digits)).scaleb(-type_.scale)

    rows = [(number(left), number(right)) for _ in range(2000)]
    rows += [(a and -a, b) for a, b in rows[:500]] + [(a, b and -b) for a, b in rows[:500]]
    expression = call("/", Column(0, "a", left), Column(1, "b", right))
    assert expression is not None
    expected = [evaluate_row(expression, {0: 0, 1: 1}, row, ()) for row in rows]
    good = [row for row, outcome in zip(rows, expected, strict=True) if not isinstance(outcome, Failure)]
    batch = record_batch([left, right], good, dictionaries=False)
    together = evaluate_batch(expression, {0: 0, 1: 1}, batch, Parameters())
    assert together == [outcome for outcome in expected if not isinstance(outcome, Failure)]


def test_a_zero_among_long_divisors() -> None:
    expression = call("/", Column(0, "a", decimal(18, 2)), Column(1, "b", decimal(18, 2)))
    assert expression is not None
    rows = [(Decimal("1.00"), Decimal("99999999999.99")), (Decimal("1.00"), Decimal("0.00"))]
    batch = record_batch([decimal(18, 2), decimal(18, 2)], rows, dictionaries=False)
    assert evaluate_batch(expression, {0: 0, 1: 1}, batch, Parameters()) == Failure("division by zero")
    unknown = record_batch([decimal(18, 2), decimal(18, 2)], [rows[0], (None, rows[1][1])], dictionaries=False)
    assert not isinstance(evaluate_batch(expression, {0: 0, 1: 1}, unknown, Parameters()), Failure)
