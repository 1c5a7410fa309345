"""Hash aggregation: what each function gives for hard values, in one step and in several, whole and in two phases."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.exec.aggregate.aggregate import HashAggregateExec
from remuda.expr import Column
from remuda.plan.aggregates import AGGREGATES, AggregateCall, partial_type
from remuda.plan.physical import HashAggregate, Phase
from remuda.plan.traits import Traits
from remuda.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, REAL, VARCHAR, SqlType, decimal
from tests.exec.scripted import FORMS, SHAPES, Rows, ScriptedExec, drain, script, source_node

KEY_ID, VALUE_ID = 1, 2
NAN = math.nan


def canonical(value: Any) -> Any:
    """NaN equals itself here; a float stays a float, and -0.0 stays -0.0."""
    return repr(value) if isinstance(value, float) else value


class Grouping:
    """A grouping of rows (key, value), run whole or as partial steps that a final one merges."""

    def __init__(self, key: SqlType | None, value: SqlType, *functions: str, distinct: bool = False) -> None:
        value_column = Column(VALUE_ID, "v", value)
        self.keys = () if key is None else (Column(KEY_ID, "k", key),)
        self.columns = (*self.keys, value_column)
        self.calls = tuple(
            AggregateCall(
                Column(10 + number, name, AGGREGATES[name.rstrip("*")].result(value) or value),
                name.rstrip("*"),
                None if name.endswith("*") else value_column,
                distinct,
            )
            for number, name in enumerate(functions)
        )
        self.states = tuple(
            tuple(
                Column(100 + 10 * number + part, function, partial_type(function, call))
                for part, function in enumerate(AGGREGATES[call.function].partials)
            )
            for number, call in enumerate(self.calls)
        )

    def whole(self, rows: Rows, shape: str = "one batch", form: str = "tuples") -> dict[Any, tuple[Any, ...]]:
        source = ScriptedExec(self.columns, script(self.columns, rows, SHAPES[shape], form))
        return self._by_key(drain(HashAggregateExec(self._node(self.columns, Phase.COMPLETE), source)))

    def in_two_phases(self, parts: list[Rows]) -> dict[Any, tuple[Any, ...]]:
        partial = self._node(self.columns, Phase.PARTIAL)
        states: Rows = []
        for rows in parts:
            source = ScriptedExec(self.columns, script(self.columns, rows))
            states += drain(HashAggregateExec(partial, source))
        source = ScriptedExec(partial.columns, script(partial.columns, states, (2,)))
        return self._by_key(drain(HashAggregateExec(self._node(partial.columns, Phase.FINAL), source)))

    def _node(self, columns: tuple[Column, ...], phase: Phase) -> HashAggregate:
        return HashAggregate(source_node(columns), self.keys, self.calls, self.states, phase, Traits())

    def _by_key(self, rows: Rows) -> dict[Any, tuple[Any, ...]]:
        width = len(self.keys)
        found = {canonical(row[0]) if width else None: tuple(canonical(value) for value in row[width:]) for row in rows}
        assert len(found) == len(rows), "each group comes once"
        return found


Run = Callable[[Grouping, Rows], dict[Any, tuple[Any, ...]]]


def _whole(grouping: Grouping, rows: Rows) -> dict[Any, tuple[Any, ...]]:
    return grouping.whole(rows)


def _two_phases(grouping: Grouping, rows: Rows) -> dict[Any, tuple[Any, ...]]:
    return grouping.in_two_phases([rows[:1], [], rows[1:3], rows[3:]])


def _steps(grouping: Grouping, rows: Rows) -> dict[Any, tuple[Any, ...]]:
    return grouping.whole(rows, "one by one", "arrow")


@pytest.fixture(params=[_whole, _two_phases, _steps], ids=["whole", "two phases", "several steps"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


def test_sum_beyond_64_bits_is_exact(run: Run) -> None:
    most, least = 2**63 - 1, -(2**63)
    found = run(Grouping(VARCHAR, BIGINT, "sum"), [("a", most), ("a", most), ("b", least), ("a", 5), ("b", least)])
    assert found == {"a": (Decimal(2 * most + 5),), "b": (Decimal(2 * least),)}
    assert run(Grouping(None, BIGINT, "sum"), [(most,), (most,), (most,), (-1,)]) == {None: (Decimal(3 * most - 1),)}


def test_sum_of_smaller_integers_is_a_bigint(run: Run) -> None:
    found = run(Grouping(None, INTEGER, "sum"), [(2**31 - 1,)] * 4)
    assert found == {None: (4 * (2**31 - 1),)}


def test_sum_of_decimals_keeps_their_scale(run: Run) -> None:
    found = run(Grouping(None, decimal(10, 2), "sum"), [(Decimal("0.10"),), (None,), (Decimal("0.25"),)])
    assert found == {None: (Decimal("0.35"),)}


def test_sum_beyond_38_digits_is_refused(run: Run) -> None:
    large = Decimal("9e37")
    with pytest.raises(SqlError, match="overflows") as caught:
        run(Grouping(None, decimal(38, 0), "sum"), [(large,), (large,), (large,)])
    assert caught.value.code is ErrorCode.DATA_EXCEPTION


def test_a_sum_that_fits_is_not_refused_for_its_parts(run: Run) -> None:
    """Neither the other groups nor the way to the sum count."""
    large = Decimal("9e37")
    rows: Rows = [("a", large), ("b", large), ("c", large), ("c", -large), ("c", Decimal(1))]
    assert run(Grouping(VARCHAR, decimal(38, 0), "sum"), rows) == {"a": (large,), "b": (large,), "c": (Decimal(1),)}


def test_nothing_has_a_count_of_zero_and_no_sum(run: Run) -> None:
    functions = ("count*", "count", "sum", "avg", "min", "max")
    nothing = (0, 0, None, None, None, None)
    assert run(Grouping(None, BIGINT, *functions), []) == {None: nothing}
    assert run(Grouping(None, DOUBLE, *functions), []) == {None: nothing}
    assert run(Grouping(VARCHAR, BIGINT, *functions), []) == {}


def test_only_nulls_count_as_rows_but_not_as_values(run: Run) -> None:
    functions = ("count*", "count", "sum", "avg", "min", "max")
    rows: Rows = [("a", None), ("a", None), (None, None)]
    assert run(Grouping(VARCHAR, BIGINT, *functions), rows) == {
        "a": (2, 0, None, None, None, None),
        None: (1, 0, None, None, None, None),
    }


def test_an_average_leaves_nulls_out(run: Run) -> None:
    rows: Rows = [("a", 1), ("a", None), ("a", 2), ("b", 7)]
    assert run(Grouping(VARCHAR, BIGINT, "avg"), rows) == {"a": ("1.5",), "b": ("7.0",)}
    assert run(Grouping(None, DOUBLE, "avg"), [(0.5,), (1.5,), (None,)]) == {None: ("1.0",)}


def test_average_of_large_integers(run: Run) -> None:
    """A BIGINT that no DOUBLE holds exactly is no error: the average is a DOUBLE by definition."""
    assert run(Grouping(None, BIGINT, "avg"), [(2**62 + 1,), (2**62 + 3,)]) == {None: (repr(float(2**62)),)}


def test_least_and_greatest_with_nan(run: Run) -> None:
    rows: Rows = [("a", NAN), ("a", 1.0), ("a", None), ("b", NAN), ("c", math.inf), ("c", -math.inf)]
    expected = {"a": ("1.0", "nan"), "b": ("nan", "nan"), "c": ("-inf", "inf")}
    assert run(Grouping(VARCHAR, DOUBLE, "min", "max"), rows) == expected
    assert run(Grouping(VARCHAR, REAL, "min", "max"), rows) == expected
    assert run(Grouping(None, DOUBLE, "min", "max"), [(NAN,), (-1.0,), (None,)]) == {None: ("-1.0", "nan")}


def test_least_and_greatest_of_other_types(run: Run) -> None:
    rows: Rows = [("g", "ab"), ("g", ""), ("g", None), ("g", "B"), ("g", "ü")]
    assert run(Grouping(VARCHAR, VARCHAR, "min", "max"), rows) == {"g": ("", "ü")}
    assert run(Grouping(None, VARCHAR, "min", "max"), [(value,) for _, value in rows]) == {None: ("", "ü")}
    assert run(Grouping(VARCHAR, DATE, "min", "max"), [("g", 3), ("g", -1)]) == {"g": (-1, 3)}
    amounts: Rows = [(Decimal("1.50"),), (Decimal("-2.25"),)]
    assert run(Grouping(None, decimal(8, 2), "min", "max"), amounts) == {None: (Decimal("-2.25"), Decimal("1.50"))}
    assert run(Grouping(None, BOOLEAN, "min", "max"), [(True,), (None,), (False,)]) == {None: (False, True)}


def test_zeros_are_one_key_and_so_are_all_nans(run: Run) -> None:
    other_nan = math.copysign(NAN, -1)
    rows: Rows = [(0.0, 1), (-0.0, 2), (NAN, 4), (other_nan, 8), (None, 16)]
    for key in (DOUBLE, REAL):
        found = run(Grouping(key, BIGINT, "sum", "count*"), rows)
        assert found == {"0.0": (Decimal(3), 2), "nan": (Decimal(12), 2), None: (Decimal(16), 1)}


def test_counting_distinct_values_over_several_batches() -> None:
    grouping = Grouping(VARCHAR, BIGINT, "count", distinct=True)
    rows: Rows = [("a", 1), ("b", 1), ("a", 2), ("a", None), ("a", 1), ("b", 1)]
    assert grouping.whole(rows, "one by one", "arrow") == {"a": (2,), "b": (1,)}
    assert Grouping(None, VARCHAR, "count", distinct=True).whole([("x",), ("y",), ("x",), (None,)]) == {None: (2,)}


@pytest.mark.parametrize("key", [None, VARCHAR])
def test_distinct_values_are_those_that_differ_in_sql(key: SqlType | None) -> None:
    """-0.0 is 0.0, and NaN is NaN."""
    prefix = () if key is None else ("g",)
    rows: Rows = [(*prefix, value) for value in (0.0, -0.0, NAN, math.copysign(NAN, -1), None)]
    assert list(Grouping(key, DOUBLE, "count", distinct=True).whole(rows).values()) == [(2,)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_cut_of_the_input_does_not_matter(shape: str, form: str) -> None:
    rows: Rows = [("abc"[number % 3], number) for number in range(10)] + [(None, 7)]
    assert Grouping(VARCHAR, BIGINT, "count*", "sum", "min", "max", "avg").whole(rows, shape, form) == {
        "a": (4, Decimal(18), 0, 9, "4.5"),
        "b": (3, Decimal(12), 1, 7, "4.0"),
        "c": (3, Decimal(15), 2, 8, "5.0"),
        None: (1, Decimal(7), 7, 7, "7.0"),
    }


def test_batches_with_and_without_dictionaries_mix() -> None:
    grouping = Grouping(VARCHAR, VARCHAR, "max", "count*")
    steps = [
        *script(grouping.columns, [("a", "x"), ("b", "y")], form="dictionary"),
        *script(grouping.columns, [("b", "z"), ("c", "w")], form="arrow"),
        *script(grouping.columns, [("a", "zz")], form="tuples"),
    ]
    node = grouping._node(grouping.columns, Phase.COMPLETE)
    found = drain(HashAggregateExec(node, ScriptedExec(grouping.columns, steps)))
    assert sorted(found) == [("a", "zz", 2), ("b", "z", 2), ("c", "w", 1)]
