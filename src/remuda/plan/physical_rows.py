"""Nodes that make rows, or change and choose them one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED

if TYPE_CHECKING:
    from remuda.expr import Column, Expression
    from remuda.plan.estimate import Estimate
    from remuda.plan.logical import Assignment, Relation
    from remuda.plan.series import SeriesCall
    from remuda.plan.traits import Traits


@dataclass(frozen=True, slots=True)
class Values:
    columns: tuple[Column, ...]
    rows: tuple[tuple[Expression, ...], ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Filter:
    input: Relation
    condition: Expression
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    input: Relation
    assignments: tuple[Assignment, ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(assignment.column for assignment in self.assignments)


@dataclass(frozen=True, slots=True)
class Expand:
    """Every row of the input once for each of `projections`."""

    input: Relation
    columns: tuple[Column, ...]
    projections: tuple[tuple[Expression, ...], ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Series:
    """Every row of the input once for each value of its series, in their order: the input's order is kept."""

    input: Relation
    call: SeriesCall
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, self.call.column)


@dataclass(frozen=True, slots=True)
class Limit:
    """Passes `count` rows on after skipping `offset`, in whatever order they come, and then stops its input."""

    input: Relation
    count: Expression | None
    offset: Expression | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Union:
    """The inputs' rows, one input after the other or as they come; `sources[i]` are the columns of input i."""

    inputs: tuple[Relation, ...]
    columns: tuple[Column, ...]
    sources: tuple[tuple[Column, ...], ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)
