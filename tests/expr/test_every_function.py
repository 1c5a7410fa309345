"""Each function with each list of types that it takes: rows and batches agree on the values of every domain."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from remuda.expr import Column, Parameters, call
from remuda.types import SqlType
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, record_batch
from tests.expr.random_expressions import SAMPLES
from tests.expr.random_functions import CALLS

BY_NAME: dict[str, list[tuple[SqlType, ...]]] = {}
for _calls in CALLS.values():
    for _name, _types in _calls:
        BY_NAME.setdefault(_name, []).append(_types)

MOST_ROWS = 60
MOST_FAILURES = 4


def sample_rows(types: tuple[SqlType, ...]) -> list[tuple[Any, ...]]:
    """The same at every run."""
    rows = list(product(*([None, *SAMPLES[type_]] for type_ in types)))
    return rows if len(rows) <= MOST_ROWS else random.Random(str(types)).sample(rows, MOST_ROWS)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_rows_and_batches_agree(name: str) -> None:
    for types in BY_NAME[name]:
        columns = [Column(number, f"c{number}", type_) for number, type_ in enumerate(types)]
        layout = {column.id: column.id for column in columns}
        expression = call(name, *columns)
        assert expression is not None
        rows = sample_rows(types)
        outcomes = [evaluate_row(expression, layout, row, ()) for row in rows]
        good = [row for row, outcome in zip(rows, outcomes, strict=True) if not isinstance(outcome, Failure)]
        batch = record_batch(types, good, dictionaries=False)
        expected = [outcome for outcome in outcomes if not isinstance(outcome, Failure)]
        together = evaluate_batch(expression, layout, batch, Parameters())
        assert not isinstance(together, Failure), (types, together)
        for row, one, many in zip(good, expected, together, strict=True):
            assert one == many, (types, row)
        bad = [(row, outcome) for row, outcome in zip(rows, outcomes, strict=True) if isinstance(outcome, Failure)]
        for row, outcome in bad[:MOST_FAILURES]:
            alone = evaluate_batch(expression, layout, record_batch(types, [row], dictionaries=False), Parameters())
            assert alone == outcome, (types, row)
