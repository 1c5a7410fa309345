"""How a query is done: operators that exist as code, each with the traits it delivers and what it is expected to cost.

These nodes are the body of a `Plan`: plain data that pickles and travels to the members and tasks that run it.
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from remuda.dataclass import dataclass
from remuda.plan.joins import joined_columns
from remuda.plan.logical import MODIFIED_COUNT, PREPARED
from remuda.plan.traits import DistributionKind

if TYPE_CHECKING:
    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.errors import Span
    from remuda.expr import Column, Expression
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.bounds import Bound, Points, Pruning
    from remuda.plan.joins import CandidateBranch, JoinKey, JoinKind
    from remuda.plan.logical import Assignment, Operation, Relation
    from remuda.plan.series import SeriesCall
    from remuda.plan.traits import Collation, SortKey, Traits
    from remuda.plan.windows import WindowCall


@dataclass(frozen=True, slots=True)
class Estimate:
    """`rows` that come out, and the cost of everything up to here, in units of `optimizer.cost`.

    `startup` is the part of the cost that is paid before the first row: all of it where an operator has to read its
    whole input first, as a sort does.
    """

    rows: float = 0.0
    cost: float = 0.0
    startup: float = 0.0


UNPRICED = Estimate()
"""What a node has before the optimizer has priced it."""


@dataclass(frozen=True, slots=True)
class _Node:
    """Has what every node has: its estimate, which makes no difference between two nodes."""

    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class _PassingNode(_Node):
    """Delivers the columns of its one input."""

    input: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


# Rows made, changed and chosen one by one.


@dataclass(frozen=True, slots=True)
class Values(_Node):
    columns: tuple[Column, ...]
    rows: tuple[tuple[Expression, ...], ...]
    traits: Traits


@dataclass(frozen=True, slots=True)
class Filter(_PassingNode):
    condition: Expression
    traits: Traits


@dataclass(frozen=True, slots=True)
class Project(_Node):
    input: Relation
    assignments: tuple[Assignment, ...]
    traits: Traits

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(assignment.column for assignment in self.assignments)


@dataclass(frozen=True, slots=True)
class Expand(_Node):
    """Every row of the input once for each of `projections`."""

    input: Relation
    columns: tuple[Column, ...]
    projections: tuple[tuple[Expression, ...], ...]
    traits: Traits


@dataclass(frozen=True, slots=True)
class Series(_Node):
    """Every row of the input once for each value of its series, in their order: the input's order is kept.

    The first batch has `first_rows` rows, where a LIMIT above is known to need no more.
    """

    input: Relation
    call: SeriesCall
    traits: Traits
    first_rows: Expression | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, self.call.column)


@dataclass(frozen=True, slots=True)
class Limit(_PassingNode):
    """Passes `count` rows on after skipping `offset`, in whatever order they come, and then stops its input."""

    count: Expression | None
    offset: Expression | None
    traits: Traits


@dataclass(frozen=True, slots=True)
class Union(_Node):
    """The inputs' rows, one input after the other or as they come; `sources[i]` are the columns of input i.

    Where the inputs are index scans of one map, `map_scan` reads the rows of all of them at once. It is run instead
    where the indexes have more entries, all together, than `scan_cutover` says.
    """

    inputs: tuple[Relation, ...]
    columns: tuple[Column, ...]
    sources: tuple[tuple[Column, ...], ...]
    traits: Traits
    map_scan: MapScan | None = None
    scan_cutover: ScanCutover | None = None


# Reads of a map.


@dataclass(frozen=True, slots=True)
class ZoneOrder:
    """Reads the zones with the best values of `key` first, and none behind the bound of the TopN of the same number.

    Decided when the scan starts: where the rows in its zones, and the `expected_rows` that reach the TopN, are at least
    `rows_for_each` for each row that the TopN keeps.
    """

    number: int
    key: SortKey
    rows_for_each: int
    expected_rows: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class DynamicPruning:
    """Reads only the partitions of the keys of runtime filter `number`.

    `key_ordinals` are those of the map's partitioning `columns` among the keys of the filter. Decided when the filter
    is made: with more than `most_keys` keys nearly all partitions have one, and all are read. So they are where fewer
    than `range_rows` rows would be left out for each range of partitions that is read.
    """

    number: int
    columns: tuple[str, ...]
    key_ordinals: tuple[int, ...]
    most_keys: int = field(compare=False)
    range_rows: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class DynamicLookup:
    """Looks up the keys of runtime filter `number` in the map's key, or in `index`, instead of scanning the map.

    `key_ordinals` are those of the `columns` among the keys of the filter. Decided when the filter is made: so long as
    the share of `most_keys` and that of `most_entries` of the index add up to no more than one.
    """

    number: int
    index: IndexDefinition | None
    columns: tuple[str, ...]
    key_ordinals: tuple[int, ...]
    most_keys: int = field(compare=False)
    most_entries: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class MapScan(_Node):
    """Reads the partitions that pruning leaves, keeps the rows that pass `filter`."""

    map: MapDefinition
    columns: tuple[Column, ...]
    filter: Expression | None
    pruning: Pruning | None
    traits: Traits
    zone_order: ZoneOrder | None = None
    dynamic_pruning: DynamicPruning | None = None
    dynamic_lookup: DynamicLookup | None = None


class Direction(Enum):
    """The order in which an index scan delivers; UNORDERED where no operator needs one."""

    UNORDERED = "unordered"
    ASCENDING = "ascending"
    DESCENDING = "descending"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class ScanCutover:
    """The number of index entries above which a full scan is cheaper, as a rule: the least of some lines.

    A line is a number of entries and a share of the map's rows to be added. A plan outlives the number of rows that it
    was made for, `rows`, so that the count is computed from those that the map has at execution.
    """

    lines: tuple[tuple[float, float], ...]
    rows: int = 0

    def entries(self, rows: int) -> int:
        """Return the count for a map of so many rows."""
        return int(max(0.0, min(start + share * rows for start, share in self.lines)))

    @property
    def planned(self) -> int:
        """The count for the rows that the plan was made for."""
        return self.entries(self.rows)


@dataclass(frozen=True, slots=True)
class IndexCandidate:
    """Another index that serves a part of the filter of an `IndexScan`: its bounds, and what it leaves to be tested."""

    index: IndexDefinition
    bounds: tuple[Bound, ...]
    residual: Expression | None


@dataclass(frozen=True, slots=True)
class SortRule:
    """When a scan in order reads a candidate and sorts its rows instead: where the candidate has fewer entries than
    `share` of those that are expected to be read in order.

    One that `filter_cutover` leaves to the pass over all rows counts as `passed` entries. `passing` is the share of
    rows that is expected to meet the conditions that no index of the scan serves.
    """

    share: float
    passed: float
    passing: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class IndexScan(_Node):
    """Reads the rows within `bounds`, one for each leading index column, and keeps what passes `residual`.

    The number of entries within bounds is known exactly once the parameters are. Where no order is needed the index is
    read that has the fewest of them, its own or one of the `candidates`; where even those are more than `scan_cutover`
    says, the map is scanned directly with the whole `filter` instead: that is cheaper then.
    An ordered scan reads in growing chunks, the first of `first_rows` entries, where a LIMIT above needs no more. It
    was planned to be read up to `row_goal` rows. Where that takes more than `filter_cutover` entries, as few of them
    pass, the residual is evaluated for all that are left in one pass over the rows as they lie. Where a candidate has
    few entries by the `sort_rule`, it is read instead, and its rows are sorted.
    """

    map: MapDefinition
    index: IndexDefinition
    columns: tuple[Column, ...]
    bounds: tuple[Bound, ...]
    residual: Expression | None
    direction: Direction
    pruning: Pruning | None
    traits: Traits
    filter: Expression | None = None
    scan_cutover: ScanCutover | None = None
    candidates: tuple[IndexCandidate, ...] = ()
    first_rows: Expression | None = None
    filter_cutover: int | None = None
    sort_rule: SortRule | None = None
    row_goal: int | None = field(default=None, compare=False)

    @property
    def usable(self) -> tuple[IndexScan | IndexCandidate, ...]:
        """Each index that it may read, its own first."""
        return (self, *self.candidates)

    @property
    def by_candidates(self) -> tuple[IndexScan, ...]:
        """The same scan by each of its candidates, which deliver in no order."""
        traits = replace(self.traits, collation=())
        return tuple(
            IndexScan(
                self.map,
                each.index,
                self.columns,
                each.bounds,
                each.residual,
                Direction.UNORDERED,
                self.pruning,
                traits,
                self.filter,
            )
            for each in self.candidates
        )


@dataclass(frozen=True, slots=True)
class IndexCount(_Node):
    """How many rows lie within the bounds of an index, as one row; no row is read for it."""

    map: MapDefinition
    index: IndexDefinition
    bounds: tuple[Bound, ...]
    column: Column
    pruning: Pruning | None
    traits: Traits

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.column,)


@dataclass(frozen=True, slots=True)
class KeyLookup(_Node):
    """Finds rows by their whole key: `key` has the points of each key column, in the order of the key.

    `further_keys` are those of the other branches of an OR: `(a, b) IN ((1, 2), (3, 4))` has two.
    """

    map: MapDefinition
    columns: tuple[Column, ...]
    key: tuple[Points, ...]
    residual: Expression | None
    pruning: Pruning | None
    traits: Traits
    further_keys: tuple[tuple[Points, ...], ...] = ()

    @property
    def keys(self) -> tuple[tuple[Points, ...], ...]:
        return (self.key, *self.further_keys)

    @property
    def is_single(self) -> bool:
        return not self.further_keys and all(points.is_single for points in self.key)


ScanNode = MapScan | IndexScan | IndexCount | KeyLookup


# Joins. Where both sides are tuples, up to `row_cutover` on each, they are joined row by row instead of by Arrow.


class JoinSide(Enum):
    LEFT = "left"
    RIGHT = "right"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class RuntimeKeys:
    """The keys of one side of a hash join, for the `RuntimeFilter`, the `DynamicPruning` and the `DynamicLookup` of the
    same number below the other side.

    The side is read first: the right one for the table, the left one ahead of the right one. Decided when it has been
    read: of more than `most_rows` rows no filter is made.
    """

    number: int
    side: JoinSide
    keys: tuple[JoinKey, ...]
    most_rows: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class RuntimeFilter(_PassingNode):
    """Drops the rows whose `keys` are not among the `RuntimeKeys` of the same number; all pass where those were not
    made."""

    number: int
    keys: tuple[Column, ...]
    traits: Traits


@dataclass(frozen=True, slots=True)
class HashJoin(_Node):
    """Builds a table of the right side by its keys, then probes it with the left rows as they come.

    `condition` is what must hold beside the keys; `compared` and `mark` are those of a logical MARK join. A MARK join
    without keys whose `compared` is `left column = right column` looks that up in a table too: x IN (SELECT y ...).
    """

    build_side: ClassVar[JoinSide] = JoinSide.RIGHT
    """Which side is held: an implement rule exchanges the sides where the left one is to be."""

    kind: JoinKind
    left: Relation
    right: Relation
    keys: tuple[JoinKey, ...]
    condition: Expression | None
    compared: Expression | None
    mark: Column | None
    traits: Traits
    runtime_keys: RuntimeKeys | None = None
    row_cutover: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the sub-query of a SINGLE join is written."""
    has_unique_build: bool = field(default=False, compare=False, repr=False, kw_only=True)
    """Whether no two right rows have the same keys, or are told apart: such a table costs less."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True, slots=True)
class MergeJoin(_Node):
    """Joins rows that come in the order of the keys on both sides, piece by piece; holds no side.

    `collation` is the order in columns of the left side, each of them a key; the right side comes in the same order of
    the columns that these equal. The other keys need no order.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    keys: tuple[JoinKey, ...]
    collation: Collation
    condition: Expression | None
    compared: Expression | None
    mark: Column | None
    traits: Traits
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the sub-query of a SINGLE join is written."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.left.columns, self.right.columns, self.mark)

    @property
    def right_collation(self) -> Collation:
        equal = {key.left.id: key.right.id for key in reversed(self.keys)}
        return tuple(replace(key, column=equal[key.column]) for key in self.collation)


