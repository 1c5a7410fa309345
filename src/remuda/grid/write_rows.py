"""Writing few rows of an INSERT, SINK, UPDATE or DELETE into the memtable of a map, all or nothing."""

from __future__ import annotations

import time
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any

from remuda.errors import constraint_error, too_many_rows
from remuda.plan.logical import Operation
from remuda.types.normalized_key import canonical_key

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.errors import SqlError
    from remuda.plan.physical import Modify
    from remuda.storage import MapStore

_STEP_BITS = 10


def apply_modification(map_store: MapStore, node: Modify, rows: list[tuple[Any, ...]]) -> int:
    """Apply a modification; return the number of rows that were written or removed."""
    if not rows:
        return 0
    match node.operation:
        case Operation.INSERT:
            return map_store.insert(with_generated_keys(node.map, rows))
        case Operation.SINK:
            map_store.put(with_generated_keys(node.map, rows))
            return len(rows)
        case Operation.MERGE:
            _refuse_same_keys(node.map, rows)
            map_store.update(rows)
            return len(rows)
        case Operation.UPDATE:
            map_store.update(rows)
            return len(rows)
        case Operation.DELETE:
            single = len(node.map.key) == 1
            return map_store.delete([row[0] for row in rows] if single else rows)


def _refuse_same_keys(definition: MapDefinition, rows: list[tuple[Any, ...]]) -> None:
    """Refuse two rows with one key: the second would have to see the change of the first."""
    key_of = itemgetter(*definition.positions(definition.key))
    seen: set[Any] = set()
    for row in rows:
        key = canonical_key(key_of(row))
        if key in seen:
            raise same_keys(definition)
        seen.add(key)


def same_keys(definition: MapDefinition) -> SqlError:
    names = ", ".join(definition.key)
    return constraint_error(
        too_many_rows, f"ON CONFLICT DO UPDATE has two rows with the same key ({names}) of {definition.name}"
    )


def with_generated_keys(definition: MapDefinition, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Fills the hidden key column of a map without PRIMARY KEY."""
    hidden = [ordinal for ordinal, column in enumerate(definition.columns) if column.hidden]
    if not hidden:
        return rows
    (ordinal,) = hidden
    keys = generated_keys(len(rows))
    return [(*row[:ordinal], key, *row[ordinal + 1 :]) for key, row in zip(keys, rows, strict=True)]


class KeyGenerator:
    """Ascending keys that were never given before: they begin at the clock, or where the last ones ended.

    The clock counts in steps of 1/1024 microsecond, so keys do not overtake it for long, and a process that starts
    later goes on above them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._next = 0

    def take(self, count: int) -> range:
        with self._lock:
            first = max(self._next, (time.time_ns() // 1_000) << _STEP_BITS)
            self._next = first + count
            return range(first, self._next)


generated_keys = KeyGenerator().take
