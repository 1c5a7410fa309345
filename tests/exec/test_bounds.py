"""Symbolic bounds with values filled in: NULL, contradictions, duplicates, and the partitions that are left."""

from __future__ import annotations

import math
from typing import Any

import pytest

from remuda.exec.scan.concrete_bounds import (
    compile_lookups,
    index_lookups,
    interval_range,
    lookup_keys,
    point_values,
    pruned_partitions,
)
from remuda.expr import Literal, Parameter
from remuda.plan.bounds import MAXIMUM_COMBINATIONS, End, Interval, Points, Pruning
from remuda.storage import UNBOUNDED, Lookup, Range, hash_values, partition_of
from remuda.types import BIGINT, DATE, DOUBLE, VARCHAR, SqlType
from tests.storage.maps import map_of

NAN = math.nan


def points(*values: Any, type_: SqlType = BIGINT, or_null: bool = False) -> Points:
    return Points(tuple(Literal(value, type_) for value in values), or_null)


def between(low: Any, high: Any, low_inclusive: bool = True, high_inclusive: bool = True) -> Interval:
    return Interval((End(Literal(low, BIGINT), low_inclusive),), (End(Literal(high, BIGINT), high_inclusive),))


def test_points_come_once_each_and_in_order() -> None:
    assert point_values(points(3, 1, 3, 2, 1), ()) == [1, 2, 3]
    assert point_values(points("b", "", "b", type_=VARCHAR), ()) == ["", "b"]


def test_null_is_a_point_only_where_it_is_asked_for() -> None:
    assert point_values(points(None), ()) == []
    assert point_values(points(2, None, 1), ()) == [1, 2]
    assert point_values(points(or_null=True), ()) == [None]
    assert point_values(points(2, None, or_null=True), ()) == [None, 2]


def test_nan_is_one_point_and_so_are_the_zeros() -> None:
    found = point_values(points(float("nan"), 0.0, float("nan"), -0.0, 1.0, type_=DOUBLE), ())
    assert [repr(value + 0.0) for value in found] == ["0.0", "1.0", "nan"]


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (between(1, 5), Range(1, True, 5, True)),
        (between(5, 5), Range(5, True, 5, True)),
        (between(5, 5, low_inclusive=False), None),
        (between(5, 5, high_inclusive=False), None),
        (between(6, 5), None),
        (between(None, 5), None),
        (between(1, None), None),
        (Interval(), Range()),
        (Interval((End(Literal(1, BIGINT), False),)), Range(1, False)),
        (Interval((), (End(Literal(9, BIGINT), False),)), Range(UNBOUNDED, True, 9, False)),
    ],
)
def test_an_interval_becomes_a_range_or_nothing(interval: Interval, expected: Range | None) -> None:
    assert interval_range(interval, ()) == expected


def test_the_tightest_of_several_ends_counts() -> None:
    lows = (End(Literal(1, BIGINT), False), End(Literal(3, BIGINT), True), End(Literal(3, BIGINT), False))
    highs = (End(Literal(9, BIGINT), True), End(Literal(8, BIGINT), True), End(Literal(8, BIGINT), True))
    assert interval_range(Interval(lows, highs), ()) == Range(3, False, 8, True)
    assert interval_range(Interval((*lows, End(Literal(None, BIGINT), True)), highs), ()) is None


def test_nan_is_above_every_number() -> None:
    def ends(low: float, high: float) -> Interval:
        return Interval((End(Literal(low, DOUBLE), True),), (End(Literal(high, DOUBLE), True),))

    assert interval_range(ends(NAN, math.inf), ()) is None
    assert interval_range(ends(math.inf, NAN), ()) is not None
    assert interval_range(ends(NAN, NAN), ()) is not None


def test_lookups_are_disjoint_and_in_index_order() -> None:
    bounds = (points(2, 1, 2), points(20, 10), between(5, 6))
    expected = [Lookup(prefix, Range(5, True, 6, True)) for prefix in ((1, 10), (1, 20), (2, 10), (2, 20))]
    assert index_lookups(bounds, ()) == expected
    assert index_lookups((), ()) == [Lookup()]
    assert index_lookups((points(1), points()), ()) == []
    assert index_lookups((points(1), between(6, 5)), ()) == []


PARAMETERS = (None, 5, 6)


@pytest.mark.parametrize("low", PARAMETERS)
@pytest.mark.parametrize("high", PARAMETERS)
@pytest.mark.parametrize("low_inclusive", [True, False])
@pytest.mark.parametrize("high_inclusive", [True, False])
def test_compiled_ranges_find_what_others_find(low: Any, high: Any, low_inclusive: bool, high_inclusive: bool) -> None:
    ends = End(Parameter(0, BIGINT), low_inclusive), End(Parameter(1, BIGINT), high_inclusive)
    bounds = (Interval((ends[0],), (ends[1],)),)
    assert compile_lookups(bounds)((low, high)) == index_lookups(bounds, (low, high))


