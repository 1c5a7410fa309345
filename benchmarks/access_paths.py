"""Access paths one against another: the engine's choice beside the same query on maps with one index or none.

Each text runs with rare and frequent values of its parameters. The map `every` has all indexes and one cached plan for
a text. The other maps have the same rows and one index each, or none, so that the best of them is what a perfect choice
of one index takes. The texts run in turn, and the least processor time of each counts. A *ratio* is the time on `every`
divided by the best time.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import remuda

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RUNS = 7
RUN_SECONDS = 0.03
"""Each text runs so many times at least, and for so long: the least of a few short runs is still noise."""
WORST = 10
SMALLEST = 20e-6
"""Seconds below which a difference is one of the statement's overhead."""
COLUMNS = (
    "id BIGINT, region VARCHAR, flag BOOLEAN, cust INTEGER, qty INTEGER, amount DOUBLE, made DATE, note VARCHAR,"
    " PRIMARY KEY (id)"
)
INDEXES = {"region": "HASH", "flag": "HASH", "cust": "HASH", "qty": "SORTED", "amount": "SORTED", "made": "SORTED"}
REGIONS = ("EMEA", "LATAM", "APAC", "NONE")
CUSTOMERS = (0, 5, 300, 40_000)
QUANTITIES = ((1, 1), (1, 3), (8, 99), (20, 99))
AMOUNTS = ((0.0, 1000.0), (50.0, 51.0), (700.0, 1000.0), (50.0, 50.001))
FIRST_DAY = dt.date(2020, 1, 1)
DAYS = tuple((FIRST_DAY + dt.timedelta(first), FIRST_DAY + dt.timedelta(last)) for first, last in ((9, 9), (0, 1500)))
CONDITIONS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "region = ?": tuple((region,) for region in REGIONS),
    "flag = ?": ((True,), (False,)),
    "cust = ?": tuple((customer,) for customer in CUSTOMERS),
    "qty BETWEEN ? AND ?": QUANTITIES,
    "amount BETWEEN ? AND ?": AMOUNTS,
    "made BETWEEN ? AND ?": DAYS,
}
EITHER = (("region = ?", "cust = ?"), ("qty BETWEEN ? AND ?", "amount BETWEEN ? AND ?"))
"""Of which one condition must hold: by an index for each, or by a scan."""
PAIRS = (
    ("region = ?", "amount BETWEEN ? AND ?"),
    ("cust = ?", "amount BETWEEN ? AND ?"),
    ("region = ?", "cust = ?"),
    ("flag = ?", "qty BETWEEN ? AND ?"),
    ("qty BETWEEN ? AND ?", "amount BETWEEN ? AND ?"),
    ("flag = ?", "made BETWEEN ? AND ?"),
)
SHAPES = {
    "aggregate": "SELECT COUNT(note), SUM(qty) FROM {map} WHERE {condition}",
    "first by amount": "SELECT * FROM {map} WHERE {condition} ORDER BY amount DESC LIMIT 10",
}
SINGLE_SHAPES = {
    "rows": "SELECT id, amount, note FROM {map} WHERE {condition}",
    "join": "SELECT COUNT(note), SUM(grade) FROM {map} JOIN customers ON cust = customers.number WHERE {condition}",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A text with one value for each parameter; `{map}` stands for the map that it reads."""

    shape: str
    text: str
    values: tuple[Any, ...]
    columns: tuple[str, ...]
    """The indexed columns that it names."""

    @property
    def maps(self) -> tuple[str, ...]:
        """The maps that it runs on: the one with all indexes first, then those with one index of use, or none."""
        return ("every", "no_index", *(f"by_{column}" for column in self.columns))


@dataclass(frozen=True, slots=True)
class Measured:
    case: Case
    seconds: float
    best: float
    best_map: str

    @property
    def ratio(self) -> float:
        return max(self.seconds, SMALLEST) / max(self.best, SMALLEST)


def show(rows: int) -> None:
    with remuda.open() as grid:
        fill(grid, rows)
        measured = [_measure(grid, case) for case in cases()]
    print(f"\naccess paths of {rows:,} rows: {len(measured)} queries with their values")
    for shape in (*SHAPES, *SINGLE_SHAPES, "either"):
        _summarise(shape, [each for each in measured if each.case.shape == shape])
    _summarise("all", measured)
    print(f"\n  {'ratio':>7} {'ms':>9} {'best ms':>9}  best map")
    for each in sorted(measured, key=lambda each: -each.ratio)[:WORST]:
        print(
            f"  {each.ratio:>7.1f} {each.seconds * 1e3:>9.3f} {each.best * 1e3:>9.3f}  {each.best_map:<12}"
            f" {each.case.text.format(map='t')} {[str(value) for value in each.case.values]}"
        )


def cases() -> Iterator[Case]:
    """Yield every condition and pair of conditions with every value, in each shape; and pairs in an OR."""
    for condition, values in CONDITIONS.items():
        for shape, text in (SHAPES | SINGLE_SHAPES).items():
            for given in values:
                yield _case(shape, text, (condition,), given)
    for pair in PAIRS:
        for shape, text in SHAPES.items():
            for one, other in product(*(CONDITIONS[condition] for condition in pair)):
                yield _case(shape, text, pair, (*one, *other))

    for either in EITHER:
        for one, other in product(*(CONDITIONS[condition] for condition in either)):
            yield _case("either", SHAPES["aggregate"], either, (*one, *other), " OR ")


def _case(shape: str, text: str, conditions: tuple[str, ...], values: tuple[Any, ...], between: str = " AND ") -> Case:
    named = {condition.split()[0] for condition in conditions} | ({"amount"} if "ORDER BY amount" in text else set())
    columns = tuple(column for column in INDEXES if column in named)
    return Case(shape, text.replace("{condition}", between.join(conditions)), values, columns)


def fill(grid: remuda.Grid, rows: int) -> None:
    """Load the same rows into every map."""
    made = table(rows)
    fill_map(grid, "every", made, INDEXES)
    fill_map(grid, "no_index", made, {})
    for column, kind in INDEXES.items():
        fill_map(grid, f"by_{column}", made, {column: kind})
    grid.sql("CREATE TABLE customers (number INTEGER, grade INTEGER, PRIMARY KEY (number))")
    numbers = np.arange(100_000, dtype=np.int32)
    grid.load("customers", pa.table({"number": numbers, "grade": numbers % 5}))


def fill_map(grid: remuda.Grid, name: str, rows: pa.Table, indexes: Mapping[str, str]) -> None:
    """Create a map with these rows and an index on each of these columns."""
    grid.sql(f"CREATE TABLE {name} ({COLUMNS})")
    grid.load(name, rows)
    for column, kind in indexes.items():
        grid.sql(f"CREATE INDEX {name}_{column} ON {name} ({column}) TYPE {kind}")


def table(rows: int) -> pa.Table:
    random = np.random.default_rng(23)
    regions = random.choice(["EMEA", "AMER", "LATAM", "APAC"], rows, p=[0.7, 0.25, 0.0499, 0.0001])
    days = random.integers(0, 1_800, rows) + (FIRST_DAY - dt.date(1970, 1, 1)).days
    return pa.table(
        {
            "id": np.arange(rows),
            "region": regions,
            "flag": random.random(rows) < 0.0005,
            "cust": np.minimum(random.zipf(1.2, rows) - 1, 99_999).astype(np.int32),
            "qty": np.minimum(random.geometric(0.3, rows), 99).astype(np.int32),
            "amount": random.exponential(100.0, rows),
            "made": pa.array(days.astype(np.int32)).view(pa.date32()),
            "note": [f"note {number}" for number in random.integers(0, 1_000, rows).tolist()],
        }
    )


def _measure(grid: remuda.Grid, case: Case) -> Measured:
    maps = case.maps
    least = dict.fromkeys(maps, float("inf"))
    runs, end = 0, time.process_time() + RUN_SECONDS * len(maps)
    while runs < RUNS or time.process_time() < end:
        runs += 1
        for name in maps:
            text = case.text.format(map=name)
            start = time.process_time_ns()
            grid.sql(text, *case.values).to_arrow()
            least[name] = min(least[name], (time.process_time_ns() - start) / 1e9)
    best = min(maps, key=least.__getitem__)
    return Measured(case, least["every"], least[best], best)


def _summarise(name: str, measured: list[Measured]) -> None:
    ratios = [each.ratio for each in measured]
    shares = [sum(ratio <= limit for ratio in ratios) / len(ratios) for limit in (1.2, 2.0)]
    print(
        f"  {name:<18} {len(ratios):>4} queries   within 1.2x {shares[0]:>6.1%}   within 2x {shares[1]:>6.1%}"
        f"   worst {max(ratios):>7.1f}x"
    )
