"""Lookup join: finds the matches of the rows at hand in a map, by its key or by an index, instead of reading all of it.

Matches of few rows are read and joined as tuples; those of many, or many of few, as Arrow columns. An index tells how
many there are before one is read. Once looking up has cost as much as reading the map would, the map is read after all,
and held like the build side of a hash join.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.exec.batch import ArrowBatch, RowBatch, Tuple, TupleBatch, empty_batch
from remuda.exec.exchange.exchange import abandon_inputs
from remuda.exec.join.held_map import HeldMap, LookupExpressions
from remuda.exec.join.join_result import TESTED, JoinResult
from remuda.exec.join.join_table import BuildRows, Pairs, RowsByKey
from remuda.exec.join.row_join import RowTable
from remuda.exec.memory import bytes_of
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.exec.scan.index_choice import FEW_ROWS as FEW_FETCHED
from remuda.exec.scan.index_matches import KeyIds, SourceMatches, find_matches
from remuda.exec.scan.key_lookup import keys_in_partitions
from remuda.exec.scan.map_scan import read_piece, scan_pieces
from remuda.exec.scan.partition_shares import own_partitions
from remuda.exec.sort.ordering import concatenate
from remuda.expr import as_array
from remuda.plan.joins import JoinKind
from remuda.storage import lookup_by_key
from remuda.types.arrow_arrays import stored_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from remuda.catalog import IndexDefinition
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.scan.dynamic_lookup import Piece
    from remuda.plan.physical import LookupJoin
    from remuda.storage import Source


ENTRIES_FOR_EACH = 16
"""Entries of a memtable that are hashed in the time in which one key is found without their table (measured: 30,000
entries 2.4 ms). The table is made anew after each write."""


class LookupJoinExec(UnaryExec):
    def __init__(self, node: LookupJoin, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source)
        self._node = node
        self._row_cutover = -1 if node.row_cutover is None else node.row_cutover
        self._code = code.of(node, LookupExpressions)
        self._width = len(node.columns)
        self._ready: Iterator[RowBatch] = iter(())
        self._source_done = False
        self._looked_up = 0
        """How many rows have been looked up."""
        self._fetched = 0
        """How many index entries there were for them."""
        self._held: HeldMap | None = None

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context
        self._partitions = own_partitions(self._node.map, context)
        self._sources = context.snapshot(self._node.map.id).sources_of(self._partitions)

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
        if self._should_hold(batch.row_count, 0):
            if self._held is None:
                self._context.activity.decide("map held: after {} rows", self._looked_up)
            return self._joined_held(batch.arrow())
        self._looked_up += batch.row_count
        few = isinstance(batch, TupleBatch) and batch.row_count <= self._row_cutover
        if self._node.index is None:
            return self._joined_rows_by_key(batch.tuples()) if few else self._joined_by_key(batch.arrow())
        return self._joined_by_index(self._node.index, batch, few=few)

    def _should_hold(self, rows: int, entries: int) -> bool:
        """Tell whether so many more rows, or entries of the index, cost more than reading the map."""
        node = self._node
        if self._held is not None or node.hold_cutover is None:
            return self._held is not None
        share = (self._looked_up + rows) / node.hold_cutover if node.hold_cutover else math.inf
        if node.hold_entries is not None and self._fetched + entries:
            share += (self._fetched + entries) / node.hold_entries if node.hold_entries else math.inf
        return share > 1.0

    # By an index: counted first.

    def _joined_by_index(self, index: IndexDefinition, batch: RowBatch, *, few: bool) -> Iterable[RowBatch]:
        if few:
            keys = KeyIds(self._keys_of_rows(batch.tuples()))
        else:
            keys = KeyIds(zip(*map(stored_list, self._key_arrays(batch.arrow()), self._code.key_types), strict=True))
        context = self._context
        found = [
            find_matches(source, index.id, keys.keys, self._partitions, context.verify) for source in self._sources
        ]
        entries = sum(len(matches.positions) for matches in found)
        if self._should_hold(0, entries):
            context.activity.decide("map held: {} entries", entries)
            return self._joined_held(batch.arrow())
        self._fetched += entries
        context.activity.index_entries += entries
        if few and entries <= self._row_cutover:
            rights = (self._read(matches.source, matches.positions) for matches in found if len(matches.positions))
            return self._joined_rows(batch.tuples(), rights)
        if few:
            context.activity.decide("by columns: {} entries", entries)
        return self._joined_columns(batch.arrow(), keys, found)

    def _joined_columns(self, left: pa.RecordBatch, keys: KeyIds, found: list[SourceMatches]) -> Iterator[RowBatch]:
        node, code, context = self._node, self._code, self._context
        if node.kind in TESTED and node.filter is None and node.condition is None:
            counts = sum((matches.counts for matches in found), np.zeros(len(keys.keys), np.int64))
            matched = np.append(counts > 0, False)[keys.of_rows]
            yield ArrowBatch(node.columns, left.filter(pa.array(matched if node.kind is JoinKind.SEMI else ~matched)))
            return
        parts = []
        for matches in found:
            context.verify()
            if len(matches.positions):
                parts.append(matches.read(code.rows, context.parameters))
        rights = concatenate([batch for batch, _ in parts]) if parts else empty_batch(code.rows.columns).arrow()
        context.weight.add(rights.num_rows)
        context.hold(self, "the join", bytes_of(rights))
        of_keys = np.concatenate([np.empty(0, np.int64), *(of_keys for _, of_keys in parts)])
        table = RowsByKey(of_keys, len(keys.keys))
        result = JoinResult(code.shape, code.join, BuildRows(rights), context.parameters)
        yield from self._delivered(result.of_table(left, table, keys.of_rows, self._verified))
        context.hold(self, "the join", 0)

    # By the key: at most one match for each row.

    def _joined_rows_by_key(self, lefts: Sequence[Tuple]) -> Iterable[RowBatch]:
        return self._joined_rows(lefts, self._fetch_by_key(self._keys_of_rows(lefts)))

    def _fetch_by_key(self, of_rows: Iterable[Tuple]) -> list[RowBatch]:
        """Find keys one by one."""
        keys = KeyIds(of_rows).keys
        stored: list[Any] = [key[0] for key in keys] if len(self._node.keys) == 1 else list(keys)
        if self._partitions is not None:
            stored = keys_in_partitions(self._node.map, stored, self._partitions)
        rights = []
        for source in self._sources:
            self._context.verify()
            positions = source.key_positions(stored)
            self._context.activity.index_entries += len(positions)
            if len(positions):
                rights.append(self._read(source, positions))
        return rights

    def _joined_by_key(self, left: pa.RecordBatch) -> Iterator[RowBatch]:
        code, context = self._code, self._context
        names, arrays = code.rows.names, self._key_arrays(left)
        snapshot = context.snapshot(self._node.map.id)
        if snapshot.keyed_memtable is None and left.num_rows * ENTRIES_FOR_EACH < snapshot.length:
            keys = zip(*map(stored_list, arrays, code.key_types), strict=True)
            held = HeldMap(code, [batch.arrow() for batch in self._fetch_by_key(keys)], context)
            yield from self._delivered(held.result.of_table(left, held.table, arrays, self._verified))
            return
        found = lookup_by_key(snapshot, arrays, names, self._partitions)
        matched = np.flatnonzero(found.column(len(names)).to_numpy(zero_copy_only=False))
        context.activity.index_entries += len(matched)
        rights = found.select(names)
        if len(matched) < left.num_rows:
            rights = rights.take(pa.array(matched))
        rights, lefts = code.rows.keep_passing(rights, matched, context.parameters)
        pairs = Pairs(0, left.num_rows, None if len(lefts) == left.num_rows else lefts, np.arange(len(lefts)))
        result = JoinResult(code.shape, code.join, BuildRows(rights), context.parameters)
        if self._node.kind in TESTED:
            yield from self._delivered((result.tested(left, lambda _: (pairs,)),))
        else:
            yield from self._delivered(result.of(left, (pairs,)))

    # Rows.

    def _keys_of_rows(self, lefts: Sequence[Tuple]) -> list[Tuple]:
        parameters = self._context.parameters.values
        return [tuple([key(row, parameters) for key in self._code.key_rows]) for row in lefts]

    def _joined_rows(self, lefts: Sequence[Tuple], found: Iterable[RowBatch]) -> Iterable[RowBatch]:
        code, parameters = self._code, self._context.parameters.values
        rights = [row for batch in found for row in batch.tuples()]
        safe = [False] * len(code.key_ordinals)
        table = RowTable(rights, code.key_ordinals, safe).lookup(range(len(safe)))
        following = iter(self._keys_of_rows(lefts))
        rows = code.row_join.joined(lefts, lambda _: table(next(following)), parameters)
        if self._node.kind.delivers_right:
            rows = [row[: self._width] for row in rows]
        return (TupleBatch(self._node.columns, rows),)

    # The whole map.

    def _joined_held(self, left: pa.RecordBatch) -> Iterator[RowBatch]:
        """Join with all rows of the map, which are read with the first batch."""
        if self._held is None:
            batches: list[pa.RecordBatch] = []
            for piece in self._map_pieces():
                batches.append(read_piece(piece, self._code.rows, self._context).arrow())
                self._context.weight.add(batches[-1].num_rows)
                if self._context.memory is not None:
                    self._context.hold(self, "the join", sum(batch.nbytes for batch in batches))
                yield empty_batch(self._node.columns)
            self._held = HeldMap(self._code, batches, self._context)
            if self._node.kind.drops_unmatched_left and not any(batch.num_rows for batch in batches):
                self._source_done = True
                abandon_inputs(self._node.input, self._context)
        held = self._held
        yield from self._delivered(held.result.of_table(left, held.table, self._key_arrays(left), self._verified))

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

    def _delivered(self, batches: Iterable[RowBatch]) -> Iterator[RowBatch]:
        """Leave out the columns of the key that nothing above reads."""
        for batch in batches:
            yield ArrowBatch(self._node.columns, batch.arrow().select(list(range(self._width))))

    def _verified(self, found: Iterable[Pairs]) -> Iterator[Pairs]:
        for pairs in found:
            self._context.verify()
            yield pairs

    def _read(self, source: Source, positions: np.ndarray) -> RowBatch:
        rows, parameters = self._code.rows, self._context.parameters
        if len(positions) <= FEW_FETCHED:
            return rows.apply_to_tuples(source.rows_at(rows.positions, positions), parameters)
        return rows.apply_to_arrow(source.take(rows.names, positions), parameters)
