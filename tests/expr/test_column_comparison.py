"""Comparisons of a column with a constant in all of their forms, against the evaluation of one row."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.exec.scan.concrete_bounds import index_lookups, interval_range
from remuda.expr import Call, Column, Expression, Literal, Parameter, Parameters, compile_row
from remuda.expr.column_comparison import MIRRORED, ColumnComparison, StoredComparison, recognise
from remuda.expr.evaluate.mask import compile_mask
from remuda.plan.bounds import bound_of, interval_of
from remuda.storage import UNBOUNDED, Range
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
    VARBINARY,
    VARCHAR,
    SqlType,
    decimal,
)
from remuda.types.arrow_arrays import stored_array
from remuda.types.normalized_key import comparable

NAN = float("nan")
BITS = {TINYINT: 7, SMALLINT: 15, INTEGER: 31, BIGINT: 63, DATE: 31, TIMESTAMP: 63, TIMESTAMP_TZ: 63}
FLOATS = [0.0, -0.0, NAN, math.inf, -math.inf, 1.5, -1.5, 2.0**-126]
CENTS = [Decimal(text) for text in ("0.00", "-0.01", "0.01", "999.99", "-999.99", "1.00")]
VALUES: dict[SqlType, list[Any]] = {
    **{type_: [0, 1, -1, 7, 2**bits - 1, -(2**bits)] for type_, bits in BITS.items()},
    BOOLEAN: [True, False],
    TIME: [0, 1, 86_399_999_999],
    REAL: FLOATS,
    DOUBLE: [*FLOATS, 5e-324, 1.7e308, -1.7e308],
    decimal(5, 2): CENTS,
    decimal(18, 0): [Decimal(0), Decimal(10**18 - 1), Decimal(1 - 10**18)],
    decimal(38, 10): [Decimal(0), Decimal("1e-10"), Decimal(2**64), Decimal(-(2**64)), Decimal(1)],
    VARCHAR: ["", "a", "a\0", "a\0b", "\0", "ä", "\U0001f600", "\uffff"],
    VARBINARY: [b"", b"\0", b"\xff", b"\xff\0"],
}
PAIRS: list[tuple[SqlType, SqlType, list[Any]]] = [
    *((sql_type, sql_type, values) for sql_type, values in VALUES.items()),
    # DECIMALs with other digits than the column's: between its values, and beyond them.
    (decimal(5, 2), decimal(6, 4), [Decimal(text) for text in ("0.0001", "-0.0001", "0.0100", "0.0099", "-0.0101")]),
    (decimal(5, 2), decimal(38, 0), [Decimal(10**37), Decimal(-(10**37)), Decimal(1), Decimal(0)]),
    (decimal(18, 0), decimal(38, 20), [Decimal(10**17) + Decimal("1e-20"), Decimal(10**17) * -1, Decimal("0.5")]),
]
ROWS = 3


def ids(pair: Any) -> str:
    return str(pair) if isinstance(pair, SqlType) else ""


@pytest.mark.parametrize("sign", MIRRORED)
@pytest.mark.parametrize(("column_type", "value_type", "constants"), PAIRS, ids=ids)
def test_every_form_agrees_with_the_row_interpreter(
    sign: str, column_type: SqlType, value_type: SqlType, constants: list[Any]
) -> None:
    column = Column(1, "c", column_type)
    values = [None, *VALUES[column_type]]
    for constant in [None, *constants]:
        for value in (Literal(constant, value_type), Parameter(0, value_type)):
            given = Parameters((constant,), (value_type,))
            for expression in (
                Call(sign, (column, value), BOOLEAN),
                Call(MIRRORED[sign], (value, column), BOOLEAN),
            ):
                evaluate = compile_row(expression, {1: 0})
                expected = [evaluate((each,), given.values) is True for each in values]
                comparison = recognise(expression)
                assert comparison == ColumnComparison(column, sign, value)
                check_mask(expression, values, expected, given)
                check_bounds(comparison, values, expected, given)
                check_decision(comparison, values, expected, given)


def check_mask(expression: Expression, values: list[Any], expected: list[bool], given: Parameters) -> None:
    """Over slices too, and without NULLs, where there is no validity to look at."""
    (column,) = (each for each in expression.arguments if isinstance(each, Column))  # type: ignore[union-attr]
    for stored, passing in ((values * ROWS, expected * ROWS), (values[1:], expected[1:])):
        array = stored_array(stored, column.type)
        arrays = [array, array.slice(1)]
        if column.type == VARCHAR:
            arrays += [array.dictionary_encode(), array.dictionary_encode().slice(1)]
        for each in arrays:
            batch = pa.RecordBatch.from_arrays([each], names=["c"])
            mask = compile_mask(expression, {1: 0})(batch, given)
            assert mask.dtype == np.bool_
            assert mask.tolist() == passing[len(stored) - len(each) :], (expression, given.values)


def lies_within(value: Any, within: Range) -> bool:
    if value is None or within.low is None or within.high is None:
        return False
    key = comparable(value)
    if within.low is not UNBOUNDED:
        low = comparable(within.low)
        if key < low or (key == low and not within.low_inclusive):
            return False
    if within.high is not UNBOUNDED:
        high = comparable(within.high)
        if key > high or (key == high and not within.high_inclusive):
            return False
    return True


def check_bounds(comparison: ColumnComparison, values: list[Any], expected: list[bool], given: Parameters) -> None:
    bound, interval = bound_of(comparison), interval_of(comparison)
    if comparison.operator == "<>":
        assert bound is None
        assert interval is None
        return
    assert bound is not None
    assert interval is not None
    within = interval_range(interval, given.values)
    assert [within is not None and lies_within(each, within) for each in values] == expected
    lookups = index_lookups((bound,), given.values)
    for value, passes in zip(values, expected, strict=True):
        found = any(
            lies_within(value, lookup.range)
            if lookup.range is not None
            else value is not None and comparable(lookup.prefix[0]) == comparable(value)
            for lookup in lookups
        )
        assert found == passes


def check_decision(comparison: ColumnComparison, values: list[Any], expected: list[bool], given: Parameters) -> None:
    """What is decided for all numbers between two is so for each of them."""
    if not comparison.is_of_numbers or comparison.column.type.is_floating:
        return
    stored = comparison.compile()(given.values)
    scale = comparison.column.type.scale if comparison.column.type in {decimal(5, 2), decimal(18, 0)} else 0
    numbers = [int(value.scaleb(scale)) if isinstance(value, Decimal) else value for value in values[1:]]
    for least in numbers:
        for greatest in numbers:
            decided = stored.decide(least, greatest)
            if decided is not None:
                inside = [e for n, e in zip(numbers, expected[1:], strict=True) if least <= n <= greatest]
                assert all(each == decided for each in inside)
    shifted = stored if stored.operand is None else stored.shifted(-5)
    assert shifted.mask(np.array([n + 5 for n in numbers if n + 5 < 2**63])).tolist() == [
        passes for n, passes in zip(numbers, expected[1:], strict=True) if n + 5 < 2**63
    ]


def test_only_a_column_and_a_constant_are_recognised() -> None:
    column, other, one = Column(1, "c", BIGINT), Column(2, "d", BIGINT), Literal(1, BIGINT)
    assert recognise(Call("<", (column, other), BOOLEAN)) is None
    assert recognise(Call("+", (column, one), BIGINT)) is None
    assert recognise(Call("<", (Call("+", (column, one), BIGINT), one), BOOLEAN)) is None
    assert recognise(column) is None
    total = Call("+", (one, Parameter(0, BIGINT)), BIGINT)
    assert recognise(Call("<", (total, column), BOOLEAN)) == ColumnComparison(column, ">", total)


def test_a_function_of_parameters_is_a_constant() -> None:
    column, total = Column(1, "c", DOUBLE), Call("negate", (Parameter(0, DOUBLE),), DOUBLE)
    comparison = ColumnComparison(column, ">=", total)
    assert comparison.compile()((2.5,)) == StoredComparison(">=", -2.5)


def test_values_of_another_kind_are_left_to_arrow() -> None:
    assert not ColumnComparison(Column(1, "c", REAL), "=", Literal(0.1, DOUBLE)).is_of_numbers
    assert not ColumnComparison(Column(1, "c", VARCHAR), "=", Literal("a", VARCHAR)).is_of_numbers
    assert not ColumnComparison(Column(1, "c", BOOLEAN), "=", Literal(True, BOOLEAN)).is_of_numbers
    assert not ColumnComparison(Column(1, "c", decimal(19, 0)), "=", Literal(Decimal(1), decimal(19, 0))).is_of_numbers
