"""Dynamic partition pruning: a rule for a finished plan, whose scans learn their partitions from the keys of a join.

l JOIN (VALUES (1), (2)) AS v(n) ON l.a = v.n         l is partitioned by a: two partitions are read
l WHERE a IN (SELECT id FROM small)                   as many as there are ids

Written keys, as those of VALUES, are known before the statement runs: members without one of their partitions take no
part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from remuda.dataclass import replace
from remuda.expr import Column
from remuda.optimizer import cost
from remuda.plan import physical
from remuda.plan.bounds import MAXIMUM_WRITTEN_ROWS
from remuda.plan.physical import JoinSide
from remuda.plan.traits import DistributionKind
from remuda.plan.walk import change_inputs, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def prune_scans_by_keys(tree: Any, number: Callable[[], int]) -> Any:
    """HashJoin(MapScan, few rows) → the join's keys, once they are read, tell the scan which partitions it reads.

    LookupJoin(Values)             → the written keys tell which members look them up

    The keys must have every partitioning column of the map. Not where the join delivers rows without a match: such a
    row may lie in any partition. A runtime filter that stands over a scan prunes it as well. A scan whose own filter
    tells its partitions is left alone.
    """
    taken = max((node.runtime_keys.number for node in walk(tree) if _makes_filter(node)), default=0)
    return _pruned(tree, lambda: taken + number())


def _makes_filter(node: Any) -> bool:
    return isinstance(node, physical.HashJoin) and node.runtime_keys is not None


def _pruned(node: Any, number: Callable[[], int]) -> Any:
    node = change_inputs(node, lambda child: _pruned(child, number))
    if isinstance(node, physical.LookupJoin) and _looks_up_written_keys(node):
        number()
        return replace(node, written=True)
    if not isinstance(node, physical.HashJoin) or not node.keys:
        return node
    made = node.runtime_keys
    if made is None:
        return _with_new_keys(node, number) or node
    side = "right" if made.side is JoinSide.LEFT else "left"
    below = _below_filter(getattr(node, side), made.number)
    if below is None:
        return node
    number()
    return replace(node, **{side: below})


def _looks_up_written_keys(node: physical.LookupJoin) -> bool:
    source: Any = node.input
    if node.traits.distribution.kind is not DistributionKind.PARTITIONED or node.map.replicated:
        return False
    if source.traits.distribution.kind is not DistributionKind.REPLICATED:
        return False
    while isinstance(source, physical.Project | physical.Filter):
        source = source.input
    names = node.map.key if node.index is None else node.index.columns[: len(node.keys)]
    is_short = isinstance(source, physical.Values) and len(source.rows) <= MAXIMUM_WRITTEN_ROWS
    return is_short and set(names) >= set(node.map.partitioned_by)


def _with_new_keys(node: physical.HashJoin, number: Callable[[], int]) -> physical.HashJoin | None:
    if not node.kind.drops_unmatched_left:
        return None
    found = _prunable(node.left, [key.left for key in node.keys])
    right: Any = node.right
    if found is None or not cost.is_worth_pruning(right.estimate.rows, found[0].map.partitions):
        return None
    scan, names = found
    keys = tuple(key for key, name in zip(node.keys, names, strict=True) if name in scan.map.partitioned_by)
    most_rows = cost.dynamic_pruning_cutover(scan.map.partitions)
    made = physical.RuntimeKeys(number(), JoinSide.RIGHT, keys, most_rows)
    left = _with_pruning(node.left, [key.left for key in keys], made.number)
    return replace(node, left=left, runtime_keys=made)


def _below_filter(node: Any, number: int) -> Any | None:
    """Return a tree in which the scan below the runtime filter of this number is pruned by it; None without one."""
    if isinstance(node, physical.RuntimeFilter) and node.number == number:
        return None if _prunable(node, node.keys) is None else _with_pruning(node, node.keys, number)
    child = getattr(node, "input", None)
    below = None if child is None else _below_filter(child, number)
    return None if below is None else replace(node, input=below)


def _prunable(node: Any, columns: Sequence[Column | None]) -> ScanColumns | None:
    """Return the scan below whose partitions the columns tell."""
    found = scan_below(node, columns)
    if found is None or found.scan.pruning is not None or found.scan.map.replicated:
        return None
    return found if set(found.names).issuperset(found.scan.map.partitioned_by) else None


def _with_pruning(node: Any, columns: Sequence[Column | None], number: int) -> Any:
    def pruned(scan: physical.MapScan, names: Sequence[str | None]) -> physical.MapScan:
        partitioned_by = scan.map.partitioned_by
        key_ordinals = tuple(map(list(names).index, partitioned_by))
        most_keys, range_rows = cost.dynamic_pruning_cutover(scan.map.partitions), cost.pruned_range_rows()
        pruning = physical.DynamicPruning(number, partitioned_by, key_ordinals, most_keys, range_rows)
        return replace(scan, dynamic_pruning=pruning)

    return with_scan(node, columns, pruned)


class ScanColumns(NamedTuple):
    """A scan, and the names that some columns have in its map, None for those that are computed."""

    scan: physical.MapScan
    names: list[str | None]


def scan_below(node: Any, columns: Sequence[Column | None]) -> ScanColumns | None:
    """Return the scan whose rows come through filters and projections only, with the names of these columns in it."""
    match node:
        case physical.Filter() | physical.Project() | physical.RuntimeFilter():
            return scan_below(node.input, _sources(node, columns))
        case physical.MapScan():
            return ScanColumns(node, _names(columns))
        case _:
            return None


def with_scan(node: Any, columns: Sequence[Column | None], change: Callable[..., physical.MapScan]) -> Any:
    """Change the scan that `scan_below` finds; the function gets it and the names of the columns in it."""
    if isinstance(node, physical.MapScan):
        return change(node, _names(columns))
    return replace(node, input=with_scan(node.input, _sources(node, columns), change))


def _names(columns: Sequence[Column | None]) -> list[str | None]:
    return [None if column is None else column.name for column in columns]


def _sources(node: Any, columns: Sequence[Column | None]) -> list[Column | None]:
    """Return the columns of the input that these columns are; None for one that is computed."""
    if not isinstance(node, physical.Project):
        return list(columns)
    known = {item.column.id: item.expression for item in node.assignments}
    found = [None if column is None else known[column.id] for column in columns]
    return [each if isinstance(each, Column) else None for each in found]
