"""Time several functions in turn, so that other work of the machine meets all of them alike."""

from __future__ import annotations

import gc
import itertools
import resource
import statistics
import time
from typing import TYPE_CHECKING, TypeVar

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Name = TypeVar("Name")

SHORTEST_TURN = 0.005
"""Seconds: a turn makes as many calls as fill it, so that the clock's own cost does not count."""
MOST_TURNS = 200


@dataclass(frozen=True, slots=True)
class Budget:
    """How long each function is measured."""

    seconds: float
    fewest_turns: int
    slow_call: float
    """Seconds: a function slower than this has one turn beyond its first."""

    def is_spent(self, samples: Sequence[Clock], spent: float) -> bool:
        if samples[0].passed >= self.slow_call:
            return True
        return len(samples) >= self.fewest_turns and (spent >= self.seconds or len(samples) >= MOST_TURNS)


FULL = Budget(seconds=1.0, fewest_turns=3, slow_call=5.0)
QUICK = Budget(seconds=0.1, fewest_turns=3, slow_call=3.0)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds for one call."""

    minimum: float
    median: float
    processor: Timing | None = None
    """The same of the processors' time: where nothing else was asked for, in this process and in those that the call
    has started and waited for."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds, as far as they have passed, and as far as processors have worked."""

    passed: float
    worked: float

    @classmethod
    def now(cls, worked: Callable[[], float]) -> Clock:
        return cls(time.perf_counter(), worked())

    def since(self, earlier: Clock, calls: int) -> Clock:
        """Return what each of so many calls took."""
        return Clock((self.passed - earlier.passed) / calls, (self.worked - earlier.worked) / calls)


def worked_here() -> float:
    """Return the seconds that processors have worked for this process and for the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def interleave(
    functions: Mapping[Name, Callable[[], object]], budget: Budget = FULL, worked: Callable[[], float] = worked_here
) -> dict[Name, Timing]:
    """Time each function, in turns taken one after the other.

    The first function of a round finds the processor's caches full of something else, so every turn begins with a
    call that is not counted, and the order rotates: the same function twice gives the same time twice. `worked` tells
    the processors' time where other processes do the work.
    """
    calls = {name: _calls_in_a_turn(function, budget) for name, function in functions.items()}
    samples: dict[Name, list[Clock]] = {name: [] for name in functions}
    spent = dict.fromkeys(functions, 0.0)
    waiting = dict(functions)
    gc.collect()
    gc.disable()  # a collection would be charged to the function that happens to run
    try:
        for beginning in itertools.count():
            if not waiting:
                break
            order = list(waiting.items())
            at = beginning % len(order)
            for name, function in order[at:] + order[:at]:
                samples[name].append(_turn(function, calls[name], worked))
                spent[name] += samples[name][-1].passed * calls[name]
                if budget.is_spent(samples[name], spent[name]):
                    del waiting[name]
    finally:
        gc.enable()
    return {name: _timing(taken) for name, taken in samples.items()}


def _timing(samples: Sequence[Clock]) -> Timing:
    passed, worked = [each.passed for each in samples], [each.worked for each in samples]
    return Timing(min(passed), statistics.median(passed), processor=Timing(min(worked), statistics.median(worked)))


def _calls_in_a_turn(function: Callable[[], object], budget: Budget) -> int:
    """Count the calls of a turn by a warm-up, after which caches, lazily built columns and plans are there."""
    taken = _turn(function, 1, worked_here).passed
    if taken < budget.slow_call:
        taken = min(taken, _turn(function, 1, worked_here).passed)
    return max(1, round(SHORTEST_TURN / max(taken, 1e-7)))


def _turn(function: Callable[[], object], calls: int, worked: Callable[[], float]) -> Clock:
    """Make some calls and return what one of them took."""
    repeated = range(calls)
    if calls > 1:
        function()
    started = Clock.now(worked)
    for _ in repeated:
        function()
    return Clock.now(worked).since(started, calls)
