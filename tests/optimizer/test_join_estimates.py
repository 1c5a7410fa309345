"""How many rows joins and groups are expected to have, beside how many they have: never four times too many or few."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.catalog import ColumnStatistics, Histogram
from remuda.optimizer.estimates.aggregate_columns import moments_of

LINES = 80_000
MOST = 4.0

TABLES = (
    "CREATE TABLE days (day BIGINT, year INTEGER, month INTEGER, week BIGINT, PRIMARY KEY (day))",
    "CREATE TABLE people (person BIGINT, name VARCHAR, given VARCHAR, town INTEGER, size INTEGER, PRIMARY KEY(person))",
    "CREATE TABLE orders (o BIGINT, person BIGINT, PRIMARY KEY (o))",
    """
    CREATE TABLE lines (
        o BIGINT, n INTEGER, person BIGINT, day BIGINT, qty INTEGER, price DECIMAL(9, 2), PRIMARY KEY (o, n)
    ) PARTITION BY (o)
    """,
    """
    CREATE TABLE sales (
        ticket BIGINT, n INTEGER, buyer BIGINT, day BIGINT, item INTEGER, payer BIGINT, PRIMARY KEY (ticket, n)
    )
    """,
)


@pytest.fixture(scope="module")
def grid() -> Iterator[remuda.Grid]:
    random = np.random.default_rng(3)
    with remuda.open() as grid:
        for text in TABLES:
            grid.sql(text)
        days = np.arange(20_000)
        grid.load(
            "days",
            pa.table(
                {
                    "day": days,
                    "year": (1900 + days // 366).astype("i4"),
                    "month": (days // 31 % 12).astype("i4"),
                    "week": days // 7,
                }
            ),
        )
        people = np.arange(2_000)
        grid.load(
            "people",
            pa.table(
                {
                    "person": people,
                    "name": [f"n{each}" for each in random.integers(0, 700, 2_000)],
                    "given": [f"g{each}" for each in random.integers(0, 300, 2_000)],
                    "town": (people % 40).astype("i4"),
                    "size": (people % 8).astype("i4"),
                }
            ),
        )
        orders = np.arange(LINES) // 4
        grid.load("orders", pa.table({"o": np.arange(40_000), "person": np.arange(40_000) % 2_000}))
        grid.load(
            "lines",
            pa.table(
                {
                    "o": orders,
                    "n": (np.arange(LINES) % 4).astype("i4"),
                    "person": random.integers(0, 2_000, LINES),
                    "day": random.integers(10_000, 12_000, LINES),
                    "qty": random.integers(1, 51, LINES).astype("i4"),
                    "price": pa.array(random.integers(100, 90_000, LINES)).cast(pa.decimal128(19, 0)),
                }
            ),
        )
        tickets = np.arange(40_000) // 10
        grid.load(
            "sales",
            pa.table(
                {
                    "ticket": tickets,
                    "n": (np.arange(40_000) % 10).astype("i4"),
                    "buyer": random.integers(0, 2_000, 4_000)[tickets],
                    "day": random.integers(10_000, 12_000, 4_000)[tickets],
                    "item": random.integers(0, 500, 40_000).astype("i4"),
                    "payer": np.minimum(random.zipf(1.1, 40_000), 50_000),
                }
            ),
        )
        yield grid


FILTERS = {
    "the same column twice": "SELECT 1 FROM people WHERE town IN (1, 2) AND town = 1",
    "points within a range": "SELECT 1 FROM people WHERE town IN (1, 2, 3, 39) AND town > 10",
    "an IN that an OR implies": "SELECT 1 FROM people WHERE town IN (1, 2) AND (town = 1 AND size = 1 OR town = 2)",
}
GROUPS = {
    "columns of one map": "SELECT name, given, town, size FROM lines JOIN people USING (person) GROUP BY ALL",
    "few rows of many values": "SELECT person FROM lines WHERE day < 10010 GROUP BY person",
    "a sum that some groups reach": "SELECT o FROM lines GROUP BY o HAVING SUM(qty) > 130",
    "a sum of decimals": "SELECT o FROM lines GROUP BY o HAVING SUM(price) > 1000",
    "a sum that most groups reach": "SELECT o FROM lines GROUP BY o HAVING SUM(qty) > 50",
    "a count that many groups reach": "SELECT person FROM lines GROUP BY person HAVING COUNT(*) > 44",
    "a count that all groups have": "SELECT o FROM lines GROUP BY o HAVING COUNT(*) > 1",
    "an average": "SELECT person FROM lines GROUP BY person HAVING AVG(qty) BETWEEN 24 AND 27",
    "an extreme": "SELECT person FROM lines GROUP BY person HAVING MIN(qty) < 60",
    "buyers of few days": "SELECT buyer FROM sales WHERE day < 10100 GROUP BY buyer",
    "buyers of a year": "SELECT buyer FROM sales JOIN days USING (day) WHERE year = 1930 GROUP BY buyer",
    "names of the buyers of a year": (
        "SELECT name, given, town FROM sales JOIN people ON buyer = person JOIN days USING (day) WHERE year = 1930 "
        "GROUP BY ALL"
    ),
    "days of the buyers of a town": (
        "SELECT day FROM sales WHERE buyer IN (SELECT person FROM people WHERE town = 7) GROUP BY day"
    ),
    "buyers of few items, of which each line has its own": "SELECT buyer FROM sales WHERE item < 25 GROUP BY buyer",
    "payers of an item, of whom few pay most": "SELECT payer FROM sales WHERE item = 7 GROUP BY payer",
}
JOINS = {
    "rows of few orders": "SELECT 1 FROM orders JOIN lines USING (o) WHERE orders.person < 100",
    "days of years in an OR": (
        "SELECT 1 FROM lines JOIN days USING (day) WHERE year = 1930 OR (year = 1929 AND month = 11)"
    ),
    "groups by what has one value": (
        "SELECT 1 FROM (SELECT person, year, SUM(qty) AS s FROM lines JOIN days USING (day) WHERE year = 1930 "
        "GROUP BY person, year) AS a JOIN (SELECT person, year, SUM(qty) AS s FROM lines JOIN days USING (day) "
        "WHERE year = 1931 GROUP BY person, year) AS b ON a.person = b.person"
    ),
    "combinations that two sides have": (
        "SELECT name, given, day FROM lines JOIN people USING (person) WHERE qty < 10 INTERSECT "
        "SELECT name, given, day FROM lines JOIN people USING (person) WHERE qty > 40"
    ),
    "an OR over both sides": (
        "SELECT 1 FROM lines JOIN people ON lines.person = people.person AND "
        "(town = 1 AND qty BETWEEN 1 AND 5 OR town = 2 AND qty BETWEEN 11 AND 15)"
    ),
    "few values of a range": "SELECT 1 FROM lines WHERE person IN (SELECT person FROM people ORDER BY size LIMIT 10)",
    "buyers of two years": (
        "SELECT 1 FROM (SELECT name, person, COUNT(*) AS c FROM sales JOIN people ON buyer = person "
        "JOIN days USING (day) WHERE year = 1930 GROUP BY name, person) AS a JOIN "
        "(SELECT person, COUNT(*) AS c FROM sales JOIN people ON buyer = person JOIN days USING (day) "
        "WHERE year = 1931 GROUP BY person) AS b ON a.person = b.person"
    ),
    "people who bought in a year": (
        "SELECT 1 FROM people WHERE EXISTS "
        "(SELECT 1 FROM sales JOIN days USING (day) WHERE year = 1930 AND buyer = person)"
    ),
    "days that a sub-query picks": (
        "SELECT 1 FROM sales WHERE day IN (SELECT day FROM days WHERE week = (SELECT week FROM days WHERE day = 11000))"
    ),
    "the lowest price of each": (
        "SELECT 1 FROM lines JOIN (SELECT o, MIN(price) AS least FROM lines GROUP BY o) AS m "
        "ON lines.o = m.o AND price = least"
    ),
    "a shifted value": (
        "SELECT 1 FROM (SELECT month + 1 AS m FROM days WHERE year = 1930) AS a JOIN "
        "(SELECT month FROM days WHERE year = 1931) AS b ON a.m = b.month"
    ),
    "the greatest sum": (
        "SELECT 1 FROM (SELECT person, SUM(qty) AS s FROM lines GROUP BY person) AS a JOIN "
        "(SELECT MAX(s) AS most FROM (SELECT person, SUM(qty) AS s FROM lines GROUP BY person) AS c) AS b ON s = most"
    ),
}


QUERIES = {**FILTERS, **GROUPS, **JOINS}


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_estimates_are_not_four_times_off(grid: remuda.Grid, text: str) -> None:
    ((plan,),) = grid.sql(f"EXPLAIN (FORMAT JSON) {text}").fetchall()
    ((rows,),) = grid.sql(f"SELECT COUNT(*) FROM ({text}) AS q").fetchall()
    expected, actual = max(1.0, json.loads(plan)["plan"]["estimated_rows"]), max(1, rows)
    assert max(expected / actual, actual / expected) < MOST, (expected, actual)


def test_moments_of_a_column() -> None:
    even = ColumnStatistics(distinct=100, minimum=0, maximum=100, histogram=Histogram.even((0, 25, 50, 75, 100)))
    moments = moments_of(even)
    assert moments is not None
    assert moments.mean == pytest.approx(50)
    assert moments.variance == pytest.approx(10_000 / 12)
    single = moments_of(ColumnStatistics(distinct=1, minimum=7, maximum=7, common=((7, 1.0),)))
    assert single is not None
    assert (single.mean, single.variance) == (7.0, 0.0)
    for unknown in (
        ColumnStatistics(),
        ColumnStatistics(distinct=2, minimum="a", maximum="b", common=(("a", 0.5), ("b", 0.5))),
        ColumnStatistics(distinct=2, minimum=float("-inf"), maximum=float("inf")),
        ColumnStatistics(distinct=2, minimum=-1.7e308, maximum=1.7e308),
        ColumnStatistics(distinct=1, null_share=1.0),
    ):
        assert moments_of(unknown) is None
