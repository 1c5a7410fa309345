"""A query that reads its own rows: the node that repeats it, and the leaf that stands for what was found last."""

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
class Recursive:
    """Runs its first input once and its second again and again over the rows found last, on the initiator."""

    inputs: tuple[Relation, Relation]
    columns: tuple[Column, ...]
    sources: tuple[tuple[Column, ...], tuple[Column, ...]]
    table: int
    distinct: bool
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class WorkingTable:
    table: int
    columns: tuple[Column, ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)
