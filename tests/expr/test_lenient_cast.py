"""TRY_CAST gives what CAST gives, and NULL where CAST is an error: over rows, and over batches of any length."""

from __future__ import annotations

from itertools import product

import pytest

from remuda.expr import Cast, Column, Parameters, can_cast, can_fail, render
from remuda.types import INTEGER, VARCHAR, SqlType
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, identity_of, record_batch
from tests.expr.random_expressions import SAMPLES
from tests.expr.random_functions import TYPES

PAIRS = [(source, target) for source, target in product(TYPES, TYPES) if can_cast(source, target)]


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_rows_and_batches_agree(source: SqlType) -> None:
    column = Column(0, "c", source)
    rows = [(value,) for value in (None, *SAMPLES[source])] * 3
    for target in [target for other, target in PAIRS if other == source]:
        strict, lenient = Cast(column, target), Cast(column, target, lenient=True)
        outcomes = [evaluate_row(strict, {0: 0}, row, ()) for row in rows]
        expected = [identity_of(None) if isinstance(outcome, Failure) else outcome for outcome in outcomes]
        assert [evaluate_row(lenient, {0: 0}, row, ()) for row in rows] == expected, target
        for dictionaries in (False, True):
            batch = record_batch((source,), rows, dictionaries=dictionaries)
            assert evaluate_batch(lenient, {0: 0}, batch, Parameters()) == expected, target


def test_one_bad_value_among_many() -> None:
    lenient = Cast(Column(0, "c", VARCHAR), INTEGER, lenient=True)
    rows = [("x" if number == 700 else str(number),) for number in range(1_000)]
    found = evaluate_batch(lenient, {0: 0}, record_batch((VARCHAR,), rows, dictionaries=False), Parameters())
    assert found == [identity_of(None if number == 700 else number) for number in range(1_000)]


def test_it_is_no_error_and_says_what_it_is() -> None:
    lenient = Cast(Column(0, "c", VARCHAR), INTEGER, lenient=True)
    assert not can_fail(lenient)
    assert can_fail(Cast(Column(0, "c", VARCHAR), INTEGER))
    assert lenient != Cast(Column(0, "c", VARCHAR), INTEGER)
    assert render(lenient) == "TRY_CAST(c AS INTEGER)"
