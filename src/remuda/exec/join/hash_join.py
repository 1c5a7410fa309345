"""The hash join: finds the rows of the build side by their keys, in memory or a spilled file at a time."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np

from remuda.exec.batch import RowBatch, Tuple, empty_batch, layout_of
from remuda.exec.join.build_side_join import JoinExec
from remuda.exec.join.join_result import TESTED, JoinResult
from remuda.exec.join.join_table import BuildRows, JoinTable, KeyTable, distinct_rows
from remuda.exec.join.mark_table import MarkKeys, MarkTable
from remuda.exec.join.nested_loop_join import NestedLoopJoinExec
from remuda.exec.join.row_join import RowTable
from remuda.exec.join.runtime_filter import FilterKeys, SpooledProbeExec
from remuda.exec.join.spilled_join import SpilledJoin, spread_by
from remuda.exec.offload import LIGHT_ROWS
from remuda.exec.operator import Exec, IterationResult
from remuda.exec.selection import SelectedBatch, gather
from remuda.plan.joins import JoinKind, compared_keys
from remuda.plan.physical import JoinSide
from remuda.types.arrow_arrays import true_positions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.join.join_table import Pairs
    from remuda.plan.joins import JoinKey
    from remuda.plan.physical import HashJoin

REPEATED_ROWS = 8
"""Rows of one key, on average, above which equal ones are looked for before a condition is asked of them."""


class HashJoinExec(JoinExec):
    """Finds the right rows of a left one in a table by their keys; beyond the limit of memory, a file at a time."""

    _node: HashJoin

    def __init__(self, node: HashJoin, left: Exec, right: Exec, code: ExpressionCache) -> None:
        if node.runtime_keys is not None and node.runtime_keys.side is JoinSide.LEFT:
            left = SpooledProbeExec(node, left)
        super().__init__(node, left, right, code)
        self._keys = node.keys
        self._compared = _compared_keys(node)
        assert self._keys or self._compared, "a hash join has an equality"
        self._spill_level: int | None = 0 if spread_by(node) else None
        self._spilled: SpilledJoin | None = None
        left_layout, right_layout = layout_of(node.left.columns), layout_of(node.right.columns)
        self._left_keys = [left_layout[key.left.id] for key in self._keys]
        self._right_keys = [right_layout[key.right.id] for key in self._keys]
        self._left_compared = [left_layout[key.left.id] for key in self._compared]
        self._right_compared = [right_layout[key.right.id] for key in self._compared]
        self._null_safe = [key.null_safe for key in self._keys]
        plain = node.condition is None and node.compared is None
        self._is_lookup = plain and node.kind in TESTED
        """Whether it is enough to know that there is a match."""
        self._joins_selected = self._is_lookup and node.kind is not JoinKind.MARK
        self._joins_selected |= bool(self._keys) and node.kind not in TESTED and not node.kind.keeps_left
        """Whether rows without a match are dropped, so that selected rows need not be materialized for them."""
        self._make_table = KeyTable if self._is_lookup else JoinTable
        self._filter = None if node.runtime_keys is None else FilterKeys(node.runtime_keys, self._make_table)

    def setup(self, context: ExecContext) -> None:
        if self._filter is not None:
            context.runtime_filters[self._filter.number] = self._filter
        super().setup(context)

    def _read_build_side(self) -> bool:
        """Read the build side.

        A runtime filter is made of the left side before the right one is read, or of the right one after it.
        """
        if self._filter is None:
            return super()._read_build_side()
        if isinstance(self.source, SpooledProbeExec):
            return self.source.read_ahead(self._filter) and super()._read_build_side()
        if not super()._read_build_side():
            return False
        if self._spilled is None:
            self._filter.fill(self._build, self._node.right.columns, self._context)
        return True

    def _keep(self, batch: RowBatch) -> None:
        """Hold a batch of the build side, or spill all of it from the first batch that has no room."""
        context = self._context
        if self._spilled is None and context.memory is not None and context.spill is not None:
            has_room = self._bytes + self._bytes_of(batch) <= context.memory.room(self._holder)
            if not has_room and self._spill_level is not None:
                self._spilled = SpilledJoin(self._node, context, context.spill, self._spill_level)
                kept, self._build, self._bytes = self._build, [], 0
                for each in kept:
                    self._spilled.add_right(each)
                context.hold(self._holder, "the join", 0)
        if self._spilled is None:
            super()._keep(batch)
        else:
            self._spilled.add_right(batch)

    def _choose_way(self) -> None:
        if self._spilled is None:
            super()._choose_way()
        else:
            self._spilled.finish_right()
            self._context.weight.add(LIGHT_ROWS + 1)

    def _advance_built(self) -> IterationResult:
        """Join with the built table; where it was spilled, spill the left side too, then join file by file."""
        if self._spilled is None:
            return super()._advance_built()
        while not self._left_done:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            if self.source.current_batch.row_count:
                self._spilled.add_left(self.source.current_batch)
            if result is IterationResult.FETCHED_DONE:
                self._left_done = True
                self._ready = self._spilled.joined(self._of_spilled)
        batch = next(self._ready, None)
        self._context.verify()
        if batch is None:
            self._context.hold(self._holder, "the join", 0)
            self.current_batch = empty_batch(self._node.columns)
            return IterationResult.FETCHED_DONE
        self._context.weight.add(batch.row_count)
        self.current_batch = batch
        return IterationResult.FETCHED

    def _of_spilled(self, left: Exec, right: Exec, level: int | None) -> Exec:
        """Return a join of some of the rows that were spilled; a level of None says that its rows cannot be spread."""
        join = copy(self)
        join.source, join._right = left, right
        join._filter = join._spilled = join._result = None
        join._build, join._bytes, join._ready = [], 0, iter(())
        join._is_built = join._left_done = False
        join._spill_level = level
        return join

    def _prepare_built(self) -> None:
        if self._spilled is None:
            super()._prepare_built()

    def fork(self, rows: int | None = None) -> Self:
        forked = super().fork(rows)
        if self._spilled is not None:
            forked._spilled = self._spilled.fork()
            forked._holder = forked
        return forked

    def build_table(self, build: BuildRows) -> BuildRows:
        columns = [build.batch.column(ordinal) for ordinal in self._right_keys]
        if self._compared:
            compared = [build.batch.column(ordinal) for ordinal in self._right_compared]
            types = [key.right.type for key in (*self._keys, *self._compared)]
            right = MarkKeys(columns, compared, build.rows)
            self._marks = MarkTable(right, types, self._null_safe, makes_pairs=self._node.condition is not None)
            return build
        self._table = self._table_of_filter() or self._table_of(columns)
        if self._node.kind in TESTED and isinstance(self._table, JoinTable) and self._table.rows_of_key > REPEATED_ROWS:
            # Rows that are the same in all that is asked of them are one: a few warehouses of many order lines.
            ordinals = sorted({*self._right_keys, *self._code.right_ordinals})
            types = [self._node.right.columns[ordinal].type for ordinal in ordinals]
            if not any(type_.is_floating for type_ in types):  # -0.0 and 0.0 are the same key and different texts
                fewer = distinct_rows(build, ordinals, types)
                if fewer is not build:
                    build = fewer
                    self._table = self._table_of([build.batch.column(ordinal) for ordinal in self._right_keys])
        return build

    def _table_of_filter(self) -> KeyTable | None:
        """Return the table of the runtime filter, where that is made of the keys of all rows of the build side."""
        keys = self._node.runtime_keys
        if self._filter is None or keys is None or keys.side is JoinSide.LEFT or keys.keys != self._keys:
            return None
        return self._filter.table

    def _table_of(self, columns: Sequence[pa.Array]) -> KeyTable:
        return self._make_table(columns, [key.right.type for key in self._keys], self._null_safe)

    def row_lookup(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        if not self._keys:
            # The mark of few rows is compared with each: a row that is not found may still make it unknown.
            return lambda _: rows
        return RowTable(rows, self._right_keys, self._null_safe).lookup(self._left_keys)

    def _joined(self, left: RowBatch) -> Iterable[RowBatch]:
        if self._joins_selected and isinstance(left, SelectedBatch):
            return self._joined_selected(self._joiner(), left)
        return super()._joined(left)

    def _joined_selected(self, result: JoinResult, left: SelectedBatch) -> Iterable[RowBatch]:
        """Look up the keys of selected rows before the other columns of those that have a match are materialized."""
        columns = gather(left.whole.select(self._left_keys), left.mask, left.row_count).columns
        selected = true_positions(left.mask)
        if self._is_lookup:
            matched = self._table.contains(columns)
            mask = np.zeros(len(left.mask), np.bool_)
            mask[selected[matched if self._node.kind is JoinKind.SEMI else ~matched]] = True
            return (SelectedBatch(self._node.columns, left.whole, mask),)
        assert isinstance(self._table, JoinTable), "made for pairs"
        found = self._verified(self._table.pairs(columns))
        return result.of(left.whole, (pairs._replace(left=selected[pairs.left_positions()]) for pairs in found))

    def joined(self, result: JoinResult, left: pa.RecordBatch) -> Iterable[RowBatch]:
        columns = [left.column(ordinal) for ordinal in self._left_keys]
        if self._compared:
            return (self._marked(result, left, columns),)
        if self._is_lookup:
            return (self._looked_up(result, left, columns),)
        assert isinstance(self._table, JoinTable), "made for pairs"
        return result.of_table(left, self._table, columns, self._verified)

    def _looked_up(self, result: JoinResult, left: pa.RecordBatch, columns: list[pa.Array]) -> RowBatch:
        matched = self._table.contains(columns)
        if self._node.kind is not JoinKind.MARK:
            return result.selected(left, matched)
        return result.marked(left, matched, None)

    def _marked(self, result: JoinResult, left: pa.RecordBatch, columns: list[pa.Array]) -> RowBatch:
        compared = [left.column(ordinal) for ordinal in self._left_compared]

        def meeting(pairs: Pairs) -> Pairs:
            self._context.verify()
            return result.meeting(left, pairs)

        condition = None if self._node.condition is None else meeting
        return result.marked(left, *self._marks.marks(MarkKeys(columns, compared, left.num_rows), condition))


def build_join(node: HashJoin, left: Exec, right: Exec, code: ExpressionCache) -> Exec:
    """Build the operator of a hash join; one that has no equality to look up by compares all pairs."""
    if node.keys or _compared_keys(node):
        return HashJoinExec(node, left, right, code)
    return NestedLoopJoinExec(node, left, right, code)


def _compared_keys(node: HashJoin) -> tuple[JoinKey, ...]:
    return compared_keys(node.compared, {column.id for column in node.right.columns})
