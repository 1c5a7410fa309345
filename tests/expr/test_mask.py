"""Which rows pass a condition: those for which Arrow's evaluation says TRUE, and no others."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from remuda.errors import SqlError
from remuda.expr import Call, Column, Expression, Literal, Parameter, Parameters, call, compile_predicate
from remuda.expr.evaluate.mask import compile_mask, true_rows
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    SqlType,
    decimal,
)
from remuda.types.arrow_arrays import stored_array

COUNT = 500
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.25]
TYPES: dict[SqlType, list[Any]] = {
    TINYINT: [-128, 0, 3, 127],
    SMALLINT: [-300, 3, 4, 300],
    INTEGER: [-(2**31), 3, 4, 2**31 - 1],
    BIGINT: [-(2**63), 0, 1, 2**63 - 1],
    REAL: FLOATS,
    DOUBLE: FLOATS,
    DATE: [-1, 0, 19_723],
    TIMESTAMP: [-1, 0, 1_704_067_200_000_000],
    VARCHAR: ["", "a", "ab", "b", "ä"],
    BOOLEAN: [True, False],
    decimal(10, 2): [Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.05"), Decimal("99999999.99")],
    decimal(18, 0): [Decimal(-(10**18) + 1), Decimal(0), Decimal(7)],
    decimal(38, 2): [Decimal(-1).scaleb(30), Decimal("0.05"), Decimal("0.06")],
}


def column_of(sql_type: SqlType, values: list[Any], *, nulls: bool, offset: int = 3) -> pa.Array:
    chance = random.Random(str(sql_type))
    drawn = [None if nulls and chance.random() < 0.2 else chance.choice(values) for _ in range(COUNT + offset)]
    return stored_array(drawn, sql_type).slice(offset)


def same(expression: Expression, batch: pa.RecordBatch, parameters: Parameters | None = None) -> list[bool]:
    given = parameters or Parameters()
    layout = dict(enumerate(range(batch.num_columns)))
    mask = compile_mask(expression, layout)(batch, given)
    expected = true_rows(compile_predicate(expression, layout)(batch, given))
    assert mask.tolist() == expected.tolist()
    return list(mask.tolist())


@pytest.mark.parametrize("nulls", [False, True], ids=["present", "nulls"])
@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_comparison_with_a_value(sql_type: SqlType, nulls: bool) -> None:
    values = TYPES[sql_type]
    column = column_of(sql_type, values, nulls=nulls)
    x = Column(0, "x", sql_type)
    batch = pa.record_batch([column], names=["x"])
    empty = batch.slice(0, 0)
    for function in COMPARISONS:
        for value in [*values, None]:
            wanted = Call(function, (x, Literal(value, sql_type)), BOOLEAN)
            same(wanted, batch)
            assert same(wanted, empty) == []
            given = Call(function, (x, Parameter(0, sql_type)), BOOLEAN)
            same(given, batch, Parameters((value,), (sql_type,)))


A, B, S, D = Column(0, "a", INTEGER), Column(1, "b", DOUBLE), Column(2, "s", VARCHAR), Column(3, "d", decimal(9, 2))


def several(*, dictionary: bool) -> pa.RecordBatch:
    text = column_of(VARCHAR, TYPES[VARCHAR], nulls=True)
    arrays = [
        column_of(INTEGER, [1, 2, 3, 4], nulls=True),
        column_of(DOUBLE, FLOATS, nulls=True),
        text.dictionary_encode() if dictionary else text,
        column_of(decimal(9, 2), [None], nulls=True),
    ]
    return pa.record_batch(arrays, names=["a", "b", "s", "d"])


def known(expression: Expression | None) -> Expression:
    assert expression is not None
    return expression


def text(value: str | None) -> Literal:
    return Literal(value, VARCHAR)


LESS, GREATER = Call("<", (A, Literal(3, INTEGER)), BOOLEAN), Call(">", (B, Literal(0.0, DOUBLE)), BOOLEAN)
IN = Call("in", (S, text("a"), text("ä"), text(None)), BOOLEAN)
CONDITIONS: dict[str, Expression] = {
    "and": Call("and", (LESS, GREATER), BOOLEAN),
    "or": Call("or", (LESS, GREATER, Call("is null", (S,), BOOLEAN)), BOOLEAN),
    "not": Call("not", (Call("and", (LESS, GREATER), BOOLEAN),), BOOLEAN),
    "nested": Call("and", (Call("or", (LESS, GREATER), BOOLEAN), IN), BOOLEAN),
    "in": IN,
    "not in": Call("not", (IN,), BOOLEAN),
    "one string": Call("=", (S, text("ab")), BOOLEAN),
    "no string": Call("=", (S, text("zz")), BOOLEAN),
    "strings from": Call(">=", (S, text("a")), BOOLEAN),
    "every string": Call(">=", (S, text("")), BOOLEAN),
    "like": Call("like", (S, text("a%")), BOOLEAN),
    "not like": Call("not", (Call("like", (S, text("a%")), BOOLEAN),), BOOLEAN),
    "length": Call("=", (known(call("length", S)), Literal(1, BIGINT)), BOOLEAN),
    "null passes": Call("is null", (S,), BOOLEAN),
    "of no column": Literal(True, BOOLEAN),
    "null": Literal(None, BOOLEAN),
    "decimal": Call("is null", (D,), BOOLEAN),
}


@pytest.mark.parametrize("dictionary", [False, True], ids=["plain", "dictionary"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_are_true_where_arrow_says_so(name: str, dictionary: bool) -> None:
    batch = several(dictionary=dictionary)
    passing = same(CONDITIONS[name], batch)
    assert same(CONDITIONS[name], batch.slice(7, 90)) == passing[7:97]


def test_a_dictionary_is_evaluated_anew_for_other_values_and_other_dictionaries() -> None:
    wanted = Call("=", (S, Parameter(0, VARCHAR)), BOOLEAN)
    mask = compile_mask(wanted, {2: 0})
    for value in ("a", "b", "a"):
        parameters = Parameters((value,), (VARCHAR,))
        for strings in (["a", "b", "a"], ["b", "a", "b"]):
            column = pa.array(strings * 10).dictionary_encode()
            passing = mask(pa.record_batch([column], names=["s"]), parameters)
            assert passing.tolist() == [each == value for each in strings * 10]


def test_what_may_fail_is_evaluated_in_turn() -> None:
    quotient = known(call("/", A, known(call("-", A, Literal(2, INTEGER)))))
    fails = Call(">", (quotient, Literal(0, quotient.type)), BOOLEAN)
    guarded = Call("and", (Call("<>", (A, Literal(2, INTEGER)), BOOLEAN), fails), BOOLEAN)
    batch = several(dictionary=False)
    assert any(same(guarded, batch))
    with pytest.raises(SqlError, match="zero"):
        compile_mask(fails, {0: 0})(batch, Parameters())


@pytest.mark.parametrize("function", COMPARISONS)
@pytest.mark.parametrize("value", ["0.055", "-0.055", "123456789012345678901234567890"])
def test_a_value_that_a_short_decimal_cannot_have(function: str, value: str) -> None:
    type_ = decimal(10, 2)
    rows = column_of(type_, [Decimal("-0.06"), Decimal("-0.05"), Decimal("0.05"), Decimal("0.06")], nulls=True)
    wanted = Literal(Decimal(value), decimal(33, 3))
    same(Call(function, (Column(0, "a", type_), wanted), BOOLEAN), pa.record_batch([rows], names=["0"]))
