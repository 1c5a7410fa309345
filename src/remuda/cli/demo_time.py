"""How the demonstration measures: the best of several runs, more of them where they are short."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LONG_ENOUGH = 0.3
"""Seconds after which a fast function has been run often enough."""
MOST_RUNS = 2_000


def best_of(function: Callable[[], object], runs: int) -> float:
    """At least `runs` runs; after them, more until time is up."""
    best = float("inf")
    begun = time.perf_counter()
    done = 0
    while done < runs or (done < MOST_RUNS and time.perf_counter() - begun < LONG_ENOUGH):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
        done += 1
    return best


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """What a single run returns, and its seconds: for what cannot be done twice."""
    started = time.perf_counter()
    result = function()
    return result, time.perf_counter() - started
