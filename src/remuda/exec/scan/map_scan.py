"""Full scan: the partitions that pruning leaves, batch by batch, at the snapshot."""

from __future__ import annotations

from functools import cache
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from remuda.exec.batch import RowBatch, empty_batch
from remuda.exec.memory import bytes_of
from remuda.exec.operator import Exec, ForkableExec, IterationResult
from remuda.exec.scan.concrete_bounds import intersect, pruned_partitions
from remuda.exec.scan.dynamic_lookup import looked_up_pieces
from remuda.exec.scan.partition_shares import own_partitions
from remuda.exec.scan.scan_filter import whole_filter
from remuda.exec.scan.zone_order import ZoneOrderedPieces
from remuda.exec.scan.zone_ranges import SMALLEST_GAP
from remuda.exec.sort.ordering import concatenate
from remuda.storage.segment.segment_source import SegmentSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.scan.dynamic_lookup import Piece
    from remuda.exec.scan.scan_filter import ScanFilter
    from remuda.exec.scan.zone_order import Piece as SourcePiece
    from remuda.expr import Column
    from remuda.plan.physical import DynamicPruning, MapScan, ScanNode

JOINED_ROWS = 32_768
"""Rows of ranges that are read as one batch, as those of a few partitions are."""
JOINED_BYTES = 4 << 20
"""What they take, at most, by the rows of the first range."""
KEPT_BYTES = 24 << 20
"""Above what a kernel needs for a batch; the C library's own highest limit is 32 MiB."""


@cache
def keep_dropped_memory() -> None:
    """Make the C library keep the memory of arrays that kernels drop with every batch, once in a process.

    It asks the system for every large array and gives it back when it is dropped, so that its pages are cleared and
    mapped anew for each batch, which can take longer than the kernel itself. It learns from what a program drops: once
    an array of some size has been dropped, arrays up to that size come from memory that is kept. This one is dropped at
    once and none of its pages is ever touched.

    Measured: five groups of four million rows, 99 ms of processor time before it has learnt and 30 ms after.
    """
    np.empty(KEPT_BYTES, np.uint8)


def scan_partitions(node: ScanNode, context: ExecContext) -> np.ndarray | None:
    """Return the partitions that this fragment reads for a scan: its own, as far as pruning leaves them."""
    pruning = node.pruning
    left = None if pruning is None else pruned_partitions(node.map, pruning, context.parameters.values)
    partitions = intersect(own_partitions(node.map, context), left)
    context.activity.partitions += node.map.partitions if partitions is None else len(partitions)
    return partitions


def full_scan_batches(
    node: ScanNode, rows: ScanFilter, partitions: np.ndarray | None, context: ExecContext
) -> Iterator[RowBatch]:
    """Deliver the rows that pass, in batches; for the index scan that finds a full scan to be cheaper."""
    for piece in scan_pieces(joined_ranges(scan_ranges(node, rows, partitions, context), rows.names), context):
        yield read_piece(piece, rows, context)


def scan_ranges(
    node: ScanNode, rows: ScanFilter, partitions: np.ndarray | None, context: ExecContext
) -> list[SourcePiece]:
    """Return what a full scan reads, in pieces as long as they can be."""
    pieces: list[SourcePiece] = []
    for source in context.snapshot(node.map.id).sources_of(partitions):
        ranges = rows.zones.of(source, partitions, context.parameters)
        if isinstance(source, SegmentSource):
            source.segment.expect(rows.names, ranges)
        pieces += [(source, start, stop) for start, stop in ranges]
    return pieces


class _Ranges:
    """Several ranges of rows of a segment, read one after the other like one."""

    def __init__(self, source: SegmentSource, ranges: Sequence[tuple[int, int]]) -> None:
        self._source = source
        self._ranges = ranges
        self.rows = sum(stop - start for start, stop in ranges)

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        batches: list[pa.RecordBatch] = []
        for first, end in self._ranges:
            rows = end - first
            if start < rows and stop > 0:
                batches.append(self._source.read(columns, first + max(start, 0), first + min(stop, rows)))
            start, stop = start - rows, stop - rows
        return concatenate(batches)


