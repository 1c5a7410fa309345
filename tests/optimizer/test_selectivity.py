"""Shares of rows, from histograms, extremes and numbers of values; and the rows of joins and groups."""

from __future__ import annotations

import pytest

from remuda.catalog import ColumnStatistics, Histogram, MapStatistics
from remuda.optimizer.estimates.selectivity import of_map, selectivity
from remuda.plan.joins import JoinKind
from tests.optimizer.join_trees import Shop, column, equal, join
from tests.optimizer.maps import define, filter_of

MAP = define()
SKEWED = Histogram.even((0, 2, 4, 8, 16, 32, 1000))
"""Of three quarters of the rows: the others are 1."""
STATISTICS = MapStatistics(
    1000,
    {
        "f": ColumnStatistics(distinct=100, minimum=0, maximum=1000, histogram=SKEWED, common=((1, 0.25),)),
        "g": ColumnStatistics(distinct=10, null_share=0.5, minimum=0, maximum=100),
        "a": ColumnStatistics(distinct=40),
        "b": ColumnStatistics(distinct=8),
        "flag": ColumnStatistics(2, 0.01, minimum=False, maximum=True, common=((False, 0.95), (True, 0.04))),
        "s": ColumnStatistics(
            distinct=1000, minimum="a", maximum="z", histogram=Histogram.even(("a", "c", "m", "q", "z"))
        ),
    },
)
FEW_TEXTS = MapStatistics(
    1000,
    {
        "s": ColumnStatistics(3, 0.1, "blue", "red", common=(("red", 0.5), ("blue", 0.3), ("green", 0.1))),
        "flag": ColumnStatistics(2, 0.01, minimum=False, maximum=True, common=((False, 0.95), (True, 0.04))),
    },
)
OF_FEW_TEXTS = [
    # A condition on one column is asked of its values, and of NULL.
    ("s LIKE '%e%'", 0.9),
    ("s LIKE '%l%'", 0.3),
    ("s NOT LIKE '%l%'", 0.6),
    ("s LIKE 'r%d'", 0.5),
    ("length(s) = 3", 0.5),
    ("coalesce(s, 'red') = 'red'", 0.6),
    ("s = 'pink'", 0.0),
    # Either of two conditions that are independent.
    ("flag OR s = 'red'", 1 - 0.96 * 0.5),
]
ONE = 0.75 / 99
"""The share of one of the values of `f` that are not 1."""
SHARES = [
    # The most common value, and within a range of the histogram in proportion.
    ("f <= 2", 0.25 + 0.75 * 1 / 6),
    ("f < 1", 0.75 * 0.5 / 6 - ONE),
    ("f > 16", 0.75 * 2 / 6),
    ("f >= 16", 0.75 * 2 / 6 + ONE),
    ("f BETWEEN 2 AND 6", 0.75 * 1.5 / 6 + ONE),
    ("f > 1000", 0.0),
    ("f >= 1001", 0.0),
    ("f >= 1000", ONE),
    ("f < 0", 0.0),
    # A range of one value is as large as the value.
    ("f BETWEEN 5 AND 5", ONE),
    ("f BETWEEN 1 AND 1", 0.25 + ONE),
    # A value that is common, one that is not, and one beyond the ends.
    ("f = 1", 0.25),
    ("f = 5", ONE),
    ("f = 2000", 0.0),
    ("f = ?", 1 / 100),
    ("f <> 1", 0.75),
    ("f <> 5", 1 - ONE),
    ("f IN (1, 5, 6)", 0.25 + 2 * ONE),
    # A flag that is rarely set, and rarely unknown.
    ("flag", 0.04),
    ("NOT flag", 0.95),
    ("flag IS NOT FALSE", 0.05),
    ("f < 1 OR f > 16", 0.75 * 2.5 / 6 - ONE),
    # Only the extremes are known, and half of the rows have no value.
    ("g < 25", (0.25 - 0.1) * 0.5),
    ("g <= 25", 0.25 * 0.5),
    ("g IS NULL", 0.5),
    ("g IS NOT NULL", 0.5),
    ("g = 3", 0.5 / 10),
    # Two columns.
    ("a = b", 1 / 40),
    ("a <> b", 1 - 1 / 40),
    ("a < b", 0.5),
    # Strings.
    ("s > 'm'", 0.5),
    ("s LIKE 'm%'", 0.0625),
    # Nothing known: the fixed shares.
    ("c = 5", 0.15),
    ("c > 5", 0.5),
    ("c IS NOT NULL", 0.9),
    ("c + 1 = 7", 0.25),
    ("c = 5 AND c + 1 = 7", 0.15 * 0.25),
]


@pytest.mark.parametrize(("condition", "expected"), SHARES, ids=[case[0] for case in SHARES])
def test_the_share_of_rows_that_a_condition_keeps(condition: str, expected: float) -> None:
    assert selectivity(filter_of(condition, MAP), of_map(STATISTICS)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("condition", "expected"), OF_FEW_TEXTS, ids=[case[0] for case in OF_FEW_TEXTS])
def test_the_share_of_rows_where_all_values_are_known(condition: str, expected: float) -> None:
    assert selectivity(filter_of(condition, MAP), of_map(FEW_TEXTS)) == pytest.approx(expected, abs=1e-9)


def rows(shop: Shop, tree: object) -> float:
    return shop.plan(tree).tree.estimate.rows


def test_rows_of_joins() -> None:
    """Every order finds its customer; a filter on customers leaves as many orders as it leaves customers."""
    shop = Shop()
    orders = shop.scan("orders", 10_000, {"customer": 500})
    customers = shop.scan("customers", 500, {"country": 25})
    on = equal(column(orders, "customer"), column(customers, "id"))
    assert rows(shop, join(orders, customers, on)) == pytest.approx(10_000)
    assert rows(shop, join(orders, customers, on, kind=JoinKind.LEFT)) == pytest.approx(10_000)
    assert rows(shop, join(orders, customers, on, kind=JoinKind.SEMI)) == pytest.approx(10_000)
    assert rows(shop, join(orders, customers)) == pytest.approx(10_000 * 500)
    by_country = equal(column(customers, "country"), column(orders, "customer"))
    assert rows(shop, join(customers, orders, by_country)) == pytest.approx(500 * 10_000 / 500)


def test_a_key_of_two_columns_is_found_once() -> None:
    """Not 1 / (200 × 50) of the pairs as if both columns were independent keys of their own."""
    shop = Shop()
    lines = shop.scan("lines", 60_000, {"part": 200, "supplier": 50})
    offers = shop.scan("offers", 800, {"part": 200, "supplier": 50}, key=("part", "supplier"))
    on = [equal(column(lines, name), column(offers, name)) for name in ("part", "supplier")]
    assert rows(shop, join(lines, offers, *on)) == pytest.approx(60_000)


def test_equally_named_columns_of_two_maps_stay_apart() -> None:
    shop = Shop()
    many, few = shop.scan("many", 10_000, {"x": 5_000}), shop.scan("few", 10_000, {"x": 2})
    same = equal(column(many, "id"), column(few, "id"))
    both = equal(column(many, "x"), column(many, "id"))
    assert rows(shop, join(many, few, same, both)) == pytest.approx(1)
    other = equal(column(few, "x"), column(few, "id"))
    assert rows(shop, join(many, few, same, other)) == pytest.approx(1)
