"""Direct scan: the partitions that pruning leaves, batch by batch, at the snapshot."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from remuda.exec.batch import RowBatch, empty_batch
from remuda.exec.operator import Exec, IterationResult
from remuda.exec.scan import zone_order
from remuda.exec.scan.concrete_bounds import intersect, pruned_partitions
from remuda.exec.scan.scan_filter import whole_filter
from remuda.exec.scan.zone_ranges import SMALLEST_GAP
from remuda.storage.segment.segment_source import SegmentSource
from remuda.storage.segment.zone_map import ZONE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.scan.scan_filter import ScanFilter
    from remuda.exec.scan.zone_order import Piece, TopNBound
    from remuda.expr import Column
    from remuda.plan.physical import MapScan, ScanNode
    from remuda.plan.traits import SortKey

# Memory for the arrays that kernels make and drop with every batch.
#
# The C library asks the system for every large array and gives it back when it is dropped, so that its pages are
# cleared and mapped anew for each batch, which can take longer than the kernel itself. It learns from what a program
# drops: once an array of some size has been dropped, arrays up to that size come from memory that is kept.
#
# Measured: five groups of four million rows, 99 ms of processor time before it has learnt and 30 ms after.


KEPT_BYTES = 24 << 20
"""Above what a kernel needs for a batch; the library's own highest limit is 32 MiB."""


@cache
def keep_dropped_memory() -> None:
    """Teaches it, once in a process. The array is dropped at once and none of its pages is ever touched."""
    np.empty(KEPT_BYTES, np.uint8)


def scan_partitions(node: ScanNode, context: ExecContext) -> np.ndarray | None:
    """The partitions that this fragment reads for a scan: its own, as far as pruning leaves them.

    A replicated map is whole wherever it is read.
    """
    pruning = node.pruning
    wanted = None if pruning is None else pruned_partitions(node.map, pruning, context.parameters.values)
    partitions = intersect(None if node.map.replicated else context.partitions, wanted)
    context.activity.partitions += node.map.partitions if partitions is None else len(partitions)
    return partitions


def direct_batches(
    node: ScanNode, rows: ScanFilter, partitions: np.ndarray | None, context: ExecContext
) -> Iterator[RowBatch]:
    """The rows that pass, in batches; shared with the index scan that finds a direct scan to be cheaper."""
    for piece in scan_pieces(scan_ranges(node, rows, partitions, context), context):
        yield read_piece(piece, rows, context)


def scan_ranges(node: ScanNode, rows: ScanFilter, partitions: np.ndarray | None, context: ExecContext) -> list[Piece]:
    """What a direct scan reads, in pieces as long as they can be."""
    return [
        (source, start, stop)
        for source in context.snapshot(node.map.id).sources
        for start, stop in rows.zones.of(source, partitions, context.parameters)
    ]


def scan_pieces(ranges: list[Piece], context: ExecContext) -> Iterator[Piece]:
    """The same, batch by batch."""
    step = context.scan_batch_rows
    for source, start, stop in ranges:
        for first in range(start, stop, step):
            yield source, first, min(first + step, stop)


def read_piece(piece: Piece, rows: ScanFilter, context: ExecContext) -> RowBatch:
    source, first, stop = piece
    batch = source.read(rows.names, first, stop)
    context.activity.rows_read += batch.num_rows
    if isinstance(source, SegmentSource) and batch.num_rows == stop - first:
        return rows.apply_to_segment(source.segment, first, batch, context.parameters)
    return rows.apply_to_arrow(batch, context.parameters)


class IteratorExec(Exec):
    """An operator whose batches come from a generator: a leaf, which waits for nothing but the right thread.

    Nothing is read ahead, as a LIMIT above may have enough: the end is found by asking once more.
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns

    def start(self, context: ExecContext, batches: Iterator[RowBatch]) -> None:
        self._context = context
        self._stream = batches

    def advance(self) -> IterationResult:
        if self._context.weight.should_offload:
            return IterationResult.WAIT
        batch = next(self._stream, None)
        self._context.verify()
        self.current_batch = empty_batch(self._columns) if batch is None else batch
        return IterationResult.FETCHED_DONE if batch is None else IterationResult.FETCHED


class MapScanExec(IteratorExec):
    def __init__(self, node: MapScan, code: ExpressionCache) -> None:
        super().__init__(node.columns)
        self._node = node
        self._rows = code.of(node, whole_filter)

    def setup(self, context: ExecContext) -> None:
        keep_dropped_memory()
        context.verify()
        partitions = scan_partitions(self._node, context)
        self._ranges = scan_ranges(self._node, self._rows, partitions, context)
        self._best_first: zone_order.BestFirst | None = None
        self.start(context, self._batches())
        if context.weight.movable:
            context.weight.add(self.most_rows)

    def _batches(self) -> Iterator[RowBatch]:
        for piece in self.pieces():
            yield read_piece(piece, self._rows, self._context)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._columns

    @property
    def most_rows(self) -> int:
        """How many rows there are to be read, hidden ones included."""
        return sum(stop - start for _, start, stop in self._ranges)

    def seek_first(self, key: SortKey, threshold: TopNBound, wanted: float) -> None:
        """Said between `setup` and the first batch: rows that do not reach the threshold are not wanted, and so many,
        filters included, will probably be."""
        if self.most_rows >= max(SMALLEST_GAP, zone_order.BLOCKS_FOR_EACH * ZONE_ROWS * wanted):
            column = next(column for column in self._columns if column.id == key.column)
            self._best_first = zone_order.BestFirst(self._ranges, column, key, threshold)

    def pieces(self) -> Iterator[Piece]:
        """What it reads, to be read by several threads."""
        if self._best_first is None:
            return scan_pieces(self._ranges, self._context)
        best = self._best_first.pieces(self._context.scan_batch_rows)
        return (part for piece in best for part in scan_pieces([piece], self._context))

    def read(self, piece: Piece) -> RowBatch:
        batch = read_piece(piece, self._rows, self._context)
        self._context.verify()
        return batch
