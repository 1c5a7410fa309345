"""How a query is done: operators that exist as code, each with the traits it delivers and what it is expected to cost.

These nodes are the body of a `Plan`: plain data that pickles and travels to the members and tasks that run it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from remuda.plan.logical import MODIFIED_COUNT, Assignment, Operation, Relation

if TYPE_CHECKING:
    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.expr import Column, Expression
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.bounds import Bound, Points, Pruning
    from remuda.plan.traits import Collation, Traits


@dataclass(frozen=True, slots=True)
class Estimate:
    """`rows` that come out, and the cost of everything up to here, in units of `optimizer.cost`."""

    rows: float = 0.0
    cost: float = 0.0


UNPRICED = Estimate()
"""What a node has before the optimizer has priced it."""


@dataclass(frozen=True, slots=True)
class MapScan:
    """Reads the partitions that pruning leaves, keeps the rows that pass `filter`."""

    map: MapDefinition
    columns: tuple[Column, ...]
    filter: Expression | None
    pruning: Pruning | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


class Direction(Enum):
    """In which order an index scan delivers; UNORDERED where nobody needs one."""

    UNORDERED = "unordered"
    ASCENDING = "ascending"
    DESCENDING = "descending"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class IndexScan:
    """Reads the rows within `bounds`, one for each leading index column, and keeps what passes `remainder`.

    Where no order is needed and more than `scan_above` entries lie within the bounds, known exactly once the
    parameters are, the map is scanned directly with the whole `filter` instead: that is cheaper then.
    """

    map: MapDefinition
    index: IndexDefinition
    columns: tuple[Column, ...]
    bounds: tuple[Bound, ...]
    remainder: Expression | None
    direction: Direction
    pruning: Pruning | None
    traits: Traits
    filter: Expression | None = None
    scan_above: int | None = None
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """Finds rows by their whole key: `key` has the points of each key column, in the order of the key."""

    map: MapDefinition
    columns: tuple[Column, ...]
    key: tuple[Points, ...]
    remainder: Expression | None
    pruning: Pruning | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def is_single(self) -> bool:
        return all(points.is_single for points in self.key)


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
class RootExchange:
    """Brings the rows of all members to the initiator; where the input has an order, the streams are merged in it."""

    input: Relation
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


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


@dataclass(frozen=True, slots=True)
class Send:
    """The top of a fragment that feeds another: one end of an edge."""

    input: Relation
    edge: int
    traits: Traits
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


PhysicalNode = (
    MapScan
    | IndexScan
    | KeyLookup
    | Values
    | Filter
    | Project
    | HashAggregate
    | Sort
    | TopN
    | Limit
    | RootExchange
    | Modify
    | Root
    | Send
    | Receive
)

ScanNode = MapScan | IndexScan | KeyLookup
