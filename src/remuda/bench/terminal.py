"""The lines of the terminal: Remuda's time, and each peer's with the ratio of ours to theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench.case import REMUDA
from remuda.presentation.durations import duration

if TYPE_CHECKING:
    from remuda.bench.measure import Timing
    from remuda.bench.run import Measurement

CASE_WIDTH = 44


def heading(rows: int) -> str:
    title = f"{rows:,} rows; best of the run (median)"
    return f"{title:<{CASE_WIDTH}} {REMUDA:>20}   peers, and the ratio of our time to theirs: below 1 Remuda is faster"


def line(measurement: Measurement) -> str:
    """Write a measurement as one line.

    >>> from remuda.bench.measure import Timing
    >>> from remuda.bench.run import Measurement
    >>> timings = {"Remuda": Timing(4e-6, 5e-6), "SQLite": Timing(5e-6, 6e-6), "LMDB": None}
    >>> line(Measurement("lookup", "key", 1000, False, timings))
    'key                                            4.00 µs (5.00 µs)   SQLite 5.00 µs 0.80x   LMDB not installed'
    """
    ours = measurement.timings[REMUDA]
    assert ours is not None, "Remuda is always there"
    times = f"{duration(ours.minimum)} ({duration(ours.median)})"
    peers = [_peer(name, theirs, ours) for name, theirs in measurement.timings.items() if name != REMUDA]
    return f"{label(measurement):<{CASE_WIDTH}} {times:>19}   {'   '.join(peers)}"


def label(measurement: Measurement) -> str:
    """Name the case, with what sets it apart from others of its name."""
    if measurement.group == "growth":
        return f"{measurement.name}, {measurement.rows:,} rows"
    return f"{measurement.name}, NULLs" if measurement.nulls else measurement.name


def _peer(name: str, theirs: Timing | None, ours: Timing) -> str:
    if theirs is None:
        return f"{name} not installed"
    return f"{name} {duration(theirs.minimum)} {ratio(ours.minimum / theirs.minimum)}"


def ratio(value: float) -> str:
    """Write a ratio.

    >>> ratio(0.801), ratio(0.00123), ratio(12.3)
    ('0.80x', '1/813', '12x')
    """
    return f"{value:.0f}x" if value >= 9.5 else f"{value:.2f}x" if value >= 0.1 else f"1/{1 / value:,.0f}"
