"""The partitions of keys that a statement writes out: VALUES that are joined with a map, or looked up in it.

l JOIN (VALUES (1), (2)) AS v (n) ON l.a = v.n      l is partitioned by a: at most two members take part
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.errors import SqlError
from remuda.expr import evaluate_constant, is_volatile, substitute
from remuda.plan.bounds import MAXIMUM_WRITTEN_ROWS
from remuda.plan.physical import Filter, HashJoin, Project, Values
from remuda.plan.walk import walk
from remuda.storage import hash_values, partition_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.expr import Expression
    from remuda.plan.physical import LookupJoin, ScanNode


def looked_up_partitions(lookup: LookupJoin, parameters: tuple[Any, ...]) -> np.ndarray | None:
    """Return the partitions in which a lookup join finds matches of written rows, ascending; None for other rows."""
    if not lookup.written:
        return None
    names = lookup.map.key if lookup.index is None else lookup.index.columns
    keys = dict(zip(names, lookup.keys, strict=False))
    return _partitions_of(lookup.map, lookup.input, [keys[name] for name in lookup.map.partitioned_by], parameters)


def joined_partitions(scan: ScanNode, node: Any, parameters: tuple[Any, ...]) -> np.ndarray | None:
    """Return the partitions that a scan below a join with written rows needs; None where it may need any other."""
    rule = getattr(scan, "dynamic_pruning", None)
    if rule is None:
        return None
    for join in walk(node):
        made = join.runtime_keys if isinstance(join, HashJoin) else None
        if made is not None and made.number == rule.number:
            keys = [getattr(made.keys[ordinal], made.side.value) for ordinal in rule.key_ordinals]
            return _partitions_of(scan.map, getattr(join, made.side.value), keys, parameters)
    return None


def _partitions_of(
    definition: MapDefinition, source: Any, keys: Sequence[Expression], parameters: tuple[Any, ...]
) -> np.ndarray | None:
    """Return the partitions of the keys of the rows; a key with a NULL has no match and lies in none."""
    while isinstance(source, Project | Filter):
        if isinstance(source, Project):
            computed = {item.column.id: item.expression for item in source.assignments}
            keys = [substitute(key, computed) for key in keys]
        source = source.input
    if not isinstance(source, Values) or len(source.rows) > MAXIMUM_WRITTEN_ROWS or any(map(is_volatile, keys)):
        return None
    types = [definition.column(name).type for name in definition.partitioned_by]
    ids = [column.id for column in source.columns]
    found: set[int] = set()
    try:
        for row in source.rows:
            written = dict(zip(ids, row, strict=True))
            values = [evaluate_constant(substitute(key, written), parameters) for key in keys]
            if None not in values:
                found.add(partition_of(hash_values(values, types), definition.partitions))
    except SqlError:  # The execution reports it, where a row comes to it.
        return None
    return np.array(sorted(found), dtype=np.int64)
