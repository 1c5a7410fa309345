"""What an operator costs: one `match`, and every number with its unit.

The unit of cost is a nanosecond of one core on the reference machine; only ratios matter. A row's cost through an
index is that of jumping to each of its values, which a scan does only for the rows that it keeps; so an index pays as
long as it leaves few rows, and the fewer the wider they are. The figures come from `benchmarks/`.

Measured on 10 million rows, in nanoseconds: through an index 13 for each row of one column, 56 of four, 90 of six; in a
direct scan 1.9, 2.7 and 3.2 for each row that is passed, and 23, 70 and 80 for each that is kept. Several cores share a
scan, but not an index scan: the constants stand between the work of one core and the time of two. So an index of one
column pays up to a sixth of the rows, of six columns up to a fourteenth.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, assert_never

from remuda.catalog import IndexDefinition, IndexType
from remuda.dataclass import dataclass
from remuda.expr import Column, Expression, Literal, columns_of, conjuncts, parameters_of
from remuda.optimizer.estimates.group_properties import UNKNOWN_LIMIT
from remuda.optimizer.pruning import expected_partitions
from remuda.optimizer.union_scan import scan_of_union
from remuda.plan import logical, physical
from remuda.plan.traits import Convention, DistributionKind
from remuda.plan.walk import inputs
from remuda.storage.segment.zone_map import ZONE_ROWS
from remuda.types import Kind

if TYPE_CHECKING:
    from remuda.plan.logical import Assignment

SCAN_ROW = 1.0
"""Passing one row in a direct scan: asking its filter, or without one reading one of its columns."""
SCAN_COLUMN = 0.2
"""What a column that is delivered adds to a row that is only passed."""
GATHER_COLUMN = 10.0
"""Fetching one column of one row that a filter keeps among many that it does not."""
SCAN_START = 20_000.0
"""Starting the kernels of a direct scan."""
INDEX_ROW = {IndexType.HASH: 2.0, IndexType.SORTED: 3.0}
"""Finding the position of one row in an index of each type."""
INDEX_COLUMN = 15.0
"""Fetching one of its columns from there."""
INDEX_START = 5_000.0
COUNT_START = 4_500.0
"""Counting the entries within bounds: two searches in a sorted array, whatever lies between."""
KEY_LOOKUP = 1_500.0
"""Finding one key and reading its row."""
PROJECTION_COLUMN = 2.0
"""Producing one column of one row where all rows, or nearly all, are returned."""
FILTER_ROW = 2.0
PROJECT_ROW = 2.0
"""Computing one column of one row."""
PROJECT_DECIMAL_ROW = 15.0
"""The same where it is a DECIMAL, which takes 128 bits."""
GROUP_ROW = 10.0
"""Finding the group of one row by its hash and adding it; of a result, making its row."""
STREAM_ROW = 6.0
"""The same where rows come group by group."""
TOTAL_ROW = 2.0
"""Adding one row where all rows are one group: no group is looked for. It is what an aggregate below a join saves."""
DISTINCT_ROW = 20.0
"""Finding out whether the group has had the value before."""
SORT_COMPARISON = 5.0
SORTED_ENTRY = 30.0
"""Putting one entry of an index into the order of another."""
PASSED_ENTRY = 5.0
"""Finding out of one entry of an index in order whether one pass over the map has kept its row."""
BUILD_ROW = 45.0
"""Putting one row of a join's right side into its table, where rows may have the same keys: they are sorted by these.
Measured, a core: 43 to 90 ns for integers."""
BUILD_UNIQUE_ROW = 15.0
"""The same where no two rows have the same keys, or where it is enough to know which keys there are: 9 to 14 ns for
integers that lie close together, 35 for others."""
PROBE_ROW = 8.0
"""Looking one left row up in it: less than finding its group, so that no aggregate is put below a join that keeps few
of its rows."""
MERGE_ROW = 20.0
"""Joining one row of either side where both come in order: tables are small, but there is one for each piece. A million
rows with 100,000 in order, by two indexes, take 166 ms; hashed and sorted 260."""
PLANNED_PAIR = 20_000.0
"""Weighing one way to split a join in two, with its part of making the groups: 10 to 20 µs."""
JOINED_COLUMN = 2.0
"""Producing one column of one joined row."""
PAIR = 1.5
"""Bringing one left row together with one right row where nothing can be looked up."""
COMPARED_PAIR = 10.0
"""Asking a condition of the two: fetching what it names from both sides, and the kernels."""
RANGE_SHARE = 0.3
"""The share of all pairs that an order of the right rows leaves to be compared."""
HELD_VALUE = 1.0
"""Keeping one value of a right row until all are there. Of two orders that compare as many pairs, the one that holds
less is better: it also delivers its first rows at once."""
SPOOL_SCAN = 20.0
"""How many times as much a kept scan counts, as it takes no runtime filter. A self-join of a million rows takes 2.4 ms
instead of 3.0 where the filter leaves a thousandth of them, but 189 ms instead of 173 where it leaves half."""
LOOKUP_ROW = 300.0
"""Finding the match of one row by a map's key, many rows at a time: 60 to 80 ns of one core. Reading and joining a row
of the map instead takes 3 to 4 ns, of which the constants above make 14 to 30."""
LOOKUP_START = 20_000.0
"""Starting the kernels that do so; few rows are looked up one by one."""
INDEX_LOOKUP_ROW = 5_000.0
"""Finding the matches of one row by an index, which is asked for one key after the other: 2.5 to 3.5 µs."""
WINDOW_CALL_ROW = 10.0
HASH_PARTITION_ROW = 10.0
"""Finding the partition of one row for an exchange."""
TOP_ROW = 6.0
SERIES_VALUE = 1.0
"""Counting one value of a series further."""
OPERATOR_START = 5_000.0
EXCHANGE_BYTE = 0.3
EXCHANGE_START = 50_000.0
"""Handing batches from one fragment to another within this process."""
SPARK_JOB = 20_000_000.0
"""Starting a job of a few tasks in a warm session: 16 to 20 ms."""
SPARK_RESULT_BYTE = 3.0
"""Bringing a byte of a result from a task to the driver."""
SPARK_EXCHANGE_BYTE = 3.0
"""Bringing a byte from the tasks of one stage to those of the next: the same way, but all tasks do it at once."""
SPARK_BROADCAST_BYTE = 10.0
"""Bringing a byte to every task, which all read and hold it."""
SPARK_LARGEST_BROADCAST = 128e6
"""Bytes beyond which a broadcast is not considered: every slot of an executor would hold them."""
MODIFY_ROW = 1_000.0
"""Writing a row into the memtable and its record into the log."""
SEGMENT_START = 8_500_000.0
"""Committing new segments: some files and a manifest are synced, and lookups have one more segment to ask."""
SEGMENT_ROW = 150.0
"""Sorting a row into a segment and its key into the key table."""

# Decisions that wait for exact counts: the plan carries the count at which they turn.

SPOOLED_PROBE_ROWS = 262_144
"""Left rows that a hash join reads ahead to filter its right side; of more, no filter is made."""
SPOOLED_PROBE_SHARE = 0.25
"""The left side is read ahead where it is expected to have no more than this share of the right side's rows."""
FILTERED_BUILD_ROWS = 50_000
"""A right side of fewer rows is held before a filter could save much."""
RUNTIME_FILTER_SHARE = 0.25
"""The right rows, for each left row that a filter would see, above which a filter saves too little."""
ZONES_FOR_EACH = 32
"""There must be so many zones for each row that a TopN keeps, or that a filter sees for each one of those: with fewer,
rows in no order at all are in so many zones that leaving the others out costs more than reading them (measured at ten
million rows: ten rows, half of which pass, 35 → 8 ms; with 3 in 100 that pass 21 → 39)."""
KEYS_FOR_EACH_PARTITION = 4
"""With so many keys, 98 % of the partitions have one."""
LOOKUP_DOUBT = 8
"""How many times too high the estimate of a join's keys may be, so that a scan still weighs looking them up."""
PRUNED_RANGE_ROWS = 32_768
"""What a batch of its own costs for each range of partitions, in rows that a scan and a join pass through (measured at
200,000 rows, processor time with 2 / 10 / 30 ranges against all rows: 0.64 / 1.44 / 3.24 ms against 0.72 / 0.82 / 0.81
ms)."""
ROW_JOIN_ROW = 1_000.0
"""Joining one row of each side as tuples, beyond what Arrow takes for it."""
ARROW_JOIN_START = 256_000.0
"""Making arrays of the tuples of both sides, starting the kernels of a join, and in most plans making tuples again
(measured, a hash join alone: 16 rows on each side 36 µs as tuples against 241 by Arrow, 128 rows 228 against 271, 256
rows 460 against 299)."""
SPOOL_ROWS = 5e6
"""Rows, as far as they are expected, above which a plan is computed again instead of kept."""
FORK_ROWS = 500_000
"""Rows of a scan from which the workers of a member share it: one of fewer rows is done before others have begun."""
SAMPLE_ROWS = 65_536
"""Rows of a scan that show whether its workers should aggregate in parts."""
PARTIAL_GROUP_ROWS = 64
"""Rows for each group, at least, that make it worth while for several workers to have states of their own: with fewer,
merging the states is as much work as adding the rows."""
PARTIAL_FEW_GROUPS = 10_000
"""Up to so many groups it does not matter that most of the rows seen so far are groups of their own."""


