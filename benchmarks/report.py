"""The table: Remuda's time, and each peer's with the ratio of ours to theirs. Below 1 Remuda is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.case import REMUDA
from remuda.cli.output import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.measure import Timing

CASE_WIDTH = 36


def heading() -> str:
    return f"{'best of the run (median)':<{CASE_WIDTH}} {REMUDA:>20}   peers, and the ratio of our time to theirs"


def line(name: str, timings: Mapping[str, Timing]) -> str:
    """
    >>> from benchmarks.measure import Timing
    >>> line("key", {"Remuda": Timing(0.000004, 0.000005), "SQLite": Timing(0.000005, 0.000006)})
    'key                                    4.00 µs (5.00 µs)   SQLite 5.00 µs 0.80x'
    """
    ours = timings[REMUDA]
    times = f"{duration(ours.minimum)} ({duration(ours.median)})"
    peers = [
        f"{peer} {duration(theirs.minimum)} {ratio(ours.minimum / theirs.minimum)}"
        for peer, theirs in timings.items()
        if peer != REMUDA
    ]
    return f"{name:<{CASE_WIDTH}} {times:>19}   {'   '.join(peers)}"


def ratio(value: float) -> str:
    """
    >>> ratio(0.801), ratio(0.00123), ratio(12.3)
    ('0.80x', '1/813', '12x')
    """
    return f"{value:.0f}x" if value >= 9.5 else f"{value:.2f}x" if value >= 0.1 else f"1/{1 / value:,.0f}"
