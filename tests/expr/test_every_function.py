"""Each function with each list of types that it takes: rows and batches agree on the values of every domain."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from remuda.expr import FUNCTIONS, Column, Literal, Parameters, call, can_fail, hints_of
from remuda.types import BOOLEAN, SqlType
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
        # A batch without columns would have no rows either.
        batch = record_batch(types or (BOOLEAN,), [row or (True,) for row in good], dictionaries=False)
        expected = [outcome for outcome in outcomes if not isinstance(outcome, Failure)]
        together = evaluate_batch(expression, layout, batch, Parameters())
        assert not isinstance(together, Failure), (types, together)
        for row, one, many in zip(good, expected, together, strict=True):
            assert one == many, (types, row)
        bad = [(row, outcome) for row, outcome in zip(rows, outcomes, strict=True) if isinstance(outcome, Failure)]
        assert can_fail(expression) or not bad, (types, bad[0])
        for row, outcome in bad[:MOST_FAILURES]:
            alone = evaluate_batch(expression, layout, record_batch(types, [row], dictionaries=False), Parameters())
            assert alone == outcome, (types, row)


MOST_CONSTANTS = 6


@pytest.mark.parametrize(
    "name", sorted(name for name, lists in BY_NAME.items() if any(len(types) > 1 for types in lists))
)
def test_constants_give_what_columns_give(name: str) -> None:
    """Kernels of Arrow are often for a column and constants."""
    chance = random.Random(name)
    lists = [types for types in BY_NAME[name] if len(types) > 1]
    own = hints_of(FUNCTIONS[name])
    chosen = [types for types in lists if types == own] + chance.sample(lists, min(4, len(lists)))
    for types in chosen:
        for _ in range(MOST_CONSTANTS):
            constants = [Literal(chance.choice(SAMPLES[type_]), type_) for type_ in types[1:]]
            expression = call(name, Column(0, "c", types[0]), *constants)
            assert expression is not None
            rows = [(value,) for value in (None, *SAMPLES[types[0]])]
            outcomes = [evaluate_row(expression, {0: 0}, row, ()) for row in rows]
            good = [row for row, outcome in zip(rows, outcomes, strict=True) if not isinstance(outcome, Failure)]
            for dictionaries in (False, True):
                batch = record_batch(types[:1], good, dictionaries=dictionaries)
                together = evaluate_batch(expression, {0: 0}, batch, Parameters())
                expected = [outcome for outcome in outcomes if not isinstance(outcome, Failure)]
                assert together == expected, [constant.value for constant in constants]
            for row, outcome in zip(rows, outcomes, strict=True):
                if isinstance(outcome, Failure):
                    alone = record_batch(types[:1], [row], dictionaries=False)
                    assert evaluate_batch(expression, {0: 0}, alone, Parameters()) == outcome
                    break
