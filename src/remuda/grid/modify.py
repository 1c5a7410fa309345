"""Writing the rows of an INSERT, SINK, UPDATE or DELETE into a map, all or nothing."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING, Any

from remuda.plan.logical import Operation

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.plan.physical import Modify
    from remuda.storage import Store

_SEQUENCE_BITS = 10
_sequence = count()


def apply_modification(store: Store, node: Modify, rows: list[tuple[Any, ...]]) -> int:
    """The number of rows that were written or removed."""
    if not rows:
        return 0
    map_store = store.map(node.map)
    match node.operation:
        case Operation.INSERT:
            return map_store.insert(with_generated_keys(node.map, rows))
        case Operation.SINK:
            map_store.put(with_generated_keys(node.map, rows))
            return len(rows)
        case Operation.UPDATE:
            map_store.put(rows)
            return len(rows)
        case Operation.DELETE:
            single = len(node.map.key) == 1
            return map_store.delete([row[0] for row in rows] if single else rows)


def with_generated_keys(definition: MapDefinition, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Fills the hidden key column of a map without PRIMARY KEY."""
    hidden = [place for place, column in enumerate(definition.columns) if column.hidden]
    if not hidden:
        return rows
    (place,) = hidden
    return [(*row[:place], generated_key(), *row[place + 1 :]) for row in rows]


def generated_key() -> int:
    """Microseconds of the clock and a running number: ascending, and unique for the one process that writes."""
    microseconds = time.time_ns() // 1_000
    return (microseconds << _SEQUENCE_BITS) | (next(_sequence) & ((1 << _SEQUENCE_BITS) - 1))