PLAN_GROWTH = 4
"""A plan is stale when a map that it reads has grown or shrunk by this factor: another one may be cheaper."""
SMALL_MAP = 64
"""Rows up to which every plan of a map is as good as another."""


@dataclass(frozen=True, slots=True)
class ScanSize:
    """What a scan touches: rows within its bounds in the partitions that pruning leaves, and how many it returns."""

    scanned: float
    returned: float


def operator_cost(node: physical.PhysicalNode, rows: float, size: ScanSize | None = None, *, members: int = 1) -> float:
    """Return the cost of the operator itself, without its inputs. `rows` come out of it."""
    match node:
        case physical.MapScan():
            assert size is not None
            columns = len(node.columns)
            if node.filter is None:
                return SCAN_START + size.scanned * (SCAN_ROW + PROJECTION_COLUMN) * columns
            gathered = min(size.returned * GATHER_COLUMN, size.scanned * PROJECTION_COLUMN)
            return SCAN_START + size.scanned * (SCAN_ROW + SCAN_COLUMN * columns) + gathered * columns
        case physical.IndexScan():
            assert size is not None
            if node.filter_cutover is not None:
                tested = size.scanned * _fetched_row(node.index, len(columns_of(node.residual)))
                return INDEX_START + tested + size.returned * INDEX_COLUMN * len(node.columns)
            return INDEX_START + size.scanned * _fetched_row(node.index, len(node.columns))
        case physical.IndexCount():
            return COUNT_START
        case physical.KeyLookup():
            keys = sum(math.prod(len(points.values) for points in key) for key in node.keys)
            return KEY_LOOKUP * keys
        case physical.Values():
            return 0.0
        case physical.Filter():
            return OPERATOR_START + _input_rows(node) * FILTER_ROW
        case physical.Project():
            return OPERATOR_START + _input_rows(node) * sum(map(_computing, node.assignments))
        case physical.HashAggregate():
            distinct = sum(call.distinct for call in node.calls) * DISTINCT_ROW
            added = GROUP_ROW if node.keys else TOTAL_ROW
            return OPERATOR_START + _input_rows(node) * (added + distinct) + rows * GROUP_ROW
        case physical.StreamingAggregate():
            distinct = sum(call.distinct for call in node.calls) * DISTINCT_ROW
            added = STREAM_ROW if node.keys else TOTAL_ROW
            return OPERATOR_START + _input_rows(node) * (added + distinct) + rows * STREAM_ROW
        case physical.Sort():
            return OPERATOR_START + _sorting(_input_rows(node))
        case physical.TopN():
            count = _input_rows(node)
            return OPERATOR_START + min(count * TOP_ROW + _sorting(_held_rows(node)), _sorting(count))
        case physical.Limit() | physical.Root() | physical.Send() | physical.Receive():
            return 0.0
        case physical.HashJoin():
            left, right = _rows(node.left), _rows(node.right) * _shared_copies(node, node.right, members)
            joined = rows * len(node.columns) * JOINED_COLUMN
            return OPERATOR_START + right * _built_row(node) + left * PROBE_ROW + joined
        case physical.MergeJoin():
            joined = rows * len(node.columns) * JOINED_COLUMN
            return OPERATOR_START + (_rows(node.left) + _rows(node.right)) * MERGE_ROW + joined
        case physical.RuntimeFilter():
            return OPERATOR_START + _input_rows(node) * PROBE_ROW
        case physical.NestedLoopJoin():
            held = _rows(node.right) * len(node.right.columns) * HELD_VALUE
            return OPERATOR_START + held + _comparing(node, rows) + rows * len(node.columns) * JOINED_COLUMN
        case physical.LookupJoin():
            columns = len(node.map_columns)
            jumps = 0.0 if node.index is None else _matches(node, rows) * _fetched_row(node.index, columns)
            looked_up = _input_rows(node) * _shared_copies(node, node.input, members)
            lookups = _looking_up(looked_up, columns, by_index=node.index is not None)
            return OPERATOR_START + lookups + jumps + rows * len(node.columns) * JOINED_COLUMN
        case physical.Union():
            return OPERATOR_START
        case physical.Window():
            count = _input_rows(node)
            return OPERATOR_START + _sorting(count) + count * len(node.calls) * WINDOW_CALL_ROW
        case physical.Expand():
            return OPERATOR_START + rows * PROJECT_ROW * len(node.columns)
        case physical.Series():
            return OPERATOR_START + rows * (SERIES_VALUE + JOINED_COLUMN * (len(node.columns) - 1))
        case physical.Recursive():
            return OPERATOR_START + rows * GROUP_ROW
        case physical.WorkingTable():
            return 0.0
        case physical.Spool() | physical.SpoolRead():
            return spool_cost(rows, len(node.columns))
        case physical.RootExchange():
            if _convention(node.input) is Convention.SPARK:
                return SPARK_JOB + _input_bytes(node) * SPARK_RESULT_BYTE
            return EXCHANGE_START + _input_bytes(node) * EXCHANGE_BYTE
        case physical.HashExchange():
            routed = _input_rows(node) * HASH_PARTITION_ROW
            if _convention(node) is Convention.SPARK:
                return SPARK_JOB * members + routed + _input_bytes(node) * SPARK_EXCHANGE_BYTE
            return EXCHANGE_START * members + routed + _input_bytes(node) * EXCHANGE_BYTE
        case physical.BroadcastExchange():
            if _convention(node) is Convention.SPARK:
                sent = _input_bytes(node)
                return math.inf if sent > SPARK_LARGEST_BROADCAST else SPARK_JOB + sent * SPARK_BROADCAST_BYTE
            return EXCHANGE_START + _input_bytes(node) * EXCHANGE_BYTE
        case physical.LocalExchange():
            # Placed when the search is done: every plan that reads the scan gains alike, and the constants of a row
            # stand between the work of one core and the time of two.
            return 0.0
        case physical.Modify():
            count = _input_rows(node)
            as_segments = SEGMENT_START + count * SEGMENT_ROW
            if _convention(node) is Convention.SPARK:
                return OPERATOR_START + as_segments
            return OPERATOR_START + min(count * MODIFY_ROW, as_segments)
        case physical.Commit():
            return OPERATOR_START
        case _:
            assert_never(node)


