"""Nodes that compute rows once where several parts of a plan need the same rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED

if TYPE_CHECKING:
    from remuda.expr import Column
    from remuda.plan.estimate import Estimate
    from remuda.plan.logical import Relation
    from remuda.plan.traits import Traits


@dataclass(frozen=True, slots=True)
class Spool:
    """Delivers the rows of its input and keeps them for the `SpoolRead`s of the same number, in the same fragment."""

    input: Relation
    number: int
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class SpoolRead:
    """Delivers the rows of a `Spool` again, as columns of its own: `columns[i]` is column i of the spool."""

    number: int
    columns: tuple[Column, ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)
