"""The finished plan: the physical tree cut at its exchanges into fragments, and all that running it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.plan import physical
from remuda.plan.traits import Convention
from remuda.plan.walk import inputs, walk, with_inputs

if TYPE_CHECKING:
    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.types import SqlType


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """Which member owns which partitions, as of one version of the partition table."""

    version: int
    owned: tuple[tuple[str, tuple[int, ...]], ...]
    """Pairs of a member's id and its partitions in ascending order; members in their order in the table."""

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(member for member, _ in self.owned)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A tree that runs in one place: fragment 0 on the initiator, all others where their scans are."""

    number: int
    node: physical.PhysicalNode
    convention: Convention

    @property
    def scans(self) -> tuple[physical.ScanNode, ...]:
        return tuple(node for node in walk(self.node) if isinstance(node, physical.ScanNode))


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type: SqlType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """Plain data that pickles. `maps` are the definitions it was made for: it is stale when one is not current."""

    sql: str
    tree: physical.Root
    fragments: tuple[Fragment, ...]
    parameters: tuple[SqlType, ...]
    parameter_names: tuple[str, ...]
    """The names of `:name` parameters, in the order of their numbers; empty where they are written `?`."""
    columns: tuple[ResultColumn, ...]
    maps: tuple[MapDefinition, ...]
    partition_map: PartitionMap
    modifies: MapDefinition | None = None

    @property
    def root(self) -> Fragment:
        return self.fragments[0]

    @property
    def used_indexes(self) -> tuple[IndexDefinition, ...]:
        return tuple(node.index for node in walk(self.tree) if isinstance(node, physical.IndexScan))


def split(tree: physical.Root) -> tuple[Fragment, ...]:
    """Cuts at every exchange: the part above gets a `Receive`, the part below becomes a fragment under a `Send`.

    Root                          FRAGMENT 0            FRAGMENT 1
      RootExchange                Root                  Send[edge=1]
        MapScan          becomes    Receive[edge=1]       MapScan
    """
    fragments: list[Fragment] = []

    def cut(node: physical.PhysicalNode) -> physical.PhysicalNode:
        lower = with_inputs(node, tuple(cut(child) for child in inputs(node)))
        if not isinstance(lower, physical.RootExchange):
            same: physical.PhysicalNode = lower
            return same
        edge = len(fragments) + 1
        below: physical.PhysicalNode = lower.input  # type: ignore[assignment]
        send = physical.Send(below, edge, below.traits, estimate=below.estimate)
        fragments.append(Fragment(edge, send, below.traits.convention))
        return physical.Receive(lower.columns, edge, lower.traits.collation, lower.traits, estimate=lower.estimate)

    top = cut(tree)
    return (Fragment(0, top, Convention.LOCAL), *fragments)