def _sorting(rows: float) -> float:
    """Return the cost of putting so many rows in order."""
    return rows * math.log2(rows + 2) * SORT_COMPARISON


def _held_rows(node: physical.TopN) -> float:
    """Return how many rows of a TopN's input, in no order of its keys, are among the first when they come.

    The n-th row is one of the first k with a probability of k / n.
    """
    rows, kept = _input_rows(node), max(1.0, wanted_rows(node))
    return kept * (1.0 + math.log(rows / kept)) if kept < rows else rows


def _matches(node: physical.LookupJoin, rows: float) -> float:
    """Return how many entries of its index are fetched for so many rows: those that the filter then drops as well.

    No more than those whose fetching costs as much as reading the map, which is read and held where there are more.
    """
    matches = rows / max(node.passing, 1e-9)
    return matches if node.hold_entries is None else min(matches, max(rows, float(node.hold_entries)))


def _comparing(node: physical.NestedLoopJoin, rows: float) -> float:
    """Finding the pairs of a nested loop and asking its condition of them."""
    left, right = _rows(node.left), _rows(node.right)
    pairs = left * right
    of_pair = PAIR if node.condition is None and node.compared is None else PAIR + COMPARED_PAIR
    if not node.branches:
        return pairs * of_pair
    tables = len(node.branches) * (right * BUILD_ROW + left * PROBE_ROW)
    if all(branch.equalities for branch in node.branches):
        candidates = min(pairs, max(rows, left, right))
    else:
        candidates = pairs * RANGE_SHARE
    return tables + candidates * of_pair


