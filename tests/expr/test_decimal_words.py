"""DECIMALs computed as 64-bit words are those computed otherwise, up to the ends of what a word holds."""

from __future__ import annotations

import random
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from remuda.expr import Column, Literal, Parameters, call
from remuda.expr.functions import decimal_words
from remuda.types import SqlType, decimal
from tests.expr.evaluation import Failure, evaluate_batch, record_batch

TYPES = (decimal(4, 2), decimal(15, 2), decimal(18, 0), decimal(20, 6), decimal(32, 4), decimal(38, 10))
EXACT = Context(prec=100)
GREATEST = 2**63 - 1
LAYOUT = {0: 0, 1: 1}


def values_of(type_: SqlType, most: int, source: random.Random) -> list[Decimal]:
    """Of at most so many unscaled units, both ends among them."""
    most = min(most, 10**type_.precision - 1)
    numbers = [most, -most, 0, *(source.randint(-most, most) for _ in range(40))]
    source.shuffle(numbers)
    return [EXACT.scaleb(Decimal(number), -type_.scale) for number in numbers]


def both_ways(
    operator: str, left: Any, right: Any, batch: pa.RecordBatch, monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    expression = call(operator, left, right)
    assert expression is not None
    outcomes = []
    for few in (1, 10_000):
        monkeypatch.setattr(decimal_words, "FEW_ROWS", few)
        outcomes.append(evaluate_batch(expression, LAYOUT, batch, Parameters()))
    return outcomes


@pytest.mark.parametrize("operator", ["+", "-", "*"])
@pytest.mark.parametrize("left", TYPES, ids=str)
def test_columns(operator: str, left: SqlType, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(str((operator, left)))
    for right in TYPES:
        for most, other in ((10**3, 10**3), (3 * 10**9, 3 * 10**9), (GREATEST, 1), (GREATEST, 2), (10**25, 10**3)):
            rows = list(zip(values_of(left, most, source), values_of(right, other, source), strict=True))
            batch = record_batch((left, right), rows, dictionaries=False)
            first, second = Column(0, "a", left), Column(1, "b", right)
            by_words, otherwise = both_ways(operator, first, second, batch, monkeypatch)
            assert not isinstance(otherwise, Failure)
            assert by_words == otherwise


@pytest.mark.parametrize("operator", ["+", "-", "*"])
@pytest.mark.parametrize("text", ["1", "-0.05", "9223372036854775807", "12345678901234567890.123456789"])
def test_a_value_and_a_slice_of_a_column(operator: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(operator + text)
    value = Decimal(text)
    digits, scale = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
    literal = Literal(value, decimal(max(digits, scale), scale))
    for type_ in TYPES:
        rows = [(each, each) for each in values_of(type_, 10**6, source)]
        batch = record_batch((type_, type_), rows, dictionaries=False).slice(7, 20)
        column = Column(0, "a", type_)
        for left, right in ((column, literal), (literal, column)):
            by_words, otherwise = both_ways(operator, left, right, batch, monkeypatch)
            assert by_words == otherwise


def test_null(monkeypatch: pytest.MonkeyPatch) -> None:
    type_ = decimal(10, 2)
    rows = [(Decimal("1.50"), None), (None, Decimal("2.00")), (Decimal("0.10"), Decimal("0.20"))]
    batch = record_batch((type_, type_), rows, dictionaries=False)
    by_words, otherwise = both_ways("*", Column(0, "a", type_), Column(1, "b", type_), batch, monkeypatch)
    assert by_words == otherwise
    assert [value for _, value in by_words] == [None, None, Decimal("0.0200")]


def test_short_numbers_of_a_long_type_are_computed_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not with 256 bits: otherwise nothing here would be tested."""
    monkeypatch.setattr(decimal_words, "FEW_ROWS", 1)
    made: list[int] = []
    from_words = decimal_words._from_words

    def counted(words: Any, arrow: pa.DataType) -> pa.Array:
        made.append(len(words))
        return from_words(words, arrow)

    monkeypatch.setattr(decimal_words, "_from_words", counted)
    left, right = decimal(32, 4), decimal(16, 2)
    expression = call("*", Column(0, "a", left), Column(1, "b", right))
    assert expression is not None
    batch = record_batch((left, right), [(Decimal("1.0000"), Decimal("2.00"))] * 5, dictionaries=False)
    assert evaluate_batch(expression, LAYOUT, batch, Parameters()) == [(Decimal, Decimal("2.000000"))] * 5
    assert made == [5]
