"""Key lookup: the rows of given keys, through the key index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.exec.scan.concrete_bounds import lookup_keys
from remuda.exec.scan.map_scan import IteratorExec, scan_partitions
from remuda.exec.scan.scan_filter import residual_filter
from remuda.storage import partition_of, scalar_hasher

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from remuda.catalog import MapDefinition
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.plan.physical import KeyLookup

MANY_KEYS = 1_000


class KeyLookupExec(IteratorExec):
    def __init__(self, node: KeyLookup, code: ExpressionCache) -> None:
        super().__init__(node.columns)
        self._node = node
        self._rows = code.of(node, residual_filter)

    def setup(self, context: ExecContext) -> None:
        partitions = scan_partitions(self._node, context)
        keys = lookup_keys(self._node.keys, context.parameters.values)
        if context.partitions is not None and partitions is not None:
            keys = keys_in_partitions(self._node.map, keys, partitions)
        self.start(context, self._batches(keys, partitions, context))

    def _batches(self, keys: list[Any], partitions: np.ndarray | None, context: ExecContext) -> Iterator[RowBatch]:
        rows = self._rows
        for source in context.snapshot(self._node.map.id).sources_of(partitions):
            for first in range(0, len(keys), MANY_KEYS):
                positions = source.key_positions(keys[first : first + MANY_KEYS])
                context.activity.index_entries += len(positions)
                context.weight.add(len(positions))
                if len(positions):
                    yield rows.apply_to_tuples(source.rows_at(rows.positions, positions), context.parameters)


def keys_in_partitions(definition: MapDefinition, keys: list[Any], partitions: np.ndarray) -> list[Any]:
    """Return the keys that a fragment with these partitions is responsible for: other fragments find the others."""
    ordinals = [definition.key.index(name) for name in definition.partitioned_by]
    hash_of = scalar_hasher([definition.column(name).type for name in definition.partitioned_by])
    owned = set(partitions.tolist())

    def partition(key: Any) -> int:
        parts = key if isinstance(key, tuple) else (key,)
        values = tuple(parts[ordinal] for ordinal in ordinals)
        return partition_of(hash_of(values[0] if len(values) == 1 else values), definition.partitions)

    return [key for key in keys if partition(key) in owned]