def test_compiled_points_find_what_others_find() -> None:
    for bounds in ((Points((Parameter(0, BIGINT),)),), (Points((Parameter(0, BIGINT),), or_null=True),)):
        for value in PARAMETERS:
            assert compile_lookups(bounds)((value,)) == index_lookups(bounds, (value,))


FIRST, SECOND, THREE = Parameter(0, BIGINT), Parameter(1, BIGINT), Literal(3, BIGINT)


@pytest.mark.parametrize(
    "bounds",
    [
        (),
        (Interval(),),
        (Interval((End(FIRST, False),)),),
        (Interval((), (End(FIRST, True),)),),
        (Interval((End(FIRST, True), End(SECOND, False)), (End(THREE, True),)),),
        (Points((FIRST,)), Points((SECOND,))),
        (Points((FIRST,)), Points((THREE,)), Interval((End(SECOND, True),), (End(THREE, False),))),
        (Points((FIRST, THREE)), Interval((End(SECOND, True),))),
        (Points((), or_null=True), Points((FIRST,))),
    ],
)
def test_compiled_bounds_of_several_columns_find_what_others_find(bounds: tuple[Any, ...]) -> None:
    for values in ((1, 2), (2, 1), (3, 3), (None, 2), (1, None)):
        assert compile_lookups(bounds)(values) == index_lookups(bounds, values)


def test_keys_of_several_columns_are_all_combinations() -> None:
    assert lookup_keys([(points(2, 1, None),)], ()) == [1, 2]
    assert lookup_keys([(points(2, 1), points(7, 7))], ()) == [(1, 7), (2, 7)]
    assert lookup_keys([(points(2, 1), points(None))], ()) == []
    assert lookup_keys([(points(2), points(7)), (points(None), points(3)), (points(2, 1), points(7))], ()) == [
        (2, 7),
        (1, 7),
    ]


def partitions_of(*values: Any, types: tuple[SqlType, ...] = (BIGINT,), partitions: int = 271) -> set[int]:
    return {
        partition_of(hash_values(value if isinstance(value, tuple) else (value,), types), partitions)
        for value in values
    }


MAP = map_of([("id", BIGINT), ("day", DATE), ("x", DOUBLE)], partitions=271)


def pruned(*alternatives: tuple[Any, ...], parameters: tuple[Any, ...] = ()) -> set[int] | None:
    found = pruned_partitions(MAP, Pruning(("id",), alternatives), parameters)
    if found is None:
        return None
    assert sorted(set(found.tolist())) == found.tolist()
    return set(found.tolist())


def test_pruning_by_points_and_ranges() -> None:
    assert pruned((points(1, 2, 1),)) == partitions_of(1, 2)
    assert pruned((points(1),), (points(7),)) == partitions_of(1, 7)
    assert pruned((between(5, 8),)) == partitions_of(5, 6, 7, 8)
    assert pruned((between(5, 8, False, False),)) == partitions_of(6, 7)


def test_null_and_contradictions_touch_no_partition() -> None:
    assert pruned((points(None),)) == set()
    assert pruned((between(8, 5),)) == set()
    assert pruned((between(None, 5),)) == set()
    assert pruned((Points((Parameter(0, BIGINT),)),), parameters=(None,)) == set()


def test_too_many_values_prune_nothing() -> None:
    assert pruned((between(1, 1_000),)) is not None
    assert pruned((between(1, 1_001),)) is None
    assert pruned((points(1),), (between(-(2**63), 2**63 - 1),)) is None
    wide = map_of([("a", BIGINT), ("b", BIGINT)], ("a", "b"), partitions=271)
    hundred, more = between(1, 100), between(1, 101)
    assert pruned_partitions(wide, Pruning(("a", "b"), ((hundred, hundred),)), ()) is not None
    assert MAXIMUM_COMBINATIONS < 100 * 101
    assert pruned_partitions(wide, Pruning(("a", "b"), ((hundred, more),)), ()) is None


def test_zeros_and_nans_lie_in_the_partition_of_their_equals() -> None:
    floats = map_of([("id", DOUBLE)], partitions=271)
    for one, other in ((0.0, -0.0), (NAN, math.copysign(NAN, -1))):
        found = [
            pruned_partitions(floats, Pruning(("id",), ((points(value, type_=DOUBLE),),)), ()) for value in (one, other)
        ]
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].tolist() == found[1].tolist()
