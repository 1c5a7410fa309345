"""The finished plan: the physical tree cut at its exchanges into fragments, and all that running it takes."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.plan import physical
from remuda.plan.traits import Convention
from remuda.plan.walk import change_inputs, walk

if TYPE_CHECKING:
    from remuda.catalog import IndexDefinition, MapDefinition, ViewDefinition
    from remuda.expr import Column
    from remuda.plan.bounds import Bound
    from remuda.plan.partition_map import PartitionMap
    from remuda.plan.result_column import ResultColumn
    from remuda.types import SqlType


_BY_INDEX = physical.IndexScan | physical.IndexCount | physical.LookupJoin


@dataclass(frozen=True, slots=True)
class Fragment:
    """A tree that runs in one place: fragment 0 on the coordinator, all others on members.

    A fragment above a Send has the number of its edge. Fragments that feed it have lower numbers.
    """

    number: int
    node: physical.PhysicalNode
    convention: Convention
    # Asked for by every execution, so found once.
    scans: tuple[physical.ScanNode, ...] = field(init=False, compare=False, repr=False)
    lookups: tuple[physical.LookupJoin, ...] = field(init=False, compare=False, repr=False)
    received: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """The edges that end here."""

    def __post_init__(self) -> None:
        nodes = list(walk(self.node))
        scans = tuple(node for node in nodes if isinstance(node, physical.ScanNode))
        object.__setattr__(self, "scans", scans)
        object.__setattr__(self, "lookups", tuple(node for node in nodes if isinstance(node, physical.LookupJoin)))
        object.__setattr__(self, "received", tuple(node.edge for node in nodes if isinstance(node, physical.Receive)))

    @property
    def route(self) -> physical.Route:
        """Where its rows go."""
        assert isinstance(self.node, physical.Send), "the first fragment sends nothing"
        return self.node.route


@dataclass(frozen=True, slots=True)
class RowLimits:
    """The plan is stale when the map has fewer than `least` rows, or `most` or more."""

    map: MapDefinition
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """Bounds of columns of a map, by name, within which lie more or fewer rows by the values of parameters."""

    map: MapDefinition
    bounds: tuple[tuple[str, Bound], ...]


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
    reads_clock: bool = False
    """Whether the last of `parameters` is the instant at which the statement begins, which no user gives."""
    views: tuple[ViewDefinition, ...] = ()
    """The views it was made of: it is stale when one is not current."""
    row_limits: tuple[RowLimits, ...] = ()
    """The numbers of rows between which it is a good plan; none for a map that is only asked for keys."""
    value_bounds: tuple[ValueBounds, ...] = ()
    """Where values leave many more or fewer rows, another plan may be better."""
    cacheable: bool = True
    """False where the plan has rows in it that the catalog gave when it was made."""
    # Asked for by every execution, so found once.
    used_indexes: tuple[IndexDefinition, ...] = field(init=False, compare=False, repr=False)
    """Every index that an execution may read, whichever of them it chooses."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "used_indexes", _used_indexes(self.tree))

    @property
    def root(self) -> Fragment:
        return self.fragments[0]

    @property
    def uses_spark(self) -> bool:
        """Tell whether tasks of Spark run a part of it."""
        return any(fragment.convention is Convention.SPARK for fragment in self.fragments)

    @property
    def modification(self) -> physical.Modify:
        """Return the operator that writes, of a statement that does."""
        return next(node for node in walk(self.tree) if isinstance(node, physical.Modify))


def _used_indexes(tree: physical.Root) -> tuple[IndexDefinition, ...]:
    reading = [node for node in walk(tree) if isinstance(node, _BY_INDEX)]
    scans = [node for node in reading if isinstance(node, physical.IndexScan)]
    own = [node.index for node in reading if node.index is not None]
    return (*own, *(candidate.index for scan in scans for candidate in scan.candidates))


def split(tree: physical.Root) -> tuple[Fragment, ...]:
    """Cuts at every exchange: the part above gets a `Receive`, the part below becomes a fragment under a `Send`.

    Root                          FRAGMENT 0            FRAGMENT 1
      RootExchange                Root                  Send[edge=1]
        MapScan          becomes    Receive[edge=1]       MapScan
    """
    fragments: list[Fragment] = []

    def cut(node: physical.PhysicalNode) -> physical.PhysicalNode:
        lower = change_inputs(node, cut)
        keys: tuple[Column, ...] = ()
        match lower:
            case physical.RootExchange():
                route = physical.Route.ROOT
            case physical.HashExchange():
                route, keys = physical.Route.HASH, lower.keys
            case physical.BroadcastExchange():
                route = physical.Route.BROADCAST
            case _:
                same: physical.PhysicalNode = lower
                return same
        edge = len(fragments) + 1
        below: physical.PhysicalNode = lower.input
        send = physical.Send(below, edge, below.traits, route, keys, estimate=below.estimate)
        fragments.append(Fragment(edge, send, below.traits.convention))
        collation = lower.traits.collation if route is physical.Route.ROOT else ()
        return physical.Receive(lower.columns, edge, collation, lower.traits, estimate=lower.estimate)

    top = cut(tree)
    return (Fragment(0, top, Convention.LOCAL), *fragments)