@dataclass(frozen=True, slots=True)
class NestedLoopJoin(_Node):
    """Holds the right side and compares every left row with all of it: for conditions without an equality.

    With `branches` a left row is compared only with the right rows that one of them finds for it: each branch of an OR
    has its own hash table or its own order of the right rows.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Expression | None
    compared: Expression | None
    mark: Column | None
    traits: Traits
    branches: tuple[CandidateBranch, ...] = ()
    row_cutover: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the sub-query of a SINGLE join is written."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True, slots=True)
class LookupJoin(_Node):
    """Finds the matches of each input row in a map: by its whole key, or by equality of an index's leading columns.

    `keys` are expressions over the input, of the types of the key columns or of the index's leading columns. `filter`
    is the scan's own filter, `condition` what must hold of a pair beside the keys. Kinds: INNER, LEFT, SEMI, ANTI.
    Few rows are joined as tuples: up to `row_cutover` of the input, and as many matches of an index, which counts them
    first. Looking up `hold_cutover` rows costs as much as reading the map, and so does fetching `hold_entries` matches
    of an index; where the shares of both add up to more than one, the map is read once and held from then on.
    `passing` is the share of the matches that are expected to pass the filter, once they are fetched. Where `written`
    the input are rows of the statement, the same on every member, whose keys tell the partitions of their matches:
    members without one of them take no part.
    """

    kind: JoinKind
    input: Relation
    map: MapDefinition
    index: IndexDefinition | None
    map_columns: tuple[Column, ...]
    keys: tuple[Expression, ...]
    filter: Expression | None
    condition: Expression | None
    traits: Traits
    hold_cutover: int | None = field(default=None, compare=False)
    hold_entries: int | None = field(default=None, compare=False)
    row_cutover: int | None = None
    passing: float = field(default=1.0, compare=False)
    written: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.input.columns, self.map_columns, None)


# Groups, in one step or in two.


class Phase(Enum):
    """COMPLETE does all of it in one operator; PARTIAL leaves states that FINAL merges.

    INTERMEDIATE merges the states of a member's workers into its own, which FINAL merges with those of other members.
    """

    COMPLETE = "complete"
    PARTIAL = "partial"
    INTERMEDIATE = "intermediate"
    FINAL = "final"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class HashAggregate(_Node):
    """`states` has, for each call, the columns of its partial results: what PARTIAL delivers and FINAL takes.

    INTERMEDIATE takes and delivers them. Over a `LocalExchange` whose workers do not aggregate in parts, FINAL and
    INTERMEDIATE get rows instead of states, and do what COMPLETE and PARTIAL do.
    """

    input: Relation
    keys: tuple[Column, ...]
    calls: tuple[AggregateCall, ...]
    states: tuple[tuple[Column, ...], ...]
    phase: Phase
    traits: Traits

    @property
    def columns(self) -> tuple[Column, ...]:
        if self.phase in {Phase.PARTIAL, Phase.INTERMEDIATE}:
            return (*self.keys, *(column for state in self.states for column in state))
        return (*self.keys, *(call.column for call in self.calls))


@dataclass(frozen=True, slots=True)
class StreamingAggregate(_Node):
    """Aggregates rows that come in an order of all `keys`: one group after the other, delivered in that order."""

    input: Relation
    keys: tuple[Column, ...]
    calls: tuple[AggregateCall, ...]
    traits: Traits

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.keys, *(call.column for call in self.calls))


# Orders, and the window functions that look along one.


@dataclass(frozen=True, slots=True)
class Sort(_PassingNode):
    collation: Collation
    traits: Traits


@dataclass(frozen=True, slots=True)
class TopN(_PassingNode):
    """The first `count` rows of the order after `offset`, without sorting the rest.

    With a `bound` it tells the scan with the `ZoneOrder` of that number the value that so many rows have reached.
    """

    collation: Collation
    count: Expression
    offset: Expression | None
    traits: Traits
    bound: int | None = None


@dataclass(frozen=True, slots=True)
class Window(_Node):
    input: Relation
    partition: tuple[Column, ...]
    order: Collation
    calls: tuple[WindowCall, ...]
    traits: Traits

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(call.column for call in self.calls))


# Exchanges, and the two ends of the edge that each of them becomes.


@dataclass(frozen=True, slots=True)
class RootExchange(_PassingNode):
    """Brings the rows of all members to the coordinator; where the input has an order, the streams are merged in it."""

    traits: Traits


@dataclass(frozen=True, slots=True)
class HashExchange(_PassingNode):
    """Brings every row to the member that owns the partition of `keys`: where a map partitioned by them has its rows.

    Partitions are those of the partition table, the hash is that of keys, so both sides of a join agree.
    """

    keys: tuple[Column, ...]
    traits: Traits


@dataclass(frozen=True, slots=True)
class BroadcastExchange(_PassingNode):
    """Brings every row to every member."""

    traits: Traits


ExchangeNode = RootExchange | HashExchange | BroadcastExchange


@dataclass(frozen=True, slots=True)
class PartialRule:
    """When workers aggregate in parts: decided by the groups in the first `sample_rows` rows that the scan reads.

    They do not where a group has fewer than `group_rows` of the rows to be aggregated, nor where there are more than
    `few_groups` groups and most rows of the sample are groups of their own.
    """

    sample_rows: int
    group_rows: int
    few_groups: int


@dataclass(frozen=True, slots=True)
class LocalExchange(_PassingNode):
    """Brings together the rows of the workers of one member, which share the scan at the bottom of the input.

    The input is a chain over a `MapScan` that makes batches from batches. Where the scan reads at least `fork_rows`
    rows, known once the snapshot and the partitions are, every worker runs a copy of the chain over the pieces of
    the scan that it takes; with fewer rows the chain runs as it is. The top of the chain may reduce rows, as a PARTIAL
    aggregate or a TopN: the operator above merges what the workers have, and does all of it where nothing is forked.
    """

    fork_rows: int
    traits: Traits
    partial_rule: PartialRule | None = None


class Route(Enum):
    """Where the rows of an edge go: to the coordinator, to the owner of their keys' partition, to every member."""

    ROOT = "root"
    HASH = "hash"
    BROADCAST = "broadcast"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Send(_PassingNode):
    """The top of a fragment that feeds another: one end of an edge. `keys` are what HASH routes by."""

    edge: int
    traits: Traits
    route: Route = Route.ROOT
    keys: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Receive(_Node):
    """The other end of an edge: a leaf of the fragment that is fed. With `collation` the streams are merged."""

    columns: tuple[Column, ...]
    edge: int
    collation: Collation
    traits: Traits