def spool_cost(rows: float, columns: int) -> float:
    """Return the cost of keeping rows, or of reading them once more."""
    return OPERATOR_START + rows * columns * HELD_VALUE


def is_cheaper_once(node: physical.PhysicalNode, uses: int, *, only_scans: bool) -> bool:
    """Test whether a plan that is used several times is better computed once and kept for its other readers."""
    estimate = node.estimate
    kept = spool_cost(estimate.rows, len(node.columns)) * (SPOOL_SCAN if only_scans else 1.0)
    return estimate.rows <= SPOOL_ROWS and estimate.cost + uses * kept < uses * estimate.cost


def is_worth_reading_ahead(left: float, right: float) -> bool:
    """Test whether a runtime filter of the left side, read ahead, is likely to save much of the right side."""
    return right >= FILTERED_BUILD_ROWS and 0 < left <= min(SPOOLED_PROBE_ROWS, SPOOLED_PROBE_SHARE * right)


def runtime_filter_cutover(filtered: float) -> int:
    """Right rows above which a runtime filter over so many left rows is not made."""
    return int(RUNTIME_FILTER_SHARE * filtered)


def is_worth_pruning(rows: float, partitions: int) -> bool:
    """Test whether the keys of so many rows are likely to leave out partitions of a map."""
    return rows < partitions


