"""Lookup join: finds the matches of the rows at hand in a map, by its key or by an index, instead of reading all of it.

For each batch of the input the rows of its different keys are fetched and joined with it like any build side. Once more
than `hold_cutover` rows have come, the map is read after all, and held like the build side of a hash join.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.exec.batch import ArrowBatch, RowBatch, Tuple, TupleBatch, empty_batch, layout_of
from remuda.exec.exchange.exchange import abandon_inputs
from remuda.exec.join.join_result import JoinExpressions, JoinResult
from remuda.exec.join.join_table import BuildRows, JoinTable
from remuda.exec.join.row_join import RowJoin, RowTable
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.exec.scan.index_scan import FEW_ROWS as FEW_FETCHED
from remuda.exec.scan.key_lookup import keys_in_partitions
from remuda.exec.scan.map_scan import read_piece, scan_pieces
from remuda.exec.scan.scan_filter import ScanFilter
from remuda.exec.sort.ordering import concatenate
from remuda.expr import Column, as_array, compile_batch, compile_row
from remuda.plan.physical import NestedLoopJoin, Values
from remuda.storage import Lookup
from remuda.types.arrow_arrays import stored_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.scan.zone_order import Piece
    from remuda.plan.physical import LookupJoin
    from remuda.storage import Source

KEYS_AT_ONCE = 1_000


class _LookupExpressions:
    """What is compiled once. Fetched rows have the key's columns too, behind those that are delivered."""

    def __init__(self, node: LookupJoin) -> None:
        names = node.map.key if node.index is None else node.index.columns[: len(node.keys)]
        delivered = {column.name: ordinal for ordinal, column in enumerate(node.map_columns)}
        extra = [name for name in names if name not in delivered]
        added = tuple(Column(-2 - number, name, node.map.column(name).type) for number, name in enumerate(extra))
        fetched = (*node.map_columns, *added)
        ordinals = {column.name: ordinal for ordinal, column in enumerate(fetched)}
        self.key_ordinals = [ordinals[name] for name in names]
        self.key_types = [node.map.column(name).type for name in names]
        self.rows = ScanFilter(node.map, fetched, node.filter)
        layout = layout_of(node.input.columns)
        self.key_arrays = [compile_batch(key, layout) for key in node.keys]
        self.key_rows = [compile_row(key, layout) for key in node.keys]
        # The shape of the join, whichever way its pairs are found.
        right = Values(fetched, (), node.traits)
        self.shape = NestedLoopJoin(node.kind, node.input, right, node.condition, None, None, node.traits)
        self.join = JoinExpressions(self.shape)
        self.row_join = RowJoin(self.shape)


