"""What a node is expected to deliver and to cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """`rows` that come out, and the cost of everything up to here, in units of `optimizer.cost`."""

    rows: float = 0.0
    cost: float = 0.0


UNPRICED = Estimate()
"""What a node has before the optimizer has priced it."""