def dynamic_pruning_cutover(partitions: int) -> int:
    """Return the rows above which keys prune too little."""
    return KEYS_FOR_EACH_PARTITION * partitions


def is_worth_looking_up(rows: float, most_keys: int) -> bool:
    """Test whether keys that are expected of so many rows may turn out to be no more than these."""
    return rows <= LOOKUP_DOUBT * most_keys


def dynamic_lookup_cutover(scan: physical.MapScan, index: IndexDefinition | None) -> tuple[int, int | None]:
    """Return the keys, and the entries of an index, whose lookup costs as much as the scan and joining its rows."""
    estimate = scan.estimate
    scanned = estimate.cost + estimate.rows * PROBE_ROW
    if index is None:
        return int(scanned / max(1.0, _looked_up_row(len(scan.columns), by_index=False))), None
    return int(scanned / max(1.0, INDEX_LOOKUP_ROW)), int(scanned / max(1.0, _fetched_row(index, len(scan.columns))))


def pruned_range_rows() -> int:
    """Return the rows that a scan must leave out for each range of partitions it reads instead of the whole map."""
    return PRUNED_RANGE_ROWS


def row_join_cutover() -> int:
    """Return the rows on each side above which a join starts Arrow's kernels."""
    return int(ARROW_JOIN_START / ROW_JOIN_ROW)


def zone_order_rows() -> int:
    """Return the rows that a scan must have for each row of a TopN, to read zones in the TopN's order."""
    return ZONES_FOR_EACH * ZONE_ROWS


@dataclass(frozen=True, slots=True)
class JoinInput:
    """One side of a join: its rows, and what reading them costs at least."""

    rows: float
    least: float


def least_lookup(*, by_key: bool, by_index: bool) -> float:
    """Return what finding one row costs at least in a map that may be looked up in these ways; infinity for none."""
    return LOOKUP_ROW if by_key else INDEX_LOOKUP_ROW if by_index else math.inf


def least_join_cost(
    left: JoinInput,
    right: JoinInput,
    unique: tuple[bool, bool],
    looked_up: tuple[float, float],
    rows: float,
    columns: int,
) -> float:
    """Return what every plan of a join costs at least, its inputs included: hashed, by pairs, or looked up in a map.

    `unique` says for either side whether its rows may have different keys, `looked_up` what finding one of them costs.
    """
    built_left, built_right = (BUILD_UNIQUE_ROW if each else BUILD_ROW for each in unique)
    by_right = PROBE_ROW * left.rows + built_right * right.rows
    by_left = PROBE_ROW * right.rows + built_left * left.rows
    hashed = min(by_right, by_left, PAIR * left.rows * right.rows)
    found = hashed + left.least + right.least
    for side, lookup in ((right, looked_up[0]), (left, looked_up[1])):
        if lookup < math.inf:
            found = min(found, lookup * side.rows + side.least)
    return OPERATOR_START + found + rows * columns * JOINED_COLUMN


