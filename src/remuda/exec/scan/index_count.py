"""Index count: how many rows lie within bounds, from the index alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import Row
from remuda.exec.scan.bounds import index_lookups
from remuda.exec.scan.map_scan import IteratorExec, scan_partitions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import IndexCount


class IndexCountExec(IteratorExec):
    def __init__(self, node: IndexCount) -> None:
        super().__init__(node.columns)
        self._node = node

    def setup(self, context: ExecContext) -> None:
        context.verify()
        self.start(context, self._count(scan_partitions(self._node, context), context))

    def _count(self, partitions: np.ndarray | None, context: ExecContext) -> Iterator[RowBatch]:
        """Positions are looked at, as an entry may be hidden by a later write; the rows themselves are not."""
        node = self._node
        count = 0
        for source in context.snapshot(node.map.id).sources:
            for lookup in index_lookups(node.bounds, context.parameters.values):
                count += len(source.positions(node.index.id, lookup, partitions))
        context.activity.index_entries += count
        yield Row(node.columns, (count,))
