"""Sharing changes no value and makes no error, whatever expressions a filter and a projection have in common."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import remuda
from remuda.errors import SqlError
from remuda.expr import Call, Case, Column, Expression, Literal, call, compile_row, walk
from remuda.optimizer.costing import Costing
from remuda.optimizer.finishing.common_expressions import CommonExpressions
from remuda.plan import physical
from remuda.plan.logical import Assignment
from remuda.plan.traits import ROOT, Convention, Traits
from remuda.plan.walk import walk as walk_plan
from remuda.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, SqlType
from tests.expr.evaluation import identity_of
from tests.expr.random_expressions import COLUMNS, expressions, rows
from tests.expr.random_functions import TYPES

AT_ROOT = Traits(Convention.LOCAL, ROOT)
VALUES = physical.Values(COLUMNS, (), AT_ROOT)
PARAMETERS = tuple(None for _ in TYPES)


class Shared:
    """A plan with what it has in common shared."""

    def __init__(self, plan: Any) -> None:
        self._next = 1_000
        self.common = CommonExpressions(self._column, Costing(1), _no_scan)
        self.plan = self.common.share(plan)

    def _column(self, name: str, type_: SqlType) -> Column:
        self._next += 1
        return Column(self._next, name, type_)


def _no_scan(_scan: physical.MapScan, _filter: Expression | None) -> physical.MapScan:
    raise AssertionError("these plans have no scan")


def project(source: Any, *values: Expression) -> physical.Project:
    items = tuple(Assignment(Column(100 + place, f"v{place}", each.type), each) for place, each in enumerate(values))
    return physical.Project(source, items, AT_ROOT)


def evaluate(node: Any, row: dict[int, Any]) -> dict[int, Any] | None:
    """What a plan makes of one row; None where a filter drops it."""
    match node:
        case physical.Values():
            return row
        case physical.Filter():
            below = evaluate(node.input, row)
            return below if below is not None and _value(node.condition, below) is True else None
        case physical.Project():
            below = evaluate(node.input, row)
            if below is None:
                return None
            return {item.column.id: _value(item.expression, below) for item in node.assignments}
    raise AssertionError(type(node).__name__)


def _value(expression: Expression, row: dict[int, Any]) -> Any:
    return compile_row(expression, {id_: id_ for id_ in row})(row, PARAMETERS)  # type: ignore[arg-type]


@st.composite
def plans(draw: st.DrawFn) -> Any:
    """A projection over a filter or not, of expressions that have much in common."""
    bases = draw(st.lists(st.sampled_from(TYPES).flatmap(expressions), min_size=1, max_size=3))
    parts = [part for base in bases for part in walk(base)]
    conditions = [part for part in parts if part.type == BOOLEAN] or [Call("is null", (bases[0],), BOOLEAN)]
    chosen = draw(st.lists(st.sampled_from([*bases, *parts]), min_size=1, max_size=4))
    for base in bases:
        if draw(st.booleans()):
            when = draw(st.sampled_from(conditions))
            chosen.append(Case(((when, base),), Literal(None, base.type), base.type))
    source: Any = VALUES
    if draw(st.booleans()):
        asked = draw(st.lists(st.sampled_from(conditions), min_size=1, max_size=3))
        source = physical.Filter(VALUES, asked[0] if len(asked) == 1 else Call("and", tuple(asked), BOOLEAN), AT_ROOT)
    return project(source, *chosen)


@given(plans(), st.lists(rows, min_size=1, max_size=4))
def test_every_row_is_what_it_was(plan: Any, given_rows: list[tuple[Any, ...]]) -> None:
    shared = Shared(plan).plan
    for values in given_rows:
        row = dict(enumerate(values))
        try:
            expected = evaluate(plan, row)
        except SqlError:
            continue
        found = evaluate(shared, row)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert {id_: identity_of(found[id_]) for id_ in expected} == {
                id_: identity_of(value) for id_, value in expected.items()
            }


def _depth(plan: Any) -> int:
    return sum(isinstance(node, physical.Project) for node in walk_plan(plan))


A, B = Column(TYPES.index(INTEGER), "a", INTEGER), Column(TYPES.index(BIGINT), "b", BIGINT)
S = Column(TYPES.index(VARCHAR), "s", VARCHAR)


def _of(name: str, *arguments: Expression) -> Expression:
    bound = call(name, *arguments)
    assert bound is not None
    return bound


def test_what_is_guarded_is_not_shared() -> None:
    quotient = _of("/", A, B)
    nonzero = _of("<>", B, Literal(0, BIGINT))
    guarded = Case(((nonzero, quotient),), Literal(None, BIGINT), BIGINT)
    shared = Shared(project(VALUES, guarded, Call("coalesce", (B, quotient), BIGINT))).plan
    row = {column.id: 0 for column in COLUMNS}
    assert list((evaluate(shared, row) or {}).values()) == [None, 0]
    condition = Call("and", (nonzero, _of(">", quotient, Literal(1, BIGINT))), BOOLEAN)
    shared = Shared(project(physical.Filter(VALUES, condition, AT_ROOT), quotient)).plan
    assert evaluate(shared, row) is None


def test_what_one_place_always_computes_serves_the_others() -> None:
    quotient = _of("/", A, B)
    guarded = Case(((_of("<>", B, Literal(0, BIGINT)), quotient),), Literal(None, BIGINT), BIGINT)
    assert _depth(Shared(project(VALUES, quotient, guarded)).plan) == 2


def test_one_within_another_takes_two_steps() -> None:
    inner = _of("length", S)
    outer = _of("+", inner, A)
    shared = Shared(project(VALUES, outer, outer, inner))
    assert _depth(shared.plan) == 3
    computed = [
        part
        for node in walk_plan(shared.plan)
        for item in getattr(node, "assignments", ())
        for part in walk(item.expression)
    ]
    assert sum(isinstance(part, Call) and part.function == "length" for part in computed) == 1


def test_a_new_value_each_time_is_never_shared() -> None:
    drawn = _of("random", Literal(1, BIGINT))
    plan = project(VALUES, _of("+", drawn, Literal(math.pi, drawn.type)), _of("+", drawn, Literal(math.pi, drawn.type)))
    assert Shared(plan).plan is plan


def test_expressions_of_either_zero_are_not_one() -> None:
    """-0.0 equals 0.0, but what is multiplied by it has the other sign."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, x DOUBLE, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t VALUES (1, 2.5)")
        (row,) = grid.sql("SELECT x * CAST('0.0' AS DOUBLE), x * CAST('-0.0' AS DOUBLE) FROM t")
        assert [math.copysign(1.0, value) for value in row] == [1.0, -1.0]