def joined_ranges(pieces: Sequence[Piece], columns: Sequence[str]) -> list[Piece]:
    """Put short ranges of a segment together: a batch of its own for each partition costs more than its rows.

    Their rows are copied, so that there are only so many of them as make a few MiB.
    """
    found: list[Piece] = []
    short: list[tuple[SegmentSource, int, int]] = []
    held = most = 0
    for source, start, stop in pieces:
        is_short = isinstance(source, SegmentSource) and stop - start < JOINED_ROWS
        goes_on = bool(short) and is_short and source is short[0][0]
        if goes_on and len(short) == 1:
            most = _joined_rows(short[0], columns)
        if short and not (goes_on and held + stop - start <= most):
            found.append(_joined(short))
            short, held = [], 0
        if is_short:
            assert isinstance(source, SegmentSource)
            short.append((source, start, stop))
            held += stop - start
        else:
            found.append((source, start, stop))
    return [*found, _joined(short)] if short else found


def _joined_rows(first: tuple[SegmentSource, int, int], columns: Sequence[str]) -> int:
    """Return how many rows as wide as those of a range are read together."""
    source, start, stop = first
    batch = source.read(columns, start, stop)
    width = bytes_of(batch) / max(1, batch.num_rows)
    return min(JOINED_ROWS, int(JOINED_BYTES / max(1.0, width)))


def _joined(short: Sequence[tuple[SegmentSource, int, int]]) -> Piece:
    if len(short) == 1:
        return short[0]
    ranges = _Ranges(short[0][0], [(start, stop) for _, start, stop in short])
    return ranges, 0, ranges.rows


def scan_pieces(pieces: Iterable[Piece], context: ExecContext) -> Iterator[Piece]:
    """Cut pieces into those of one batch each, of as many rows as the context says at that moment."""
    for source, start, stop in pieces:
        first = start
        while first < stop:
            end = min(first + context.scan_batch_rows, stop)
            yield source, first, end
            first = end


def read_piece(piece: Piece, rows: ScanFilter, context: ExecContext) -> RowBatch:
    """Read the rows of a piece that pass the filter."""
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


