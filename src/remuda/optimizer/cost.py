"""What an operator costs: one `match`, and every number with its unit.

The unit of cost is a nanosecond of one core on the reference machine; only ratios matter. A row's cost through an
index is that of jumping to it, tens of times the cost of passing it in a scan; so an index pays only when it leaves
few rows. The figures come from `benchmarks/`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, assert_never

from remuda.expr import Expression, Literal
from remuda.optimizer.properties import UNKNOWN_LIMIT
from remuda.optimizer.pruning import expected_partitions
from remuda.plan import physical
from remuda.plan.traits import Convention, DistributionKind
from remuda.plan.walk import inputs

SCAN_ROW = 1.0
"""Passing one row in a direct scan, one column: reading and filtering it."""
SCAN_START = 20_000.0
"""Starting the kernels of a direct scan."""
HASH_ROW = 40.0
SORTED_ROW = 44.0
"""Fetching one row through an index: 40 and 44 times SCAN_ROW for a HASH and a SORTED index."""
INDEX_START = 5_000.0
COUNT_START = 4_500.0
"""Counting the entries within bounds: two searches in a sorted array, whatever lies between."""
KEY_LOOKUP = 1_500.0
"""Finding one key and reading its row."""
PROJECTION_COLUMN = 2.0
"""Producing one column of one returned row."""
FILTER_ROW = 2.0
PROJECT_ROW = 2.0
GROUP_ROW = 10.0
SORT_COMPARISON = 5.0
BUILD_ROW = 25.0
"""Putting one row of a join's right side into its table."""
PROBE_ROW = 15.0
"""Looking one left row up in it."""
JOINED_COLUMN = 2.0
"""Producing one column of one joined row."""
PAIR = 1.5
"""Comparing one left row with one right row where nothing can be looked up."""
LOOKUP_ROW = 2_500.0
"""Finding the match of one row by a map's key, many rows at a time."""
INDEX_LOOKUP_ROW = 5_000.0
"""Finding the matches of one row by an index."""
WINDOW_CALL_ROW = 10.0
HASH_PARTITION_ROW = 10.0
"""Finding the partition of one row for an exchange."""
TOP_ROW = 6.0
OPERATOR_START = 5_000.0
EXCHANGE_BYTE = 0.3
EXCHANGE_START = 50_000.0
"""Handing batches from one fragment to another within this process."""
SPARK_JOB = 20_000_000.0
"""Starting a job of a few tasks in a warm session: 16 to 20 ms."""
SPARK_RESULT_BYTE = 3.0
"""Bringing a byte of a result from a task to the driver."""
MODIFY_ROW = 1_000.0


@dataclass(frozen=True, slots=True)
class ScanSize:
    """What a scan touches: rows within its bounds in the partitions that pruning leaves, and how many it returns."""

    scanned: float
    returned: float


def operator_cost(node: physical.PhysicalNode, rows: float, size: ScanSize | None = None, *, members: int = 1) -> float:
    """The cost of the operator itself, its inputs left out. `rows` come out of it."""
    match node:
        case physical.MapScan():
            assert size is not None
            columns = len(node.columns) + (node.filter is not None)
            return (
                SCAN_START + size.scanned * SCAN_ROW * columns + size.returned * PROJECTION_COLUMN * len(node.columns)
            )
        case physical.IndexScan():
            assert size is not None
            row = HASH_ROW if node.index.kind.value == "HASH" else SORTED_ROW
            return INDEX_START + size.scanned * row + size.returned * PROJECTION_COLUMN * len(node.columns)
        case physical.IndexCount():
            return COUNT_START
        case physical.KeyLookup():
            keys = math.prod(len(points.values) for points in node.key)
            return KEY_LOOKUP * keys
        case physical.Values():
            return 0.0
        case physical.Filter():
            return OPERATOR_START + _input_rows(node) * FILTER_ROW
        case physical.Project():
            computed = sum(not assignment.is_identity for assignment in node.assignments)
            return OPERATOR_START + _input_rows(node) * PROJECT_ROW * computed
        case physical.HashAggregate():
            return OPERATOR_START + _input_rows(node) * GROUP_ROW + rows * GROUP_ROW
        case physical.Sort():
            count = _input_rows(node)
            return OPERATOR_START + count * math.log2(count + 2) * SORT_COMPARISON
        case physical.TopN():
            return OPERATOR_START + _input_rows(node) * TOP_ROW
        case physical.Limit() | physical.Root() | physical.Send() | physical.Receive():
            return 0.0
        case physical.HashJoin():
            left, right = _rows(node.left), _rows(node.right) * _shared_copies(node, node.right, members)
            joined = rows * len(node.columns) * JOINED_COLUMN
            return OPERATOR_START + right * BUILD_ROW + left * PROBE_ROW + joined
        case physical.NestedLoopJoin():
            pairs = _rows(node.left) * _rows(node.right)
            return OPERATOR_START + pairs * PAIR + rows * len(node.columns) * JOINED_COLUMN
        case physical.LookupJoin():
            jumps = 0.0 if node.index is None else rows * (HASH_ROW if node.index.kind.value == "HASH" else SORTED_ROW)
            lookup = LOOKUP_ROW if node.index is None else INDEX_LOOKUP_ROW
            lookups = _input_rows(node) * lookup * _shared_copies(node, node.input, members)
            return OPERATOR_START + lookups + jumps + rows * len(node.columns) * JOINED_COLUMN
        case physical.Union():
            return OPERATOR_START
        case physical.Window():
            count = _input_rows(node)
            comparisons = count * math.log2(count + 2) * SORT_COMPARISON
            return OPERATOR_START + comparisons + count * len(node.calls) * WINDOW_CALL_ROW
        case physical.Expand():
            return OPERATOR_START + rows * PROJECT_ROW * len(node.columns)
        case physical.Recursive():
            return OPERATOR_START + rows * GROUP_ROW
        case physical.WorkingTable():
            return 0.0
        case physical.RootExchange():
            if _convention(node.input) is Convention.SPARK:
                return SPARK_JOB + _input_bytes(node) * SPARK_RESULT_BYTE
            return EXCHANGE_START + _input_bytes(node) * EXCHANGE_BYTE
        case physical.HashExchange():
            moved = _input_rows(node) * HASH_PARTITION_ROW + _input_bytes(node) * EXCHANGE_BYTE
            return EXCHANGE_START * members + moved
        case physical.BroadcastExchange():
            return EXCHANGE_START + _input_bytes(node) * EXCHANGE_BYTE
        case physical.Modify():
            return OPERATOR_START + _input_rows(node) * MODIFY_ROW
        case _:
            assert_never(node)


