"""Index scan in the order of a SORTED index, or of the rows that another index finds and a sort puts into that order.

A consumer that wants few rows stops early: then the ordered index is read only as far as it takes to find them. Where
few entries pass the residual that is far, and an index that serves the residual may have fewer entries in all:

    region = 'APAC' ORDER BY amount DESC LIMIT 10      of a million rows 100 are APAC's

    by amount, in order     100,000 entries tested until ten of them are APAC's
    by region, sorted       100 entries, and a sort by amount

`choose_order` decides by exact counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from remuda.exec.batch import ArrowBatch, empty_batch, layout_of
from remuda.exec.scan.index_choice import FEW_ROWS, by_candidates, choose_order, in_order
from remuda.exec.scan.map_scan import IteratorExec, scan_partitions
from remuda.exec.scan.ordered_residual import OrderedResidual
from remuda.exec.scan.scan_filter import residual_filter
from remuda.exec.sort.merge import Stream, merge_pending
from remuda.exec.sort.ordering import concatenate, sort_positions
from remuda.expr import evaluate_row_count
from remuda.plan.physical import Direction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.scan.index_choice import IndexChoice
    from remuda.plan.physical import IndexScan
    from remuda.storage import Lookup, Source

FIRST_CHUNK = 16
LARGEST_CHUNK = 65_536
"""An ordered scan reads in growing chunks, as its consumer may need only the first. Under a LIMIT the first has that
many rows: of several sources it is enough then, and MIN and MAX read one row of each."""


POSITION_BYTES = 8


class OrderedIndexScanExec(IteratorExec):
    def __init__(self, node: IndexScan, code: ExpressionCache) -> None:
        super().__init__(node.columns)
        self._node = node
        self._code = code
        self._rows = code.of(node, residual_filter)
        self._first_chunk = FIRST_CHUNK
        self._first_fetched = FIRST_CHUNK
        """Of rows that are known to pass."""
        self._entries = 0
        """How many entries have been read, of all sources."""
        columns = {column.id: column for column in node.columns}
        self._keys = [columns[key.column] for key in node.traits.collation]
        self._residual: OrderedResidual | None = None
        if node.filter_cutover is not None:
            self._residual = code.of(node, OrderedResidual)

    def setup(self, context: ExecContext) -> None:
        node, values = self._node, context.parameters.values
        partitions, snapshot = scan_partitions(node, context), context.snapshot(node.map.id)
        if node.first_rows is not None:
            wanted = evaluate_row_count(node.first_rows, values)
            self._first_chunk = min(max(wanted, 1), LARGEST_CHUNK)
        reads_all = node.first_rows is None and node.row_goal is None
        self._first_fetched = LARGEST_CHUNK if reads_all else max(self._first_chunk, FIRST_CHUNK)
        choice = choose_order(self._code.of(node, by_candidates), snapshot, values)
        if choice.number and not self._has_room(choice.entries, context):
            choice = in_order(node, values)
        choice.note(context.activity)
        sources = snapshot.sources_of(partitions)
        if choice.number == 0:
            readers = [self._read_in_order(source, choice.lookups, partitions, context) for source in sources]
        else:
            readers = [self._read_sorted(source, choice, partitions, context) for source in sources]
        self.start(context, self._merged(readers, context))

    def _has_room(self, entries: int, context: ExecContext) -> bool:
        """Hold the memory for a sort of so many entries, as they come and in order; reading in order needs none."""
        if context.memory is None:
            return True
        key_bytes = sum(column.type.byte_width for column in self._keys)
        return context.memory.try_hold(self, 2 * entries * (POSITION_BYTES + key_bytes))

    def _merged(self, readers: Sequence[Iterator[RowBatch]], context: ExecContext) -> Iterator[RowBatch]:
        """Merge the ordered streams of all sources."""
        node = self._node
        if len(readers) == 1:
            yield from readers[0]
            return
        streams = [Stream() for _ in readers]
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
        yield from self._fetched(residual, source, passing, context)

    def _read_sorted(
        self, source: Source, choice: IndexChoice, partitions: np.ndarray | None, context: ExecContext
    ) -> Iterator[RowBatch]:
        """Test the entries of another index, sort the rows that pass; deliver them in growing chunks."""
        residual = self._code.of(choice.scan, OrderedResidual)
        entries = choice.positions(source, partitions)
        context.activity.index_entries += len(entries)
        context.weight.add(len(entries))
        passing: list[np.ndarray] = []
        keys: list[pa.RecordBatch] = []
        for first in range(0, len(entries), LARGEST_CHUNK):
            some = residual.passing(source, entries[first : first + LARGEST_CHUNK], context.parameters)
            if not len(some):
                continue
            passing.append(some)
            keys.append(source.take([column.name for column in self._keys], some))
            if len(entries) > LARGEST_CHUNK:
                yield empty_batch(self._node.columns)
        if not passing:
            return
        order = sort_positions(concatenate(keys), range(len(self._keys)), self._node.traits.collation)
        found = np.concatenate(passing)[order.to_numpy()]
        yield from self._fetched(residual, source, found, context)

    def _fetched(
        self, residual: OrderedResidual, source: Source, positions: np.ndarray, context: ExecContext
    ) -> Iterator[RowBatch]:
        """Deliver rows that have passed, in growing chunks."""
        first, size = 0, self._first_fetched
        while first < len(positions):
            yield residual.fetch(source, positions[first : first + size], FEW_ROWS, context.parameters)
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