ROUNDING = 1.0 - 1e-9
"""Keeps a least cost below the cost itself, which is added up in another order."""


def least_hash_join_cost(
    probed: JoinInput, held: JoinInput, delivered: float, share: float, *, is_unique: bool
) -> float:
    """Return what a hash join costs at least of which this share is read, for so many values that it delivers.

    The build side is read and held before the first row comes out.
    """
    built = held.rows * (BUILD_UNIQUE_ROW if is_unique else BUILD_ROW)
    streamed = probed.least + PROBE_ROW * probed.rows + delivered * JOINED_COLUMN
    return ROUNDING * (OPERATOR_START + held.least + built + share * streamed)


def least_lookup_join_cost(side: JoinInput, lookup: float, delivered: float, share: float) -> float:
    """Return the same of a lookup join, which does not read the other side, where finding one row costs so much."""
    lookups = lookup * side.rows
    return ROUNDING * (OPERATOR_START + share * (side.least + lookups + delivered * JOINED_COLUMN))


def least_merge_join_cost(left: JoinInput, right: JoinInput, delivered: float, share: float) -> float:
    """Return the same of a merge join, which holds no side."""
    merged = MERGE_ROW * (left.rows + right.rows) + delivered * JOINED_COLUMN
    return ROUNDING * (OPERATOR_START + share * (left.least + right.least + merged))


def affordable_pairs(rows: float) -> int:
    """Return how many ways to split a join may be planned in the time that a pass over the rows of its inputs takes."""
    return int(min(rows * PROBE_ROW / PLANNED_PAIR, 1e9))


def total_cost(node: physical.PhysicalNode, own: float, parallelism: int) -> float:
    """Return the cost of the operator and everything below it.

    A LIMIT over rows that stream through stops them early, so it pays only for the share that it reads. Below an
    exchange to one member, or to all, the work is done by all members at once. What every member has for itself is
    work that all of them do.
    """
    sources: tuple[Any, ...] = inputs(node)
    if not sources:
        return own
    if len(sources) > 1 or isinstance(node, physical.LookupJoin):
        below: float = sum(source.estimate.cost * _shared_copies(node, source, parallelism) for source in sources)
        return own + (min(below, _scan_instead(node)) if isinstance(node, physical.Union) else below)
    (source,) = sources
    below = source.estimate.cost
    if isinstance(node, physical.Limit):
        readers = parallelism if node.traits.distribution.kind is DistributionKind.PARTITIONED else 1
        below = first_rows_cost(source, limited_share(wanted_rows(node) * readers, source.estimate.rows))
    if isinstance(node, physical.RootExchange | physical.BroadcastExchange):
        below /= max(1, parallelism)
    return own + float(below)


def _scan_instead(node: physical.Union) -> float:
    """Return what a union of index scans costs at most, since exact counts may have it scan the map instead.

    Parameters decide: then it costs nearly nothing as often as not, as a single index scan does.
    """
    scan = scan_of_union(node)
    if scan is None:
        return math.inf
    rows = sum(_rows(source) for source in node.inputs)
    found = operator_cost(scan, rows, ScanSize(union_cutover(node).rows, rows))
    return found / 2 if any(map(parameters_of, conjuncts(scan.filter))) else found


def union_cutover(node: physical.Union) -> physical.ScanCutover:
    """Return the rule by which a union of index scans reads the map instead: one of theirs, for all their entries."""
    scans: tuple[Any, ...] = node.inputs
    rules: list[physical.ScanCutover] = [each.scan_cutover for each in scans]
    return min(rules, key=lambda each: each.planned)


def first_rows_cost(node: Any, share: float) -> float:
    """Return what a plan costs of which only this share of the rows is read."""
    estimate: physical.Estimate = node.estimate
    if share == 1.0:
        return estimate.cost
    return estimate.startup + share * (estimate.cost - estimate.startup)