class LookupJoinExec(UnaryExec):
    def __init__(self, node: LookupJoin, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source)
        self._node = node
        self._row_cutover = -1 if node.row_cutover is None else node.row_cutover
        self._code = code.of(node, _LookupExpressions)
        self._width = len(node.columns)
        self._ready: Iterator[RowBatch] = iter(())
        self._source_done = False
        self._looked_up = 0
        """How many rows have been looked up."""
        self._held: _HeldMap | None = None

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context
        self._sources = context.snapshot(self._node.map.id).sources
        self._partitions = None if self._node.map.replicated else context.partitions

    def advance(self) -> IterationResult:
        if self._context.weight.should_offload:
            return IterationResult.WAIT
        while True:
            batch = next(self._ready, None)
            self._context.verify()
            if batch is not None:
                self._context.weight.add(batch.row_count)
                self.current_batch = batch
                return IterationResult.FETCHED
            if self._source_done:
                self.current_batch = empty_batch(self._node.columns)
                return IterationResult.FETCHED_DONE
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._source_done = result is IterationResult.FETCHED_DONE
            if self.source.current_batch.row_count:
                self._ready = iter(self._joined(self.source.current_batch))

    def _joined(self, batch: RowBatch) -> Iterable[RowBatch]:
        cutover = self._node.hold_cutover
        if self._held is not None or (cutover is not None and self._looked_up + batch.row_count > cutover):
            return self._joined_held(batch.arrow())
        self._looked_up += batch.row_count
        if isinstance(batch, TupleBatch) and batch.row_count <= self._row_cutover:
            return self._joined_rows(batch.tuples())
        return self._joined_arrow(batch.arrow())

    def _joined_rows(self, lefts: Sequence[Tuple]) -> Iterable[RowBatch]:
        code, parameters = self._code, self._context.parameters.values
        keys = [tuple([key(row, parameters) for key in code.key_rows]) for row in lefts]
        rights = [row for batch in self._fetch(keys) for row in batch.tuples()]
        safe = [False] * len(code.key_ordinals)
        table = RowTable(rights, code.key_ordinals, safe).lookup(range(len(safe)))
        following = iter(keys)
        rows = code.row_join.joined(lefts, lambda _: table(next(following)), parameters)
        if self._node.kind.delivers_right:
            rows = [row[: self._width] for row in rows]
        return (TupleBatch(self._node.columns, rows),)

    def _joined_arrow(self, left: pa.RecordBatch) -> Iterator[RowBatch]:
        arrays = self._key_arrays(left)
        keys = list(zip(*map(stored_list, arrays, self._code.key_types), strict=True))
        held = _HeldMap(self._code, [batch.arrow() for batch in self._fetch(keys)], self._context)
        yield from self._paired(held, left, arrays)

    def _joined_held(self, left: pa.RecordBatch) -> Iterator[RowBatch]:
        """Join with all rows of the map, which are read with the first batch."""
        if self._held is None:
            self._context.activity.decide("map held: after {} rows", self._looked_up)
            batches: list[pa.RecordBatch] = []
            for piece in self._map_pieces():
                batches.append(read_piece(piece, self._code.rows, self._context).arrow())
                self._context.weight.add(batches[-1].num_rows)
                if self._context.memory is not None:
                    self._context.hold(self, "the join", sum(batch.nbytes for batch in batches))
                yield empty_batch(self._node.columns)
            self._held = _HeldMap(self._code, batches, self._context)
            if self._node.kind.drops_unmatched_left and not any(batch.num_rows for batch in batches):
                self._source_done = True
                abandon_inputs(self._node.input, self._context)
        yield from self._paired(self._held, left, self._key_arrays(left))

    def _map_pieces(self) -> Iterator[Piece]:
        """Cut what a full scan of the map reads on this member into batches."""
        zones, context = self._code.rows.zones, self._context
        ranges = [
            (source, start, stop)
            for source in self._sources
            for start, stop in zones.of(source, self._partitions, context.parameters)
        ]
        return scan_pieces(ranges, context)

    def _key_arrays(self, left: pa.RecordBatch) -> list[pa.Array]:
        parameters = self._context.parameters
        return [as_array(key(left, parameters), left.num_rows) for key in self._code.key_arrays]

    def _paired(self, held: _HeldMap, left: pa.RecordBatch, keys: list[pa.Array]) -> Iterator[RowBatch]:
        for batch in held.result.of_table(left, held.table, keys):
            yield ArrowBatch(self._node.columns, batch.arrow().select(list(range(self._width))))

    def _fetch(self, keys: Iterable[Tuple]) -> Iterator[RowBatch]:
        """The rows of these keys, each once, that pass the scan's own filter."""
        different = list(dict.fromkeys(_with_one_nan(key) for key in keys if None not in key))
        for first in range(0, len(different), KEYS_AT_ONCE):
            some_keys = different[first : first + KEYS_AT_ONCE]
            for source in self._sources:
                self._context.verify()
                positions = self._positions(source, some_keys)
                self._context.activity.index_entries += len(positions)
                if len(positions):
                    yield self._read(source, positions)

    def _positions(self, source: Source, keys: list[Tuple]) -> np.ndarray:
        node, partitions = self._node, self._partitions
        if node.index is not None:
            found = [source.positions(node.index.id, Lookup(key), partitions) for key in keys]
            return np.concatenate(found)
        stored: list[Any] = [key[0] for key in keys] if len(node.keys) == 1 else list(keys)
        if partitions is not None:
            stored = keys_in_partitions(node.map, stored, partitions)
        return source.key_positions(stored)

    def _read(self, source: Source, positions: np.ndarray) -> RowBatch:
        rows, parameters = self._code.rows, self._context.parameters
        if len(positions) <= FEW_FETCHED:
            return rows.apply_to_tuples(source.rows_at(rows.positions, positions), parameters)
        return rows.apply_to_arrow(source.take(rows.names, positions), parameters)


class _HeldMap:
    """Rows of the map by their keys, and what makes joined rows of them: for one batch, or for all that follow."""

    def __init__(self, code: _LookupExpressions, batches: list[pa.RecordBatch], context: ExecContext) -> None:
        build = BuildRows(concatenate(batches) if batches else empty_batch(code.rows.columns).arrow())
        rights = [build.batch.column(ordinal) for ordinal in code.key_ordinals]
        self.table = JoinTable(rights, code.key_types, [False] * len(rights))
        self.result = JoinResult(code.shape, code.join, build, context.parameters)


def _with_one_nan(key: Tuple) -> Tuple:
    """Python tells two NaNs apart unless they are the same object."""
    return tuple([nan if value != value else value for value in key]) if any(value != value for value in key) else key
