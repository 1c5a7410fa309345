"""The merge join: the rows of a hash join, in the order of the left side, however its inputs are cut."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from remuda.exec import Exec
from remuda.exec.expression_cache import ExpressionCache
from remuda.exec.join.hash_join import HashJoinExec
from remuda.exec.join.merge_join import MergeJoinExec, _key_of
from remuda.exec.memory import MemoryLimit
from remuda.expr import Column, Expression, call
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.physical import HashJoin, MergeJoin
from remuda.plan.traits import SortKey, Traits
from remuda.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, SqlType, decimal
from tests.exec.scripted import FETCHED, FORMS, SHAPES, Rows, ScriptedExec, context, drain, script, source_node
from tests.storage.sample_values import TYPES, random_value

KINDS = [kind for kind in JoinKind if kind not in {JoinKind.MARK, JoinKind.SINGLE}]


def columns_of(types: tuple[SqlType, ...], first: int) -> tuple[Column, ...]:
    keys = tuple(Column(first + place, f"k{place}", type_) for place, type_ in enumerate(types))
    return (*keys, Column(first + 9, "v", BIGINT))


class Trial:
    """Two ordered inputs, joined by merging and by hashing; the order has `leading` of the keys."""

    def __init__(
        self,
        types: tuple[SqlType, ...],
        *,
        order: tuple[SortKey, ...] = (),
        null_safe: bool = False,
        with_condition: bool = False,
    ) -> None:
        self.left, self.right = columns_of(types, 10), columns_of(types, 30)
        self.keys = tuple(
            JoinKey(left, right, null_safe) for left, right in zip(self.left[:-1], self.right[:-1], strict=True)
        )
        self.order = order or (SortKey(10),)
        self.condition: Expression | None = None
        if with_condition:
            made = call("<=", self.left[-1], self.right[-1])
            assert made is not None
            self.condition = made

    def sort(self, rows: Rows) -> Rows:
        key = _key_of(self.order)
        return sorted(rows, key=lambda row: key([row[each.column - 10] for each in self.order]))

    def check(self, kind: JoinKind, left: Rows, right: Rows, shape: str, form: str) -> Rows:
        left, right = self.sort(left), self.sort(right)
        sources = source_node(self.left), source_node(self.right)
        rest = (self.condition, None, None, Traits())
        merge = MergeJoin(kind, *sources, self.keys, self.order, *rest)
        hashed = HashJoin(kind, *sources, self.keys, *rest)

        def inputs(cut: str, how: str) -> tuple[Exec, Exec]:
            return (
                ScriptedExec(self.left, script(self.left, left, SHAPES[cut], how)),
                ScriptedExec(self.right, script(self.right, right, SHAPES[cut], how)),
            )

        limited = context(memory=MemoryLimit(1 << 30))
        found = drain(MergeJoinExec(merge, *inputs(shape, form), ExpressionCache()), limited)
        expected = drain(HashJoinExec(hashed, *inputs("one batch", "arrow"), ExpressionCache()))
        assert sorted(map(_identity, found)) == sorted(map(_identity, expected)), (kind, left, right)
        if not kind.keeps_right:
            assert [_identity(row[: len(self.left)]) for row in found] == [
                _identity(row[: len(self.left)]) for row in expected
            ], "the order of the left rows is kept"
        return found


def _identity(row: tuple[Any, ...]) -> str:
    return repr(tuple(0.0 if isinstance(value, float) and value == 0 else value for value in row))


LEFT: Rows = [(None, 0), (1, 1), (1, 2), (2, 3), (4, 4), (4, 5), (7, 6), (9, 7)]
RIGHT: Rows = [(None, 0), (None, 1), (1, 2), (1, 3), (1, 4), (3, 5), (4, 6), (8, 7)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_of_join(kind: JoinKind, shape: str, form: str) -> None:
    """NULLs that match nothing, repeated keys on both sides, rows without a match at both ends and between."""
    for left, right in ((LEFT, RIGHT), (LEFT, []), ([], RIGHT), (LEFT[:1], RIGHT[:2]), (LEFT[-1:], RIGHT[:4])):
        Trial((BIGINT,)).check(kind, left, right, shape, form)
        Trial((BIGINT,), null_safe=True).check(kind, left, right, shape, form)
        Trial((BIGINT,), with_condition=True).check(kind, left, right, shape, form)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_every_order(descending: bool, nulls_first: bool) -> None:
    order = (SortKey(10, descending, nulls_first),)
    for kind in KINDS:
        for shape in SHAPES:
            Trial((BIGINT,), order=order).check(kind, LEFT, RIGHT, shape, "arrow")


@pytest.mark.parametrize("type_", [*TYPES, BOOLEAN, decimal(38, 10)], ids=str)
def test_keys_of_every_type(type_: SqlType) -> None:
    random = Random(str(type_))
    values = [None, *(random_value(type_, random) for _ in range(6))]
    for kind in KINDS:
        left, right = ([(random.choice(values), number) for number in range(15)] for _ in range(2))
        Trial((type_,)).check(kind, left, right, "two by two", "arrow")


def test_nan_and_zero_equal_themselves() -> None:
    values = [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, 1.5, None]
    rows: Rows = [(value, number) for number, value in enumerate(values)]
    for kind in KINDS:
        for shape in SHAPES:
            Trial((DOUBLE,)).check(kind, rows, rows[::-1], shape, "arrow")


def test_a_key_that_has_no_order() -> None:
    """The rows come in the order of one of two keys."""
    random = Random(1)
    for kind in KINDS:
        left, right = ([(random.choice("abc"), random.randrange(3), n) for n in range(40)] for _ in range(2))
        for shape in SHAPES:
            Trial((VARCHAR, INTEGER)).check(kind, left, right, shape, "dictionary")
            Trial((VARCHAR, INTEGER), order=(SortKey(11),)).check(kind, left, right, shape, "tuples")
            both = (SortKey(11, descending=True), SortKey(10))
            Trial((VARCHAR, INTEGER), order=both).check(kind, left, right, shape, "arrow")


def test_it_reads_no_further_than_it_must() -> None:
    """A consumer that takes the first rows finds both inputs nearly untouched; one that ends ends the join."""
    trial = Trial((BIGINT,))
    rows: Rows = [(number, number) for number in range(1_000)]
    sources = source_node(trial.left), source_node(trial.right)
    node = MergeJoin(JoinKind.INNER, *sources, trial.keys, trial.order, None, None, None, Traits())
    left = ScriptedExec(trial.left, script(trial.left, rows, (10,)))
    right = ScriptedExec(trial.right, script(trial.right, rows, (10,)))
    operator = MergeJoinExec(node, left, right, ExpressionCache())
    operator.setup(context())
    assert operator.advance() is FETCHED
    assert operator.current_batch.row_count
    assert left.advanced <= 2
    assert right.advanced <= 2
    short = ScriptedExec(trial.right, script(trial.right, rows[:5], (10,)))
    left = ScriptedExec(trial.left, script(trial.left, rows, (10,)))
    assert len(drain(MergeJoinExec(node, left, short, ExpressionCache()))) == 5
    assert left.advanced <= 3
