"""Dynamic lookups: a rule for a finished plan, whose scans look up the keys of a join where these turn out to be few.

s JOIN b ON s.ref = b.id WHERE s.region = ?           b is read by its key where the region has few rows
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from remuda.dataclass import replace
from remuda.expr import parameters_of
from remuda.optimizer import cost
from remuda.optimizer.finishing.dynamic_pruning import scan_below, with_scan
from remuda.plan import physical
from remuda.plan.physical import JoinSide
from remuda.plan.walk import change_inputs, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from remuda.catalog import IndexDefinition
    from remuda.optimizer.finishing.dynamic_pruning import ScanColumns
    from remuda.plan.joins import JoinKey


def look_up_keys_of_joins(node: Any, number: Callable[[], int]) -> Any:
    """HashJoin(MapScan, x) → the keys of x, once they are read, are looked up instead of scanning the map.

    The keys must have the map's whole key, or leading columns of an index. x is the build side, or rows of an index
    that are read ahead as far as they are few. A runtime filter that stands over a scan has its keys looked up as well.
    Not where the join delivers rows of the map without a match, and not where x has surely too many rows: one that
    depends on a parameter, or on an estimate, may have few.
    """
    taken = max((each.runtime_keys.number for each in walk(node) if _makes_filter(each)), default=0)
    return _Placing(number, taken).rewrite(node)


def _makes_filter(node: Any) -> bool:
    return isinstance(node, physical.HashJoin) and node.runtime_keys is not None


class _Placing:
    """`number` counts how often the rule fires; filters up to number `taken` are there already."""

    def __init__(self, number: Callable[[], int], taken: int) -> None:
        self._number = number
        self._taken = taken

    def rewrite(self, node: Any) -> Any:
        node = change_inputs(node, self.rewrite)
        if not isinstance(node, physical.HashJoin) or not node.keys:
            return node
        made = node.runtime_keys
        sides = _sides(node) if made is None else [made.side]
        return next(filter(None, (self._with_lookup(node, side) for side in sides)), node)

    def _with_lookup(self, node: physical.HashJoin, side: JoinSide) -> physical.HashJoin | None:
        other = "left" if side is JoinSide.RIGHT else "right"
        source, target = getattr(node, side.value), getattr(node, other)
        made, filter_ = node.runtime_keys, None
        if made is not None:
            filter_ = _filter_below(target, made.number)
        if made is not None and filter_ is not None:
            keys, below, columns = made.keys, filter_, filter_.keys
        else:
            keys, below, columns = node.keys, target, tuple(getattr(key, other) for key in node.keys)
        found = scan_below(below, columns)
        lookup = None if found is None else _lookup(found, keys, source)
        if lookup is None:
            return None
        used = tuple(keys[ordinal] for ordinal in lookup.key_ordinals)
        if made is None:
            made = physical.RuntimeKeys(self._taken + self._number(), side, used, lookup.most_keys)
        else:
            self._number()
            if filter_ is None:
                kept = (*made.keys, *(key for key in used if key not in made.keys))
                made = replace(made, keys=kept, most_rows=max(made.most_rows, lookup.most_keys))
        ordinals = tuple(made.keys.index(key) for key in used)
        lookup = replace(lookup, number=made.number, key_ordinals=ordinals)
        changed = with_scan(below, columns, lambda scan, _: replace(scan, dynamic_lookup=lookup))
        return replace(node, **{other: _replaced(target, below, changed)}, runtime_keys=made)


def _sides(node: physical.HashJoin) -> Iterator[JoinSide]:
    """Yield the sides whose keys may be known before the other side is read."""
    if node.kind.drops_unmatched_left:
        yield JoinSide.RIGHT
    if node.kind.ignores_unmatched_right and _reads_index(node.left):
        yield JoinSide.LEFT


def _reads_index(node: Any) -> bool:
    """Return whether rows come from an index that is read at once: reading ahead delays nothing."""
    while isinstance(node, physical.Filter | physical.Project):
        node = node.input
    return isinstance(node, physical.IndexScan) and node.direction is physical.Direction.UNORDERED


def _filter_below(node: Any, number: int) -> physical.RuntimeFilter | None:
    found = (each for each in walk(node) if isinstance(each, physical.RuntimeFilter) and each.number == number)
    return next(found, None)


def _replaced(node: Any, old: Any, new: Any) -> Any:
    return new if node is old else change_inputs(node, lambda child: _replaced(child, old, new))


def _lookup(found: ScanColumns, keys: Sequence[JoinKey], source: Any) -> physical.DynamicLookup | None:
    """Return how keys of the source are looked up in a scan, by ordinals of the join's keys; None if they are not.

    A column may be in two keys, `x IS NOT DISTINCT FROM c AND y = c`: it is looked up by the one that is never NULL.
    """
    if found.scan.zone_order is not None:
        return None
    equated = {name: ordinal for ordinal, name in enumerate(found.names) if name is not None}
    plain = {name: ordinal for ordinal, name in enumerate(found.names) if name and not keys[ordinal].null_safe}
    for index, names in _ways(found.scan, equated, plain):
        most_keys, most_entries = cost.dynamic_lookup_cutover(found.scan, index)
        if _depends_on_parameters(source) or cost.is_worth_looking_up(source.estimate.rows, most_keys):
            ordinals = tuple(plain.get(name, equated[name]) for name in names)
            return physical.DynamicLookup(0, index, names, ordinals, most_keys, most_entries)
    return None


def _ways(
    scan: physical.MapScan, equated: Collection[str], plain: Collection[str]
) -> Iterator[tuple[IndexDefinition | None, tuple[str, ...]]]:
    """Yield the key, then the indexes that have the most columns, each with the columns that are looked up."""
    if all(name in equated for name in scan.map.key):
        yield None, scan.map.key
    leading = {index.id: tuple(takewhile(plain.__contains__, index.columns)) for index in scan.map.indexes}
    for index in sorted(scan.map.indexes, key=lambda each: -len(leading[each.id])):
        names = leading[index.id]
        if names and (len(names) == len(index.columns) or index.type.serves.leading_columns):
            yield index, names


def _depends_on_parameters(tree: Any) -> bool:
    for node in walk(tree):
        parts = (getattr(node, name, None) for name in ("filter", "condition", "count"))
        if any(part is not None and parameters_of(part) for part in parts):
            return True
    return False