def limited_share(wanted: float, rows: float) -> float:
    """Return the share of so many rows that a LIMIT reads; the rows that it wants are taken to be anywhere."""
    return min(1.0, max(1.0, wanted) / max(1.0, rows))


def expected_rows(rows: float, share: float) -> int:
    """Return how many rows the share is; one at least."""
    return max(1, math.ceil(rows * share - 1e-6))


def startup_cost(node: Any, total: float, members: int) -> float:
    """Return what of the total cost is paid before the first row.

    Nothing streams past an exchange: members fill it as fast as they can.
    """
    kind, sources = type(node), inputs(node)
    if kind in _STREAMING:
        startup = OPERATOR_START + sum(source.estimate.startup for source in sources)
    elif kind in _HOLDING:
        left, right = sources
        held = right.estimate.rows * _built_row(node) if kind is physical.HashJoin else 0.0
        built = (right.estimate.cost + held) * _shared_copies(node, right, members)
        startup = OPERATOR_START + left.estimate.startup + built
    elif kind is physical.Limit or kind is physical.Root:
        startup = sources[0].estimate.startup
    else:
        return total
    return float(min(total, startup))


_STREAMING = frozenset(
    {
        physical.Filter,
        physical.Project,
        physical.StreamingAggregate,
        physical.LookupJoin,
        physical.Series,
        physical.Expand,
        physical.Union,
        physical.MergeJoin,
    }
)
"""Operators that pass rows on as they come from all of their inputs."""
_HOLDING = frozenset({physical.HashJoin, physical.NestedLoopJoin})
"""Operators that hold their right input before they pass on rows of the left one."""


def scan_startup(node: physical.ScanNode, total: float) -> float:
    """Return what an access path costs before its first row."""
    match node:
        case physical.MapScan():
            return min(total, SCAN_START)
        case physical.IndexScan():
            return min(total, INDEX_START)
        case physical.KeyLookup():
            return min(total, KEY_LOOKUP)
        case physical.IndexCount():
            return total


def wanted_rows(node: logical.Limit | physical.Limit | physical.TopN) -> float:
    """Return the rows that a LIMIT reads before it stops."""
    return _value(node.count, math.inf) + _value(node.offset, 0.0)


def _value(expression: Expression | None, absent: float) -> float:
    if expression is None:
        return absent
    return float(expression.value) if isinstance(expression, Literal) else UNKNOWN_LIMIT


def pruned_share(node: physical.ScanNode) -> float:
    """Return the share of the map's rows in the partitions that pruning leaves."""
    return expected_partitions(node.pruning, node.map.partitions) / node.map.partitions


def segment_cutover() -> int:
    """Return the rows of a statement above which segments cost less than entries of the memtable."""
    return int(SEGMENT_START / (MODIFY_ROW - SEGMENT_ROW))


def scan_cutover(node: physical.IndexScan, map_rows: float) -> physical.ScanCutover:
    """Matching index entries above which a direct scan is cheaper: the crossover, for the choice at execution.

    What a scan gathers grows with the entries too, until they are so many that it gathers nearly all rows: two lines
    over the rows of the map, of which the lower one counts.
    """
    columns = len(node.columns)
    share = pruned_share(node)
    start, passed = SCAN_START - INDEX_START, share * (SCAN_ROW + SCAN_COLUMN * columns)
    gathered = share * PROJECTION_COLUMN * columns
    fetched = _fetched_row(node.index, columns)
    beside = fetched - GATHER_COLUMN * columns
    lines = [(start / fetched, (passed + gathered) / fetched)]
    if beside > 0:
        lines.append((start / beside, passed / beside))
    return physical.ScanCutover(tuple(lines), int(map_rows))


def hold_cutover(map_rows: float, columns: int, *, by_index: bool) -> int:
    """Return the rows that a lookup join looks up one by one; above them it reads the map once and holds it.

    So many lookups cost as much as that, so that a join which meets more rows than expected, as few of its own pass a
    filter below a LIMIT, costs no more than twice the better one.
    """
    built = BUILD_ROW if by_index else BUILD_UNIQUE_ROW
    return int(_holding_map(map_rows, columns, built) / max(1.0, _looked_up_row(columns, by_index=by_index)))


