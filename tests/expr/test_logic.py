"""Three-valued logic: the truth tables, by row and by batch."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.expr import Call, Column, Literal, Parameters, call
from remuda.types import BOOLEAN, INTEGER
from tests.expr.evaluation import evaluate_batch, evaluate_row, identity_of, record_batch

A, B = Column(0, "a", BOOLEAN), Column(1, "b", BOOLEAN)
LAYOUT = {0: 0, 1: 1}
T, F, N = True, False, None

AND = {(T, T): T, (T, F): F, (T, N): N, (F, T): F, (F, F): F, (F, N): F, (N, T): N, (N, F): F, (N, N): N}
OR = {(T, T): T, (T, F): T, (T, N): T, (F, T): T, (F, F): F, (F, N): N, (N, T): T, (N, F): N, (N, N): N}
TESTS: dict[str, dict[bool | None, bool | None]] = {
    "not": {T: F, F: T, N: N},
    "is null": {T: F, F: F, N: T},
    "is not null": {T: T, F: T, N: F},
    "is true": {T: T, F: F, N: F},
    "is not true": {T: F, F: T, N: T},
    "is false": {T: F, F: T, N: F},
    "is not false": {T: T, F: F, N: T},
}


def _both_ways(expression: Any, rows: list[tuple[Any, ...]], expected: list[Any]) -> None:
    wanted = [identity_of(value) for value in expected]
    assert [evaluate_row(expression, LAYOUT, row, ()) for row in rows] == wanted
    batch = record_batch([BOOLEAN, BOOLEAN], rows, dictionaries=False)
    assert evaluate_batch(expression, LAYOUT, batch, Parameters()) == wanted


@pytest.mark.parametrize(("name", "table"), [("and", AND), ("or", OR)])
def test_and_or_have_three_values(name: str, table: dict[Any, Any]) -> None:
    _both_ways(Call(name, (A, B), BOOLEAN), list(table), list(table.values()))


@pytest.mark.parametrize("name", list(TESTS))
def test_not_and_is(name: str) -> None:
    table = TESTS[name]
    _both_ways(Call(name, (A,), BOOLEAN), [(value, None) for value in table], list(table.values()))


@pytest.mark.parametrize("constant", [T, F, N])
def test_a_constant_side(constant: bool | None) -> None:
    tables: dict[str, dict[Any, Any]] = {"and": AND, "or": OR}
    for name, table in tables.items():
        expression = Call(name, (A, Literal(constant, BOOLEAN)), BOOLEAN)
        _both_ways(expression, [(value, None) for value in (T, F, N)], [table[value, constant] for value in (T, F, N)])


IN_CASES = [
    (1, [1, 2], T),
    (3, [1, 2], F),
    (1, [1, N], T),
    (3, [1, N], N),
    (3, [N], N),
    (N, [1, 2], N),
    (N, [N], N),
]


@pytest.mark.parametrize(("value", "candidates", "expected"), IN_CASES)
def test_in_with_null_is_unknown_rather_than_false(value: Any, candidates: list[Any], expected: Any) -> None:
    column = Column(0, "a", INTEGER)
    expression = call("in", column, *(Literal(candidate, INTEGER) for candidate in candidates))
    assert expression is not None
    batch = record_batch([INTEGER], [(value,)], dictionaries=False)
    assert evaluate_row(expression, LAYOUT, (value,), ()) == identity_of(expected)
    assert evaluate_batch(expression, LAYOUT, batch, Parameters()) == [identity_of(expected)]
