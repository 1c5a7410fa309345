"""Nodes that bring rows to another place: exchanges, and the two ends of the edge that each of them becomes.

The optimizer puts exchanges into the tree; cutting it into fragments puts a `Send` and a `Receive` in their places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED

if TYPE_CHECKING:
    from remuda.expr import Column
    from remuda.plan.estimate import Estimate
    from remuda.plan.logical import Relation
    from remuda.plan.traits import Collation, Traits


@dataclass(frozen=True, slots=True)
class RootExchange:
    """Brings the rows of all members to the initiator; where the input has an order, the streams are merged in it."""

    input: Relation
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class HashExchange:
    """Brings every row to the member that owns the partition of `keys`: where a map partitioned by them has its rows.

    Partitions are those of the partition table, the hash is that of keys, so both sides of a join agree.
    """

    input: Relation
    keys: tuple[Column, ...]
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class BroadcastExchange:
    """Brings every row to every member."""

    input: Relation
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


ExchangeNode = RootExchange | HashExchange | BroadcastExchange


class Route(Enum):
    """Where the rows of an edge go: to the initiator, to the owner of their keys' partition, to every member."""

    ROOT = "root"
    HASH = "hash"
    BROADCAST = "broadcast"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Send:
    """The top of a fragment that feeds another: one end of an edge. `keys` are what HASH routes by."""

    input: Relation
    edge: int
    traits: Traits
    route: Route = Route.ROOT
    keys: tuple[Column, ...] = ()
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Receive:
    """The other end of an edge: a leaf of the fragment that is fed. With `collation` the streams are merged."""

    columns: tuple[Column, ...]
    edge: int
    collation: Collation
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)
