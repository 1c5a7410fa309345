"""Nodes that put rows in order, and the window functions that look along one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED

if TYPE_CHECKING:
    from remuda.expr import Column, Expression
    from remuda.plan.estimate import Estimate
    from remuda.plan.logical import Relation
    from remuda.plan.traits import Collation, Traits
    from remuda.plan.windows import WindowCall


@dataclass(frozen=True, slots=True)
class Sort:
    input: Relation
    collation: Collation
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class TopN:
    """The first `count` rows of the order after `offset`, without sorting the rest."""

    input: Relation
    collation: Collation
    count: Expression
    offset: Expression | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Window:
    input: Relation
    partition: tuple[Column, ...]
    order: Collation
    calls: tuple[WindowCall, ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(call.column for call in self.calls))
