"""Row and batch evaluation are one semantics: the same value or the same error, whatever the expression."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.expr import Expression, Parameters, fold
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, record_batch
from tests.expr.random_expressions import LAYOUT, anything, rows
from tests.expr.random_functions import TYPES

Row = tuple[Any, ...]


@pytest.mark.parametrize("dictionaries", [False, True], ids=["plain", "dictionaries"])
@given(anything, st.lists(rows, min_size=1, max_size=6), rows)
def test_a_batch_gives_what_its_rows_give(
    dictionaries: bool, expression: Expression, data: list[Row], parameters: Row
) -> None:
    by_row = [evaluate_row(expression, LAYOUT, row, parameters) for row in data]
    batch = record_batch(TYPES, data, dictionaries=dictionaries)
    together = evaluate_batch(expression, LAYOUT, batch, Parameters(parameters, TYPES))
    failures = [outcome for outcome in by_row if isinstance(outcome, Failure)]
    if failures:
        assert together in failures
    else:
        assert together == by_row


@given(anything, rows, rows)
def test_folding_keeps_the_value(expression: Expression, row: Row, parameters: Row) -> None:
    before = evaluate_row(expression, LAYOUT, row, parameters)
    after = evaluate_row(fold(expression), LAYOUT, row, parameters)
    # What FALSE AND or a known CASE branch makes irrelevant may not be reached any more: an error may go, never come.
    assert after == before or isinstance(before, Failure)
