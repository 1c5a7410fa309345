"""Index scan: the rows within bounds through a HASH or SORTED index, unordered or in the order of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.exec.batch import ArrowBatch, Row, RowBatch, empty_batch, layout_of
from remuda.exec.scan.concrete_bounds import index_lookups
from remuda.exec.scan.map_scan import IteratorExec, full_scan_batches, scan_partitions
from remuda.exec.scan.ordered_residual import OrderedResidual
from remuda.exec.scan.scan_filter import residual_filter, whole_filter
from remuda.exec.sort.merge import Stream, merge_pending
from remuda.expr import evaluate_constant
from remuda.plan.physical import Direction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.plan.physical import IndexCount, IndexScan
    from remuda.storage import Lookup, Source


FEW_ROWS = 64
"""Up to this many rows are read one by one: starting Arrow's kernels would cost more."""
FIRST_CHUNK = 16
LARGEST_CHUNK = 65_536
"""An ordered scan reads in growing chunks, as its consumer may need only the first. Under a LIMIT the first has that
many rows: of several sources it is enough then, and MIN and MAX read one row of each."""


def count_entries(node: IndexScan, sources: Sequence[Source], lookups: Sequence[Lookup]) -> int:
    """Count the entries within the bounds, hidden ones included: `scan_cutover` is compared with their number."""
    return sum(source.count(node.index.id, lookup) for source in sources for lookup in lookups)


