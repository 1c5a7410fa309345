"""Times several functions in turn, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SHORTEST_TURN = 0.005
"""Seconds: a turn makes as many calls as fill it, so that the clock's own cost does not count."""
SECONDS_FOR_EACH = 1.0
FEWEST_TURNS = 3
MOST_TURNS = 200
SLOW_CALL = 2.0
"""Seconds: a function slower than this has one turn beyond its first."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds for one call."""

    minimum: float
    median: float


def interleave(functions: Mapping[str, Callable[[], object]]) -> dict[str, Timing]:
    """The times of each function, from turns taken one after the other.

    Whoever comes first in a round finds the processor's caches full of something else, so every turn begins with a
    call that is not counted, and the order rotates: the same function twice gives the same time twice.
    """
    calls = {name: _calls_in_a_turn(function) for name, function in functions.items()}
    samples: dict[str, list[float]] = {name: [] for name in functions}
    spent = dict.fromkeys(functions, 0.0)
    waiting = dict(functions)
    gc.collect()
    gc.disable()  # a collection would be charged to whoever happens to run
    try:
        for beginning in itertools.count():
            if not waiting:
                break
            order = list(waiting.items())
            at = beginning % len(order)
            for name, function in order[at:] + order[:at]:
                taken = _turn(function, calls[name])
                samples[name].append(taken / calls[name])
                spent[name] += taken
                if _is_enough(samples[name], spent[name]):
                    del waiting[name]
    finally:
        gc.enable()
    return {name: Timing(min(times), statistics.median(times)) for name, times in samples.items()}


def _is_enough(samples: list[float], spent: float) -> bool:
    if samples[0] >= SLOW_CALL:
        return True
    return len(samples) >= FEWEST_TURNS and (spent >= SECONDS_FOR_EACH or len(samples) >= MOST_TURNS)


def _calls_in_a_turn(function: Callable[[], object]) -> int:
    """Also the warm-up: caches, lazily built columns and plans are there before anything is measured."""
    taken = min(_turn(function, 1) for _ in range(2))
    return max(1, round(SHORTEST_TURN / max(taken, 1e-7)))


def _turn(function: Callable[[], object], calls: int) -> float:
    repeated = range(calls)
    if calls > 1:
        function()
    started = time.perf_counter()
    for _ in repeated:
        function()
    return time.perf_counter() - started