def hold_entries(map_rows: float, columns: int, index: IndexDefinition) -> int:
    """Return the matches of an index whose fetching costs as much as reading the map and holding it.

    A skewed reference has most of the map's rows: `cust = 'C00000'` 296,000 of a million.
    """
    return int(_holding_map(map_rows, columns, BUILD_ROW) / max(1.0, _fetched_row(index, columns)))


def _holding_map(map_rows: float, columns: int, built_row: float) -> float:
    return SCAN_START + map_rows * ((SCAN_ROW + PROJECTION_COLUMN) * columns + built_row)


def _built_row(node: physical.HashJoin) -> float:
    return BUILD_UNIQUE_ROW if node.has_unique_build else BUILD_ROW


def filter_cutover(node: physical.IndexScan, map_rows: float) -> int | None:
    """Return the entries of an ordered scan from which its residual is evaluated in one pass over the map.

    Testing so many entries one by one costs as much as the pass, so that both together cost no more than twice the
    better one, however wrong the estimate of what passes is. None where the residual names no column to be fetched.
    """
    columns = len(columns_of(node.residual))
    if not columns:
        return None
    passed = SCAN_START + map_rows * pruned_share(node) * (SCAN_ROW + SCAN_COLUMN * columns)
    return int(passed / _fetched_row(node.index, columns))


def sort_rule(node: physical.IndexScan, passing: float) -> physical.SortRule:
    """Return when an ordered scan reads a candidate and sorts its rows, in entries that are tested in order."""
    in_order = _fetched_row(node.index, len(columns_of(node.residual)))
    largest = max(_sorted_entry(node, each) for each in node.candidates)
    return physical.SortRule(in_order / largest, PASSED_ENTRY / in_order, passing)


def sorted_cost(
    node: physical.IndexScan, candidate: physical.IndexCandidate, entries: float, returned: float
) -> tuple[float, float]:
    """Return the startup and the whole cost of reading a candidate and putting its rows into the scan's order."""
    startup = INDEX_START + entries * _sorted_entry(node, candidate)
    return startup, startup + returned * INDEX_COLUMN * len(node.columns)


def _sorted_entry(node: physical.IndexScan, candidate: physical.IndexCandidate) -> float:
    fetched = len(columns_of(candidate.residual)) + len(node.traits.collation)
    return _fetched_row(candidate.index, fetched) + SORTED_ENTRY


def _computing(assignment: Assignment) -> float:
    """Return the cost of computing a column for each row."""
    if isinstance(assignment.expression, Column):
        return 0.0
    return PROJECT_DECIMAL_ROW if assignment.column.type.kind is Kind.DECIMAL else PROJECT_ROW


def _fetched_row(index: IndexDefinition, columns: int) -> float:
    """Fetching one row through an index."""
    return INDEX_ROW[index.type] + INDEX_COLUMN * columns


def _looking_up(rows: float, columns: int, *, by_index: bool) -> float:
    """Looking so many rows up."""
    found = rows * _looked_up_row(columns, by_index=by_index)
    return found if by_index else min(LOOKUP_START + found, rows * KEY_LOOKUP)


def _looked_up_row(columns: int, *, by_index: bool) -> float:
    """Looking one row up; by the key, which has one row, with fetching that."""
    return INDEX_LOOKUP_ROW if by_index else LOOKUP_ROW + INDEX_COLUMN * columns


def _input_rows(node: Any) -> float:
    return _rows(node.input)


def _rows(node: Any) -> float:
    rows: float = node.estimate.rows
    return rows


def _input_bytes(node: Any) -> float:
    width: int = sum(column.type.byte_width for column in node.columns)
    return _input_rows(node) * width


def _shared_copies(node: Any, source: Any, members: int) -> int:
    """Return how often work on an input is done.

    Every member does it where each has all of the input and does a part of the whole.
    """
    shared = node.traits.distribution.kind is DistributionKind.PARTITIONED
    return members if shared and _is_replicated(source) else 1


def _is_replicated(node: Any) -> bool:
    kind: DistributionKind = node.traits.distribution.kind
    return kind is DistributionKind.REPLICATED


def _convention(node: Any) -> Convention:
    convention: Convention = node.traits.convention
    return convention
