"""Print times as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(0.00000412), duration(0.0213), duration(3.5), duration(75)
    ('4.12 µs', '21.3 ms', '3.50 s', '75.0 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms"), (1.0, "s")):
        value = seconds * factor
        if value < 999.5 or unit == "s":
            decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{decimals}f} {unit}"
    raise AssertionError("seconds are the last unit")