class IndexScanExec(IteratorExec):
    def __init__(self, node: IndexScan, code: ExpressionCache) -> None:
        super().__init__(node.columns)
        self._node = node
        self._code = code
        self._rows = code.of(node, residual_filter)
        self._first_chunk = FIRST_CHUNK
        self._entries = 0
        """How many entries an ordered scan has read, of all sources."""
        self._residual: OrderedResidual | None = None
        if node.filter_cutover is not None:
            self._residual = code.of(node, OrderedResidual)

    def setup(self, context: ExecContext) -> None:
        node = self._node
        partitions = scan_partitions(node, context)
        lookups = index_lookups(node.bounds, context.parameters.values)
        sources = context.snapshot(node.map.id).sources
        if node.direction is not Direction.UNORDERED:
            if node.first_rows is not None:
                wanted = evaluate_constant(node.first_rows, context.parameters.values)
                self._first_chunk = min(max(wanted, 1), LARGEST_CHUNK)
            self.start(context, self._ordered_batches(sources, lookups, partitions, context))
        elif self._is_scan_cheaper(sources, lookups, context):
            full = self._code.of(node, whole_filter)
            self.start(context, full_scan_batches(node, full, partitions, context))
        else:
            self.start(context, self._batches(sources, lookups, partitions, context))

    def _is_scan_cheaper(self, sources: tuple[Source, ...], lookups: list[Lookup], context: ExecContext) -> bool:
        """Compare the exact number of entries within the bounds, which an index has without reading rows."""
        cutover = self._node.scan_cutover
        if cutover is None:
            return False
        entries = count_entries(self._node, sources, lookups)
        scans = entries > cutover.entries(context.snapshot(self._node.map.id).rows)
        if scans:
            context.activity.decide("full scan: {} entries", entries)
        return scans

    def _batches(
        self, sources: tuple[Source, ...], lookups: list[Lookup], partitions: np.ndarray | None, context: ExecContext
    ) -> Iterator[RowBatch]:
        rows = self._rows
        for source in sources:
            positions = self._positions(source, lookups, partitions)
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

    def _positions(self, source: Source, lookups: list[Lookup], partitions: np.ndarray | None) -> np.ndarray:
        index = self._node.index.id
        if len(lookups) == 1:
            return source.positions(index, lookups[0], partitions)
        found = [source.positions(index, lookup, partitions) for lookup in lookups]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def _ordered_batches(
        self, sources: tuple[Source, ...], lookups: list[Lookup], partitions: np.ndarray | None, context: ExecContext
    ) -> Iterator[RowBatch]:
        """Merge the ordered streams of all sources."""
        node = self._node
        if len(sources) == 1:
            yield from self._read_in_order(sources[0], lookups, partitions, context)
            return
        streams = [Stream() for _ in sources]
        readers = [self._read_in_order(source, lookups, partitions, context) for source in sources]
        layout = layout_of(node.columns)
        collation = node.traits.collation
        ordinals = [layout[key.column] for key in collation]
        while True:
            for stream, reader in zip(streams, readers, strict=True):
                while stream.needs_input:
                    context.verify()
                    batch = next(reader, None)
                    stream.exhausted = batch is None
                    stream.pending = None if batch is None else batch.arrow()
            merged = merge_pending(streams, ordinals, collation)
            if merged is None:
                return
            yield ArrowBatch(node.columns, merged)

    def _read_in_order(
        self,
        source: Source,
        lookups: list[Lookup],
        partitions: np.ndarray | None,
        context: ExecContext,
    ) -> Iterator[RowBatch]:
        rows, residual, cutover = self._rows, self._residual, self._node.filter_cutover
        chunks = self._ordered_chunks(source, lookups, partitions)
        seen: list[np.ndarray] = []
        for chunk in chunks:
            if residual is not None and cutover is not None and self._entries + len(chunk) > cutover:
                yield from self._read_rest(residual, source, seen, np.concatenate([chunk, *chunks]), context)
                return
            if residual is not None:
                seen.append(chunk)
            self._entries += len(chunk)
            context.activity.index_entries += len(chunk)
            context.weight.add(len(chunk))
            if len(chunk) <= FEW_ROWS:
                yield rows.apply_to_tuples(source.rows_at(rows.positions, chunk), context.parameters)
            elif residual is not None:
                passing = residual.passing(source, chunk, context.parameters)
                yield residual.fetch(source, passing, FEW_ROWS, context.parameters)
            else:
                yield rows.apply_to_arrow(source.take(rows.names, chunk), context.parameters)

    def _read_rest(
        self,
        residual: OrderedResidual,
        source: Source,
        seen: list[np.ndarray],
        left: np.ndarray,
        context: ExecContext,
    ) -> Iterator[RowBatch]:
        """Find the rows that pass among all that are left of a source, in one pass; deliver them in growing chunks."""
        context.activity.decide("filter in one pass: after {} entries", self._entries)
        passing = left[:0]
        for found in residual.find_passing(source, seen, left, context):
            if found is None:
                yield empty_batch(self._node.columns)
            else:
                passing = found
        first, size = 0, max(self._first_chunk, FIRST_CHUNK)
        while first < len(passing):
            yield residual.fetch(source, passing[first : first + size], FEW_ROWS, context.parameters)
            first, size = first + size, min(size * 4, LARGEST_CHUNK)

    def _ordered_chunks(
        self, source: Source, lookups: list[Lookup], partitions: np.ndarray | None
    ) -> Iterator[np.ndarray]:
        """Deliver positions in growing chunks, those of short lookups together, none before it is asked for."""
        index, descending = self._node.index.id, self._node.direction is Direction.DESCENDING
        size = self._first_chunk
        pending: list[np.ndarray] = []
        count = 0
        for lookup in reversed(lookups) if descending else lookups:
            for found in source.ordered_positions(index, lookup, partitions, descending=descending):
                pending.append(found)
                count += len(found)
                if count < size:
                    continue
                together = np.concatenate(pending) if len(pending) > 1 else found
                first = 0
                while count - first >= size:
                    yield together[first : first + size]
                    first, size = first + size, min(size * 4, LARGEST_CHUNK)
                pending, count = [together[first:]], count - first
        if count:
            yield np.concatenate(pending)


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
        for source in context.snapshot(node.map.id).sources:
            for lookup in index_lookups(node.bounds, context.parameters.values):
                count += len(source.positions(node.index.id, lookup, partitions))
        context.activity.index_entries += count
        yield Row(node.columns, (count,))