def least_join_cost(left: float, right: float, rows: float, columns: int) -> float:
    """What every way to join so many rows costs at least, however they are read."""
    smaller = min(left, right)
    found = min(PROBE_ROW * max(left, right) + BUILD_ROW * smaller, PAIR * left * right, LOOKUP_ROW * smaller)
    return OPERATOR_START + found + rows * columns * JOINED_COLUMN


def total_cost(node: physical.PhysicalNode, own: float, parallelism: int) -> float:
    """The operator and everything below it.

    A LIMIT over rows that stream through stops them early, so it pays only for the share that it reads. Below an
    exchange to one place, or to all, the work is done by all members at once. What every member has for itself is
    work that all of them do.
    """
    sources: tuple[Any, ...] = inputs(node)
    if not sources:
        return own
    if len(sources) > 1 or isinstance(node, physical.LookupJoin):
        below: float = sum(source.estimate.cost * _shared_copies(node, source, parallelism) for source in sources)
        return own + below
    (source,) = sources
    below = source.estimate.cost
    if isinstance(node, physical.Limit) and is_streaming(source):
        below = min(below, INDEX_START + below * min(1.0, wanted_rows(node) / max(1.0, source.estimate.rows)))
    if isinstance(node, physical.RootExchange | physical.BroadcastExchange):
        below /= max(1, parallelism)
    return own + float(below)


def is_streaming(node: Any) -> bool:
    """Whether reading fewer rows costs less. Not past an exchange: members fill it as fast as they can."""
    match node:
        case physical.IndexScan() | physical.MapScan() | physical.KeyLookup() | physical.Values():
            return True
        case physical.Filter() | physical.Project() | physical.Limit() | physical.LookupJoin():
            return is_streaming(node.input)
        case physical.Union():
            return all(map(is_streaming, node.inputs))
    return False


def wanted_rows(node: physical.Limit | physical.TopN) -> float:
    """The rows that a LIMIT reads before it stops."""
    return _value(node.count, math.inf) + _value(node.offset, 0.0)


def _value(expression: Expression | None, absent: float) -> float:
    if expression is None:
        return absent
    return float(expression.value) if isinstance(expression, Literal) else UNKNOWN_LIMIT


def pruned_share(node: physical.ScanNode) -> float:
    """The share of the map's rows in the partitions that pruning leaves."""
    return expected_partitions(node.pruning, node.map.partitions) / node.map.partitions


def scan_above(node: physical.IndexScan, filter_columns: int, map_rows: float) -> int:
    """Matching index entries above which a direct scan is cheaper: the crossover, for the choice at execution."""
    row = HASH_ROW if node.index.kind.value == "HASH" else SORTED_ROW
    direct = SCAN_START + map_rows * pruned_share(node) * SCAN_ROW * (len(node.columns) + filter_columns)
    return max(0, int((direct - INDEX_START) / row))


def _input_rows(node: Any) -> float:
    return _rows(node.input)


def _rows(node: Any) -> float:
    rows: float = node.estimate.rows
    return rows


def _input_bytes(node: Any) -> float:
    width: int = sum(column.type.byte_width for column in node.columns)
    return _input_rows(node) * width


def _shared_copies(node: Any, source: Any, members: int) -> int:
    """How often work on an input is done: by every member, where each has all of it and does a part of the whole."""
    shared = node.traits.distribution.kind is DistributionKind.PARTITIONED
    return members if shared and _is_replicated(source) else 1


def _is_replicated(node: Any) -> bool:
    kind: DistributionKind = node.traits.distribution.kind
    return kind is DistributionKind.REPLICATED


def _convention(node: Any) -> Convention:
    convention: Convention = node.traits.convention
    return convention
