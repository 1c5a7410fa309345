"""Nodes that make groups, in one step or in two."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED

if TYPE_CHECKING:
    from remuda.expr import Column
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.estimate import Estimate
    from remuda.plan.logical import Relation
    from remuda.plan.traits import Traits


class Phase(Enum):
    """COMPLETE does all of it in one place; PARTIAL leaves states that FINAL merges."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FINAL = "final"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class HashAggregate:
    """`states` has, for each call, the columns of its partial results: what PARTIAL delivers and FINAL takes."""

    input: Relation
    keys: tuple[Column, ...]
    calls: tuple[AggregateCall, ...]
    states: tuple[tuple[Column, ...], ...]
    phase: Phase
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        if self.phase is Phase.PARTIAL:
            return (*self.keys, *(column for state in self.states for column in state))
        return (*self.keys, *(call.column for call in self.calls))


@dataclass(frozen=True, slots=True)
class StreamingAggregate:
    """Aggregates rows that come in an order of all `keys`: one group after the other, delivered in that order."""

    input: Relation
    keys: tuple[Column, ...]
    calls: tuple[AggregateCall, ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.keys, *(call.column for call in self.calls))
