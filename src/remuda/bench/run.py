"""Run the cases: each group at one size, the scans also with NULLs, and a few cases at several sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench import data
from remuda.bench.case import Case, Setting, size_of
from remuda.bench.cases import GROUPS
from remuda.bench.measure import FULL, Budget, Timing, interleave
from remuda.bench.peers import Peers
from remuda.dataclass import dataclass
from remuda.errors import RemudaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WITH_NULLS = ("scan",)
"""The groups that also run over rows with NULLs."""
SPARK = "spark"
START_UP = "start-up"
GROWTH = "growth"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    rows: int
    sizes: tuple[int, ...] = ()
    """Further numbers of rows for the cases that grow."""
    budget: Budget = FULL
    only: str = ""
    """The name of a group, or a part of the name of cases; all if empty."""
    with_spark: bool = True

    def has_group(self, group: str) -> bool:
        if group == SPARK and not self.with_spark:
            return False
        return self.only == group or self.only not in (*GROUPS, GROWTH)

    def has_case(self, group: str, case: Case) -> bool:
        return self.only in ("", group) or self.only.casefold() in case.name.casefold()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One case at one size; None is the timing of a peer that is not installed."""

    group: str
    name: str
    rows: int
    nulls: bool
    timings: dict[str, Timing | None]


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure all cases of the plan, in the order of the report."""
    for group in GROUPS:
        if plan.has_group(group):
            yield from _run_group(plan, group)
    if plan.has_group(GROWTH):
        for size in sorted({*plan.sizes, plan.rows} if plan.sizes else ()):
            yield from _grow(plan, size)


def _run_group(plan: Plan, group: str) -> Iterator[Measurement]:
    settings = [_setting(plan.rows, nulls=nulls) for nulls in ((False, True) if group in WITH_NULLS else (False,))]
    try:
        for cases in zip(*(GROUPS[group](setting) for setting in settings), strict=True):
            if plan.has_case(group, cases[0]):
                yield from _measured(plan, group, cases, plan.rows)
    finally:
        for setting in settings:
            setting.peers.close()


def _grow(plan: Plan, size: int) -> Iterator[Measurement]:
    """Measure anew at each size, the main one included: its neighbours are from the same minutes."""
    setting = _setting(size, nulls=False)
    try:
        for group in ("lookup", "scan", "write"):
            for case in GROUPS[group](setting):
                if case.grows and plan.has_case(GROWTH, case):
                    yield from _measured(plan, GROWTH, [case], size)
    finally:
        setting.peers.close()


def _setting(rows: int, *, nulls: bool) -> Setting:
    made = data.make(rows, nulls=nulls)
    return Setting(made, Peers(made))


def _measured(plan: Plan, group: str, cases: Sequence[Case], rows: int) -> Iterator[Measurement]:
    """Measure a case without NULLs and, where there is one, its form with NULLs in the same turns."""
    asks = {
        (nulls, name): ask
        for nulls, case in enumerate(cases)
        for name, ask in case.contenders.items()
        if ask is not None
    }
    for nulls, case in enumerate(cases):
        if case.same_answers:
            _check_sizes(case.name, {name: size_of(ask()) for (of, name), ask in asks.items() if of == nulls})
    timings = interleave(asks, plan.budget)
    for nulls, case in enumerate(cases):
        found = {name: timings.get((nulls, name)) for name in case.contenders}
        yield Measurement(group, case.name, rows, bool(nulls), found)
        if case.processor:
            worked = {name: timing and timing.processor for name, timing in found.items()}
            yield Measurement(group, f"{case.name}, processor", rows, bool(nulls), worked)


def _check_sizes(name: str, sizes: dict[str, int | None]) -> None:
    if len(set(sizes.values())) > 1:
        raise RemudaError(f"{name}: answers of different size: {sizes}", sqlstate="XX000")
