"""The tops of trees: what is written, and what is handed out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED
from remuda.plan.logical import MODIFIED_COUNT

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.expr import Column
    from remuda.plan.estimate import Estimate
    from remuda.plan.logical import Operation, Relation
    from remuda.plan.traits import Traits


@dataclass(frozen=True, slots=True)
class Modify:
    input: Relation
    map: MapDefinition
    operation: Operation
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (MODIFIED_COUNT,)


@dataclass(frozen=True, slots=True)
class Root:
    """Hands the user those columns of the input that are in the result, under their names."""

    input: Relation
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)
