"""Joins beside forced orders: the engine's plan of a join, and every other order and way of its two-way joins.

A forced plan joins the relations in the order of its text, by the ways that are not disabled: hashed with the right or
the left side held, looked up, or whatever costs least. All plans of a join run in turn, and the least processor time of
each counts. A *ratio* is the time of the engine's plan divided by the best time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import remuda
from benchmarks import access_paths
from benchmarks.access_paths import RUN_SECONDS, RUNS, SMALLEST
from remuda import sql
from remuda.errors import SqlError
from remuda.grid.plan_cache import CachedPlan
from remuda.grid.rows import RowShape
from remuda.optimizer.populate import EXPLORE_RULE
from remuda.plan.explain import explain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WAYS = (
    frozenset[str](),
    frozenset({"hash_join", "lookup_join"}),
    frozenset({"commuted_hash_join", "lookup_join"}),
    frozenset({"hash_join", "commuted_hash_join"}),
)
"""What is disabled: nothing, or all but one way to join."""
OTHERS = (
    "CREATE TABLE buyers (number INTEGER, grade INTEGER, zone INTEGER, PRIMARY KEY (number))",
    "CREATE TABLE zones (zone INTEGER, name VARCHAR, PRIMARY KEY (zone))",
    "CREATE TABLE visits (id BIGINT, buyer INTEGER, day INTEGER, PRIMARY KEY (id))",
    "CREATE INDEX visits_buyer ON visits (buyer) TYPE HASH",
)


@dataclass(frozen=True, slots=True)
class Join:
    name: str
    relations: Mapping[str, str]
    """Of each alias the map."""
    conditions: tuple[str, ...]
    """Equalities between two aliases."""
    filter: str
    values: tuple[Any, ...] = ()
    calls: str = "COUNT(*)"

    def text(self, order: Sequence[str] | None = None) -> str | None:
        """Return the statement with the relations in an order; None where one of them would meet no condition."""
        first, *others = order or tuple(self.relations)
        clauses, joined, left = [f"{self.relations[first]} AS {first}"], {first}, list(self.conditions)
        for alias in others:
            joined.add(alias)
            own = [each for each in left if _aliases(each) <= joined]
            if not own:
                return None
            left = [each for each in left if each not in own]
            clauses.append(f"{self.relations[alias]} AS {alias} ON {' AND '.join(own)}")
        return f"SELECT {self.calls} FROM {' JOIN '.join(clauses)} WHERE {self.filter}"


def _aliases(condition: str) -> set[str]:
    return {side.split(".")[0] for side in condition.split(" = ")}


TWO = {"f": "every", "b": "buyers"}
OF_BUYER = ("f.cust = b.number",)
JOINS = (
    Join("a rare value", TWO, OF_BUYER, "f.region = 'APAC'", calls="COUNT(f.note), SUM(b.grade)"),
    Join("a value of one in twenty", TWO, OF_BUYER, "f.region = 'LATAM'", calls="COUNT(f.note), SUM(b.grade)"),
    Join("a frequent value", TWO, OF_BUYER, "f.region = 'EMEA'", calls="COUNT(f.note), SUM(b.grade)"),
    Join("a parameter, rare", TWO, OF_BUYER, "f.region = ?", ("APAC",), "COUNT(f.note), SUM(b.grade)"),
    Join("a parameter, frequent", TWO, OF_BUYER, "f.region = ?", ("EMEA",), "COUNT(f.note), SUM(b.grade)"),
    Join("buyers who buy often", TWO, OF_BUYER, "b.number < 3", calls="COUNT(f.note)"),
    Join("buyers who buy seldom", TWO, OF_BUYER, "b.number BETWEEN 40000 AND 40100", calls="COUNT(f.note)"),
    Join("a fifth of the buyers", TWO, OF_BUYER, "b.grade = 2", calls="SUM(f.amount)"),
    Join(
        "three in a row", TWO | {"z": "zones"}, (*OF_BUYER, "b.zone = z.zone"), "z.name = 'zone 7'", calls="SUM(f.qty)"
    ),
    Join(
        "two facts of one buyer",
        TWO | {"v": "visits"},
        (*OF_BUYER, "v.buyer = b.number"),
        "v.day = 17 AND f.amount > 400",
        calls="COUNT(*), SUM(b.grade)",
    ),
    Join("by the keys of both", {"f": "every", "v": "visits"}, ("f.id = v.id",), "v.day < 3", calls="SUM(f.amount)"),
    Join(
        "with itself",
        {"f": "every", "g": "every"},
        ("f.cust = g.cust",),
        "f.qty > 24 AND g.amount > 600",
        calls="COUNT(*)",
    ),
)


@dataclass(frozen=True, slots=True)
class Measured:
    join: Join
    seconds: float
    best: float
    best_plan: str

    @property
    def ratio(self) -> float:
        return max(self.seconds, SMALLEST) / max(self.best, SMALLEST)


def show(rows: int) -> None:
    with remuda.open() as grid:
        fill(grid, rows)
        head = f"joins beside forced orders, {rows:,} rows"
        print(f"\n{head:<38} {'plans':>5} {'ms':>9} {'best ms':>9} {'ratio':>6}  best plan")
        measured = []
        for join in JOINS:
            texts = plans(grid, join)
            found = _measure(grid, join, texts)
            measured.append(found)
            print(
                f"  {join.name:<36} {len(texts):>5} {found.seconds * 1e3:>9.3f} {found.best * 1e3:>9.3f}"
                f" {found.ratio:>6.2f}  {found.best_plan}",
                flush=True,
            )
    ratios = [each.ratio for each in measured]
    shares = [sum(ratio <= limit for ratio in ratios) / len(ratios) for limit in (1.2, 2.0)]
    print(f"  within 1.2x {shares[0]:.1%}   within 2x {shares[1]:.1%}   worst {max(ratios):.1f}x")


def fill(grid: remuda.Grid, rows: int) -> None:
    access_paths.fill_map(grid, "every", access_paths.table(rows), access_paths.INDEXES)
    for text in OTHERS:
        grid.sql(text)
    numbers = np.arange(100_000, dtype=np.int32)
    grid.load("buyers", pa.table({"number": numbers, "grade": numbers % 5, "zone": numbers % 50}))
    zones = np.arange(50, dtype=np.int32)
    grid.load("zones", pa.table({"zone": zones, "name": [f"zone {number}" for number in zones.tolist()]}))
    random = np.random.default_rng(29)
    visits = max(1, rows // 5)
    grid.load(
        "visits",
        pa.table(
            {
                "id": np.arange(visits) * 3,
                "buyer": random.integers(0, 100_000, visits).astype(np.int32),
                "day": random.integers(0, 365, visits).astype(np.int32),
            }
        ),
    )


def plans(grid: remuda.Grid, join: Join) -> dict[str, str]:
    """Return a text for each plan of a join, the engine's own first, with what was forced.

    The plan cache keeps the others under their texts, which end in different comments.
    """
    own = join.text()
    assert own is not None
    texts, seen = {own: "the engine's"}, {grid.explain(own)}
    for order, disabled in product(permutations(join.relations), WAYS):
        text = join.text(order)
        if text is None:
            continue
        text = f"{text} -- forced {len(texts)}"
        explained = _force(grid, text, disabled | {EXPLORE_RULE})
        if explained is None or explained in seen:
            continue
        seen.add(explained)
        texts[text] = " ".join(order) + "".join(f", no {rule.replace('_', ' ')}" for rule in sorted(disabled))
    return texts


def _force(grid: remuda.Grid, text: str, disabled: frozenset[str]) -> str | None:
    """Keep the plan of a text with rules disabled; return it as EXPLAIN prints it, or None where there is no plan."""
    session = grid.default_session
    planner = session.planner(disabled_rules=disabled)
    query = sql.parse(text)
    assert isinstance(query, sql.Query)
    try:
        plan = planner.plan(text, query)
    except (SqlError, AssertionError):
        return None
    kept = session.engine.plans
    kept.add((planner.scope, text), CachedPlan(plan, RowShape(plan.columns), None, kept.epoch))
    return explain(plan.tree)


def _measure(grid: remuda.Grid, join: Join, texts: Mapping[str, str]) -> Measured:
    least = dict.fromkeys(texts, float("inf"))
    runs, end = 0, time.process_time() + RUN_SECONDS * len(texts)
    while runs < RUNS or time.process_time() < end:
        runs += 1
        for text in texts:
            start = time.process_time_ns()
            grid.sql(text, *join.values).to_arrow()
            least[text] = min(least[text], (time.process_time_ns() - start) / 1e9)
    best = min(texts, key=least.__getitem__)
    return Measured(join, next(iter(least.values())), least[best], texts[best])
