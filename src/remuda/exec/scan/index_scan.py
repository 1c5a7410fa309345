"""Index scan in no order: the rows within bounds through the HASH or SORTED index that has the fewest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import Row, RowBatch
from remuda.exec.scan.concrete_bounds import index_lookups
from remuda.exec.scan.index_choice import FEW_ROWS, by_candidates, choose_index
from remuda.exec.scan.map_scan import IteratorExec, full_scan_batches, scan_partitions
from remuda.exec.scan.scan_filter import residual_filter, whole_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.scan.index_choice import IndexChoice
    from remuda.plan.physical import IndexCount, IndexScan
    from remuda.storage import Source


LARGEST_CHUNK = 65_536
"""Rows of one batch."""


class IndexScanExec(IteratorExec):
    def __init__(self, node: IndexScan, code: ExpressionCache) -> None:
        super().__init__(node.columns)
        self._node = node
        self._code = code

    def setup(self, context: ExecContext) -> None:
        node = self._node
        partitions = scan_partitions(node, context)
        snapshot = context.snapshot(node.map.id)
        choice = choose_index(self._code.of(node, by_candidates), snapshot, context.parameters.values, partitions)
        choice.note(context.activity)
        if choice.scans:
            full = self._code.of(node, whole_filter)
            self.start(context, full_scan_batches(node, full, partitions, context))
        else:
            self.start(context, self._batches(choice, snapshot.sources_of(partitions), partitions, context))

    def _batches(
        self, choice: IndexChoice, sources: Sequence[Source], partitions: np.ndarray | None, context: ExecContext
    ) -> Iterator[RowBatch]:
        rows = self._code.of(choice.scan, residual_filter)
        for source in sources:
            positions = choice.positions(source, partitions)
            count = len(positions)
            context.activity.index_entries += count
            context.weight.add(count)
            if count == 0:
                continue
            if count <= FEW_ROWS:
                yield rows.apply_to_tuples(source.rows_at(rows.positions, positions), context.parameters)
                continue
            for first in range(0, count, LARGEST_CHUNK):
                batch = source.take(rows.names, positions[first : first + LARGEST_CHUNK])
                yield rows.apply_to_arrow(batch, context.parameters)


class IndexCountExec(IteratorExec):
    """Counts the rows within bounds, from the index alone."""

    def __init__(self, node: IndexCount) -> None:
        super().__init__(node.columns)
        self._node = node

    def setup(self, context: ExecContext) -> None:
        self.start(context, self._count(scan_partitions(self._node, context), context))

    def _count(self, partitions: np.ndarray | None, context: ExecContext) -> Iterator[RowBatch]:
        """Count positions, as an entry may be of a row that a later write replaced; no row is read."""
        node = self._node
        count = 0
        for source in context.snapshot(node.map.id).sources_of(partitions):
            for lookup in index_lookups(node.bounds, context.parameters.values):
                count += len(source.positions(node.index.id, lookup, partitions))
        context.activity.index_entries += count
        yield Row(node.columns, (count,))