# Rows that are computed once for several readers.


@dataclass(frozen=True, slots=True)
class Spool(_PassingNode):
    """Delivers the rows of its input and keeps them for the `SpoolRead`s of the same number, in the same fragment."""

    number: int
    traits: Traits


@dataclass(frozen=True, slots=True)
class SpoolRead(_Node):
    """Delivers the rows of a `Spool` again, as columns of its own: `columns[i]` is column i of the spool."""

    number: int
    columns: tuple[Column, ...]
    traits: Traits


# A query that reads its own rows.


@dataclass(frozen=True, slots=True)
class Recursive(_Node):
    """Runs its first input once and its second again and again over the rows found last, on the coordinator."""

    inputs: tuple[Relation, Relation]
    columns: tuple[Column, ...]
    sources: tuple[tuple[Column, ...], tuple[Column, ...]]
    table: int
    distinct: bool
    traits: Traits


@dataclass(frozen=True, slots=True)
class WorkingTable(_Node):
    table: int
    columns: tuple[Column, ...]
    traits: Traits


# The tops of trees: what is written, and what is handed out.


@dataclass(frozen=True, slots=True)
class Modify(_Node):
    """Writes the rows of its input, all or none. A DELETE has the keys alone, all others have all columns.

    On members it prepares those that it has there, and a Commit on the coordinator commits all of them.
    """

    input: Relation
    map: MapDefinition
    operation: Operation
    traits: Traits
    segment_cutover: int | None = None
    """More rows are written as segments, fewer into the memtable; None stands for all of them."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (MODIFIED_COUNT,) if self.commits else (MODIFIED_COUNT, PREPARED)

    @property
    def commits(self) -> bool:
        return self.traits.distribution.kind is DistributionKind.ROOT


@dataclass(frozen=True, slots=True)
class Commit(_Node):
    """Commits what a Modify below an exchange has prepared on the members, which tell it how many rows they have."""

    input: Relation
    map: MapDefinition
    traits: Traits

    @property
    def columns(self) -> tuple[Column, ...]:
        return (MODIFIED_COUNT,)


@dataclass(frozen=True, slots=True)
class Root(_Node):
    """Hands the user those columns of the input that are in the result, under their names."""

    input: Relation
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    traits: Traits


PhysicalNode = (
    MapScan
    | IndexScan
    | IndexCount
    | KeyLookup
    | Values
    | Filter
    | Project
    | HashAggregate
    | StreamingAggregate
    | Sort
    | TopN
    | Limit
    | HashJoin
    | MergeJoin
    | RuntimeFilter
    | NestedLoopJoin
    | LookupJoin
    | Union
    | Window
    | Expand
    | Series
    | Recursive
    | WorkingTable
    | Spool
    | SpoolRead
    | RootExchange
    | HashExchange
    | BroadcastExchange
    | LocalExchange
    | Modify
    | Commit
    | Root
    | Send
    | Receive
)
"""The closed set of them, for those who distinguish all."""
