"""Joins beside forced orders: the engine's plan of a join, and every other order and way of its two-way joins.

A forced plan joins the relations in the order of its text, by the ways that are not disabled: hashed with the right or
the left side held, looked up, merged, or whatever costs least. All plans of a join run in turn, and the least processor
time of each counts. A *ratio* is the time of the engine's plan divided by the best time.

No scan is shared by workers: plans differ in that as well, and how much processor time workers take that wait for each
other depends on the machine, and says nothing of the order of a join.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import remuda
from benchmarks.access_paths import RUNS, SMALLEST
from benchmarks.join_cases import fill, joins
from remuda import sql
from remuda.errors import SqlError
from remuda.grid.plan_cache import CachedPlan
from remuda.grid.rows import RowShape
from remuda.optimizer.populate import EXPLORE_RULE
from remuda.plan.explain import explain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.join_cases import Join

WAYS = (
    frozenset[str](),
    frozenset({"hash_join", "lookup_join", "merge_join"}),
    frozenset({"commuted_hash_join", "lookup_join", "merge_join"}),
    frozenset({"hash_join", "commuted_hash_join", "merge_join"}),
    frozenset({"hash_join", "commuted_hash_join", "lookup_join"}),
)
"""What is disabled: nothing, or all but one way to join."""
GROUPINGS = (frozenset[str](), frozenset({"aggregate_below_join"}))
"""Where there are groups: what puts them below a join is disabled or not."""
FIRST_RUNS = 3
ROUNDS = ((1.5, 0.06), (1.15, 0.4))
"""Which plans run on, by how many times the best time they take, and for how many seconds each. The second round is for
joins whose own plan seems slower than the best one: of many plans one is the best by chance."""
DOUBTFUL = 1.1


@dataclass(frozen=True, slots=True)
class Plan:
    text: str
    """By which the plan cache finds it."""
    values: tuple[Any, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    plans: int
    seconds: float
    best: float
    best_plan: str

    @property
    def ratio(self) -> float:
        return max(self.seconds, SMALLEST) / max(self.best, SMALLEST)


def show(rows: int) -> None:
    with remuda.open() as grid:
        grid.engine.scheduler.parallelism = 1
        fill(grid, rows)
        head = f"joins beside forced orders, {rows:,} rows"
        print(f"\n{head:<42} {'plans':>5} {'ms':>9} {'best ms':>9} {'ratio':>6}  best plan")
        measured = []
        for join in joins():
            for found in _measure(grid, own_plans(join), forced_plans(grid, join)):
                measured.append(found)
                print(
                    f"  {found.name:<40} {found.plans:>5} {found.seconds * 1e3:>9.3f} {found.best * 1e3:>9.3f}"
                    f" {found.ratio:>6.2f}  {found.best_plan}",
                    flush=True,
                )
    ratios = [each.ratio for each in measured]
    shares = [sum(ratio <= limit for ratio in ratios) / len(ratios) for limit in (1.2, 2.0)]
    print(f"  {len(ratios)} joins: within 1.2x {shares[0]:.1%}   within 2x {shares[1]:.1%}   worst {max(ratios):.1f}x")


def own_plans(join: Join) -> list[Plan]:
    """Return the join as the engine plans it: with its values written out, and with parameters where it has some."""
    own = [Plan(join.with_literals().text(), (), join.name)]
    return [*own, Plan(join.text(), join.values, f"{join.name} (?)")] if join.values else own


def forced_plans(grid: remuda.Grid, join: Join) -> list[Plan]:
    """Return every other plan of the join with its values written out, named by what was forced.

    The plan cache keeps them under their texts, which end in different comments.
    """
    written = join.with_literals()
    found: list[Plan] = []
    seen = {str(grid.explain(written.text()))}
    groupings = GROUPINGS if join.tail.startswith("GROUP") else GROUPINGS[:1]
    for order, ways, grouping in product((None, *permutations(join.relations)), WAYS, groupings):
        text = written.ordered(order)
        if text is None:
            continue
        text = f"{text} -- forced {len(found)}"
        disabled = ways | grouping
        explained = _force(grid, text, disabled if order is None else disabled | {EXPLORE_RULE})
        if explained is None or explained in seen:
            continue
        seen.add(explained)
        names = [rule.replace("_", " ") for rule in sorted(disabled)]
        found.append(Plan(text, (), ", no ".join((" ".join(order or ("any order",)), *names))))
    return found


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


def _measure(grid: remuda.Grid, own: Sequence[Plan], forced: Sequence[Plan]) -> Iterator[Measured]:
    plans = [*own, *forced]
    least = dict.fromkeys(plans, float("inf"))
    _run(grid, plans, least, 0.0, FIRST_RUNS)
    for limit, seconds in ROUNDS:
        best = min(least.values())
        contenders = [plan for plan in plans if plan in own or least[plan] <= limit * best]
        if all(least[plan] <= DOUBTFUL * best for plan in own) and seconds != ROUNDS[0][1]:
            break
        _run(grid, contenders, least, seconds * len(contenders), RUNS)
    fastest = min(least, key=least.__getitem__)
    for plan in own:
        yield Measured(plan.name, len(least), least[plan], least[fastest], fastest.name)


def _run(grid: remuda.Grid, plans: Sequence[Plan], least: dict[Plan, float], seconds: float, runs: int) -> None:
    """Run plans in turn, so often and for so long at least."""
    end = time.process_time() + seconds
    while runs > 0 or time.process_time() < end:
        runs -= 1
        for plan in plans:
            start = time.process_time_ns()
            grid.sql(plan.text, *plan.values).to_arrow()
            least[plan] = min(least[plan], (time.process_time_ns() - start) / 1e9)
