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
from remuda.optimizer.cardinality import UNKNOWN_LIMIT
from remuda.optimizer.pruning import expected_partitions
from remuda.plan import physical
from remuda.plan.traits import Convention

SCAN_ROW = 1.0
"""Passing one row in a direct scan, one column: reading and filtering it."""
SCAN_START = 20_000.0
"""Starting the kernels of a direct scan."""
HASH_ROW = 40.0
SORTED_ROW = 44.0
"""Fetching one row through an index: 40 and 44 times SCAN_ROW for a HASH and a SORTED index."""
INDEX_START = 5_000.0
KEY_LOOKUP = 1_500.0
"""Finding one key and reading its row."""
PROJECTION_COLUMN = 2.0
"""Producing one column of one returned row."""
FILTER_ROW = 2.0
PROJECT_ROW = 2.0
GROUP_ROW = 10.0
SORT_COMPARISON = 5.0
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


def operator_cost(node: physical.PhysicalNode, rows: float, size: ScanSize | None = None) -> float:
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
        case physical.RootExchange():
            size_in_bytes = _input_rows(node) * sum(column.type.byte_width for column in node.columns)
            if _convention(node.input) is Convention.SPARK:
                return SPARK_JOB + size_in_bytes * SPARK_RESULT_BYTE
            return EXCHANGE_START + size_in_bytes * EXCHANGE_BYTE
        case physical.Modify():
            return OPERATOR_START + _input_rows(node) * MODIFY_ROW
        case _:
            assert_never(node)


def total_cost(node: physical.PhysicalNode, own: float, parallelism: int) -> float:
    """The operator and everything below it.

    A LIMIT over rows that stream through stops them early, so it pays only for the share that it reads. Below an
    exchange the work is done by all members at once.
    """
    source: Any = getattr(node, "input", None)
    if source is None:
        return own
    below = source.estimate.cost
    if isinstance(node, physical.Limit) and is_streaming(source):
        below = min(below, INDEX_START + below * min(1.0, wanted_rows(node) / max(1.0, source.estimate.rows)))
    if isinstance(node, physical.RootExchange):
        below /= max(1, parallelism)
    return own + float(below)


def is_streaming(node: Any) -> bool:
    """Whether reading fewer rows costs less. Not past an exchange: members fill it as fast as they can."""
    match node:
        case physical.IndexScan() | physical.MapScan() | physical.KeyLookup() | physical.Values():
            return True
        case physical.Filter() | physical.Project() | physical.Limit():
            return is_streaming(node.input)
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
    rows: float = node.input.estimate.rows
    return rows


def _convention(node: Any) -> Convention:
    convention: Convention = node.traits.convention
    return convention
