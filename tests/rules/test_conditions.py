"""Simpler conditions have the same outcome for all values, and what is said of outcomes is true of each."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest

from remuda.expr import (
    Call,
    Case,
    Column,
    Expression,
    Literal,
    call,
    columns_of,
    conjuncts,
    evaluate_constant,
    render,
    substitute,
)
from remuda.rules.normalize.simplify import factor_common, implied_by_sides, simplify, simplify_asked
from remuda.rules.nulls import is_never_null, outcomes, rejects_nulls
from remuda.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterator

A, B, C = (Column(number, name, BIGINT) for number, name in enumerate("abc"))
VALUES = (None, 0, 1, 2)


def assignments(*, not_null: frozenset[int] = frozenset()) -> Iterator[dict[int, Expression]]:
    for values in product(VALUES, repeat=3):
        if not any(values[id_] is None for id_ in not_null):
            yield {number: Literal(value, BIGINT) for number, value in enumerate(values)}


def outcome(condition: Expression, values: dict[int, Expression]) -> bool | None:
    result: bool | None = evaluate_constant(substitute(condition, values))
    return result


class RandomConditions:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def condition(self, depth: int) -> Expression:
        function = self._random.choice(
            ["and", "or", "or", "not", "is true", "is not true", "is false", "is null", "leaf"]
        )
        if depth == 0 or function == "leaf":
            return self._leaf()
        if function in {"and", "or"}:
            shared = self._leaf()
            parts = [self.condition(depth - 1) for _ in range(self._random.choice([2, 3]))]
            if self._random.random() < 0.4:
                parts = [Call("and", (shared, part), BOOLEAN) for part in parts]
            return Call(function, tuple(parts), BOOLEAN)
        return Call(function, (self.condition(depth - 1),), BOOLEAN)

    def _value(self) -> Expression:
        return self._random.choice([A, A, B, B, C, Literal(self._random.choice(VALUES), BIGINT)])

    def _leaf(self) -> Expression:
        function = self._random.choice(
            ["=", "<>", "<", ">=", "is null", "is not null", "in", "same", "different", "case"]
        )
        match function:
            case "is null" | "is not null":
                return Call(function, (self._value(),), BOOLEAN)
            case "in":
                return Call(
                    "in", (self._value(), *(self._value() for _ in range(self._random.choice([1, 2])))), BOOLEAN
                )
            case "case":
                test = Call(self._random.choice(["is null", "is not null"]), (self._value(),), BOOLEAN)
                chosen, otherwise = (Literal(self._random.choice([True, False, None]), BOOLEAN) for _ in range(2))
                return Case(((test, chosen),), otherwise, BOOLEAN)
            case "same" | "different":
                name = "is not distinct from" if function == "same" else "is distinct from"
                return Call(name, (self._value(), self._value()), BOOLEAN)
            case _:
                return Call(function, (self._value(), self._value()), BOOLEAN)


@pytest.mark.parametrize("seed", range(200))
def test_random_conditions(seed: int) -> None:
    condition = RandomConditions(seed).condition(3)
    not_null = frozenset(Random(seed).sample([0, 1, 2], seed % 3))
    simpler = simplify(condition, lambda: not_null)
    asked = simplify_asked(condition, lambda: not_null)
    factored = factor_common(condition) or condition
    for values in assignments(not_null=not_null):
        expected = outcome(condition, values)
        assert outcome(simpler, values) is expected, render(simpler)
        assert outcome(factored, values) is expected, render(factored)
        assert (outcome(asked, values) is True) == (expected is True), render(asked)
        missing = {id_ for id_, value in values.items() if isinstance(value, Literal) and value.value is None}
        assert expected in outcomes(condition, missing)
        assert expected in outcomes(condition, missing, not_null)
        if expected is True:
            for implied in implied_by_sides(condition, {A.id}):
                assert outcome(implied, values) is True, render(implied)
    for _ in range(5):
        before, simpler = simpler, simplify(simpler, lambda: not_null)
    assert simpler is before, "there is an end to it"
    if is_never_null(condition, not_null):
        assert all(outcome(condition, values) is not None for values in assignments(not_null=not_null))


def _equals(column: Column, value: int) -> Call:
    return Call("=", (column, Literal(value, BIGINT)), BOOLEAN)


def test_a_shared_conjunct_is_factored_out() -> None:
    """TPC-H's query 19 hides its join condition like this."""
    join = Call("=", (A, B), BOOLEAN)
    branches = tuple(Call("and", (join, _equals(C, value)), BOOLEAN) for value in (1, 2))
    factored = factor_common(Call("or", branches, BOOLEAN))
    assert factored is not None
    assert conjuncts(factored) == (join, Call("or", (_equals(C, 1), _equals(C, 2)), BOOLEAN))


def test_a_branch_that_is_all_shared_is_the_whole() -> None:
    narrow = Call("and", (_equals(A, 1), _equals(B, 2)), BOOLEAN)
    assert factor_common(Call("or", (_equals(A, 1), narrow), BOOLEAN)) == _equals(A, 1)
    assert factor_common(Call("or", (_equals(A, 1), _equals(B, 1)), BOOLEAN)) is None


def test_what_can_fail_stays_behind_what_shields_it() -> None:
    quotient = call("/", Literal(10, BIGINT), B)
    assert quotient is not None
    large = call(">", quotient, Literal(1, BIGINT))
    assert large is not None
    above, below = (Call(function, (B, Literal(0, BIGINT)), BOOLEAN) for function in (">", "<"))
    shielded = Call("or", tuple(Call("and", (test, large), BOOLEAN) for test in (above, below)), BOOLEAN)
    assert factor_common(shielded) is None
    assert not list(implied_by_sides(Call("or", (large, large), BOOLEAN), {B.id}))
    first = Call("or", tuple(Call("and", (large, test), BOOLEAN) for test in (above, below)), BOOLEAN)
    assert factor_common(first) == Call("and", (large, Call("or", (above, below), BOOLEAN)), BOOLEAN)


def test_an_or_says_something_of_a_side_only_if_every_branch_does() -> None:
    both = Call("or", (_equals(A, 1), Call("and", (_equals(A, 2), _equals(B, 2)), BOOLEAN)), BOOLEAN)
    assert list(implied_by_sides(both, {A.id})) == [Call("or", (_equals(A, 1), _equals(A, 2)), BOOLEAN)]
    assert not list(implied_by_sides(both, {B.id}))


@pytest.mark.parametrize(
    ("function", "rejects"), [("=", True), ("<", True), ("is not distinct from", False), ("is distinct from", False)]
)
def test_comparisons_of_two_columns_and_null(function: str, rejects: bool) -> None:
    assert rejects_nulls(Call(function, (A, B), BOOLEAN), columns_of(A).keys()) is rejects


def test_coalesce_lets_null_pass() -> None:
    replaced = Call("coalesce", (A, Literal(1, BIGINT)), BIGINT)
    assert not rejects_nulls(Call("=", (replaced, Literal(1, BIGINT)), BOOLEAN), {A.id})
    assert rejects_nulls(Call("=", (Call("coalesce", (A, A), BIGINT), B), BOOLEAN), {A.id})