class MapScanExec(IteratorExec, ForkableExec):
    def __init__(self, node: MapScan, code: ExpressionCache) -> None:
        super().__init__(node.columns)
        self.columns = node.columns
        self._shared: _SharedPieces | None = None
        self._node = node
        self._rows = code.of(node, whole_filter)

    def setup(self, context: ExecContext) -> None:
        keep_dropped_memory()
        self._partitions = scan_partitions(self._node, context)
        ranges = scan_ranges(self._node, self._rows, self._partitions, context)
        self._ranges: Sequence[Piece] = ranges
        self._is_narrowed = False
        self._zone_order = self._ordered_by_zones(ranges, context)
        self.start(context, self._batches())
        if context.weight.movable:
            context.weight.add(self.scan_rows)

    def _ordered_by_zones(self, ranges: list[SourcePiece], context: ExecContext) -> ZoneOrderedPieces | None:
        """Read zones in the order of a TopN above, where there are enough rows for each row that it keeps."""
        order = self._node.zone_order
        if order is None:
            return None
        bound, rows = context.top_n_bounds[order.number], self.scan_rows
        expected = min(rows, order.expected_rows or rows)
        if rows < SMALLEST_GAP or expected < order.rows_for_each * bound.kept:
            context.activity.decide("zone order: not used for {} rows", rows)
            return None
        column = next(column for column in self._columns if column.id == order.key.column)
        return ZoneOrderedPieces(ranges, column, order.key, bound, context.activity)

    def _batches(self) -> Iterator[RowBatch]:
        for piece in self._pieces():
            yield read_piece(piece, self._rows, self._context)

    @property
    def scan_rows(self) -> int:
        """How many rows there are to be read, deleted ones included."""
        return sum(stop - start for _, start, stop in self._ranges)

    def prepare(self) -> bool:
        self._narrow_by_keys()
        return True

    def fork(self, rows: int | None = None) -> Exec:
        if self._shared is None:
            self._shared = _SharedPieces(self._pieces())
        return _PieceScanExec(self, self._shared if rows is None else self._shared.first(rows))

    def _pieces(self) -> Iterator[Piece]:
        """Return the pieces of the scan, in the order in which it reads them."""
        self._narrow_by_keys()
        ordered = self._zone_order
        pieces = (
            joined_ranges(self._ranges, self._rows.names)
            if ordered is None
            else ordered.pieces(self._context.scan_batch_rows)
        )
        return scan_pieces(pieces, self._context)

    def _narrow_by_keys(self) -> None:
        """Read less than the map, once, by the keys of a join above: its other side has been read by now."""
        if self._is_narrowed:
            return
        self._is_narrowed = True
        node = self._node
        if node.dynamic_lookup is not None:
            found = looked_up_pieces(node, node.dynamic_lookup, self._rows, self._partitions, self._context)
            if found is not None:
                self._ranges = found
                return
        if node.dynamic_pruning is not None:
            self._prune_by_keys(node.dynamic_pruning)

    def _prune_by_keys(self, rule: DynamicPruning) -> None:
        """Leave out the partitions in which no key of the join lies."""
        context = self._context
        count = self._node.map.partitions
        found = context.runtime_filters[rule.number].partitions(rule, count)
        if found is None:
            return
        left = intersect(self._partitions, found)
        assert left is not None
        before = count if self._partitions is None else len(self._partitions)
        if len(left) == before:  # as where written keys have told which members take part
            context.activity.decide("dynamic pruning: {} of {} partitions", len(left), before)
            return
        ranges = scan_ranges(self._node, self._rows, left, context)
        saved = self.scan_rows - sum(stop - start for _, start, stop in ranges)
        if saved < rule.range_rows * len(ranges):
            context.activity.decide("dynamic pruning: not used for {} of {} partitions", len(left), before)
            return
        context.activity.decide("dynamic pruning: {} of {} partitions", len(left), before)
        context.activity.partitions -= before - len(left)
        self._ranges = ranges

    def read(self, piece: Piece) -> RowBatch:
        batch = read_piece(piece, self._rows, self._context)
        self._context.verify()
        return batch


class _SharedPieces:
    """What is left of a scan: every piece is given to one fork."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._lock = Lock()

    def take(self) -> Piece | None:
        """Return the next piece; None where none is left."""
        with self._lock:
            return next(self._pieces, None)

    def first(self, rows: int) -> _SharedPieces:
        """Take the beginning of the next piece, at most so many rows of it, as pieces of their own."""
        with self._lock:
            first = next(self._pieces, None)
            if first is None:
                return _SharedPieces(iter(()))
            source, start, stop = first
            middle = min(start + rows, stop)
            if middle < stop:
                self._pieces = chain([(source, middle, stop)], self._pieces)
            return _SharedPieces(iter([(source, start, middle)]))


class _PieceScanExec(Exec):
    """A fork of a scan, which is set up: reads pieces that no other fork has taken."""

    def __init__(self, scan: MapScanExec, pieces: _SharedPieces) -> None:
        self._scan = scan
        self._pieces = pieces

    def setup(self, context: ExecContext) -> None:
        """Do nothing: the scan that it reads for is set up."""

    def advance(self) -> IterationResult:
        piece = self._pieces.take()
        if piece is None:
            self.current_batch = empty_batch(self._scan.columns)
            return IterationResult.FETCHED_DONE
        self.current_batch = self._scan.read(piece)
        return IterationResult.FETCHED
