"""Traits: `satisfies` is a partial order with an "any", and an order of rows satisfies its prefixes."""

from __future__ import annotations

from itertools import product

import pytest

from remuda.plan.traits import (
    ANY_DISTRIBUTION,
    PARTITIONED,
    REPLICATED,
    ROOT,
    Collation,
    Convention,
    Distribution,
    DistributionKind,
    SortKey,
    Traits,
    collation_satisfies,
)

BY_ONE = Distribution(DistributionKind.PARTITIONED, (1,))
BY_TWO = Distribution(DistributionKind.PARTITIONED, (1, 2))
DISTRIBUTIONS = [ANY_DISTRIBUTION, ROOT, PARTITIONED, BY_ONE, BY_TWO, REPLICATED]
COLLATIONS: list[Collation] = [
    (),
    (SortKey(1),),
    (SortKey(1), SortKey(2)),
    (SortKey(1, descending=True, nulls_first=False),),
    (SortKey(1, nulls_first=False),),
    (SortKey(2),),
]
TRAITS = [
    Traits(convention, distribution, collation)
    for convention, distribution, collation in product((Convention.LOCAL, Convention.SPARK), DISTRIBUTIONS, COLLATIONS)
]

SATISFIED = {
    ANY_DISTRIBUTION: {ANY_DISTRIBUTION},
    ROOT: {ANY_DISTRIBUTION, ROOT},
    PARTITIONED: {ANY_DISTRIBUTION, PARTITIONED},
    BY_ONE: {ANY_DISTRIBUTION, PARTITIONED, BY_ONE},
    BY_TWO: {ANY_DISTRIBUTION, PARTITIONED, BY_TWO},
    REPLICATED: {ANY_DISTRIBUTION, ROOT, REPLICATED},
}


@pytest.mark.parametrize("delivered", DISTRIBUTIONS, ids=str)
def test_which_distribution_satisfies_which(delivered: Distribution) -> None:
    """Replicated rows are not partitioned ones: each member would process all of them."""
    assert {required for required in DISTRIBUTIONS if delivered.satisfies(required)} == SATISFIED[delivered]


def test_an_order_satisfies_its_prefixes_alone() -> None:
    one, two = COLLATIONS[1], COLLATIONS[2]
    assert collation_satisfies(two, one)
    assert not collation_satisfies(one, two)
    for collation in COLLATIONS:
        assert collation_satisfies(collation, ())
        assert collation_satisfies(collation, collation)
    for different in COLLATIONS[3:]:
        assert not collation_satisfies(different, one)
        assert not collation_satisfies(one, different)


def test_satisfies_is_a_partial_order() -> None:
    below = {traits: {other for other in TRAITS if traits.satisfies(other)} for traits in TRAITS}
    for traits, satisfied in below.items():
        assert traits in satisfied
        assert all(traits not in below[other] for other in satisfied - {traits})
        assert all(below[other] <= satisfied for other in satisfied)


def test_nothing_in_one_backend_satisfies_another() -> None:
    for traits, other in product(TRAITS, TRAITS):
        if traits.convention is not other.convention:
            assert not traits.satisfies(other)


def test_how_traits_are_printed() -> None:
    assert str(Traits(Convention.LOCAL, ROOT)) == "[ROOT]"
    assert str(Traits(Convention.SPARK, BY_ONE, COLLATIONS[1])) == "[PARTITIONED, SPARK]"
