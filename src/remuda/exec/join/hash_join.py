"""Joins that hold their right side, the build side: the hash join, and the nested-loop join where nothing is equal.

read the build side  →  choose: row by row, or Arrow  →  probe with the left side, batch by batch  →  unmatched rows
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Self

from remuda.exec.batch import RowBatch, Tuple, TupleBatch, empty_batch, layout_of
from remuda.exec.exchange.exchange import abandon_inputs
from remuda.exec.join.candidate_pairs import CandidateFinder
from remuda.exec.join.join_result import TESTED, JoinExpressions, JoinResult
from remuda.exec.join.join_table import BuildRows, JoinTable, KeyTable, all_pairs, distinct_rows
from remuda.exec.join.mark_table import MarkKeys, MarkTable
from remuda.exec.join.row_join import RowJoin, RowTable
from remuda.exec.join.runtime_filter import FilterKeys, SpooledProbeExec
from remuda.exec.join.spilled_join import SpilledJoin, spread_by
from remuda.exec.memory import bytes_held
from remuda.exec.offload import LIGHT_ROWS, ROWS_OF_PAIRS
from remuda.exec.operator import Exec, IterationResult, PassingExec
from remuda.exec.sort.ordering import concatenate
from remuda.plan.joins import JoinKind, compared_keys
from remuda.plan.physical import JoinSide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.join.join_table import Pairs
    from remuda.plan.joins import JoinKey
    from remuda.plan.physical import HashJoin, NestedLoopJoin

REPEATED_ROWS = 8
"""Rows of one key, on average, above which equal ones are looked for before a condition is asked of them."""
BYTES_OF_ENTRY = 32
"""What a table takes for each row beside the row itself: slots, number, position."""


class JoinExec(PassingExec):
    """Reads the build side to its end, then passes the left side through, batch by batch.

    Right first, always: a sender of the left side waits until the right side is complete, never the other way round.
    """

    weight_of_row = 1

    def __init__(self, node: HashJoin | NestedLoopJoin, left: Exec, right: Exec, code: ExpressionCache) -> None:
        super().__init__(left, node.columns)
        self._node = node
        self._row_cutover = -1 if node.row_cutover is None else node.row_cutover
        self._right = right
        self._code, self._row_join = code.of(node, _compile)
        self._build: list[RowBatch] = []
        """The batches of the build side, until a result is made of them."""
        self._bytes = 0
        self._holder: JoinExec = self
        """Stands for the memory of this join and of those over its spilled rows, which come one after another."""
        self._find_rows: Callable[[Tuple], Sequence[Tuple]] | None = None
        self._result: JoinResult | None = None
        self._ready: Iterator[RowBatch] = iter(())
        self._is_built = False
        self._left_done = False

    def setup(self, context: ExecContext) -> None:
        self._context = context
        self._right.setup(context)
        self.source.setup(context)

    def advance(self) -> IterationResult:
        if not self._is_built and not self._read_build_side():
            return IterationResult.WAIT
        if self._context.weight.should_offload:
            return IterationResult.WAIT
        return self._advance_built()

    def _advance_built(self) -> IterationResult:
        while True:
            batch = next(self._ready, None)
            if batch is not None:
                self._context.verify()
                self._context.weight.add(batch.row_count)
                self.current_batch = batch
                return IterationResult.FETCHED
            if self._left_done:
                unmatched = self._joiner().unmatched_right_rows() if self._node.kind.keeps_right else None
                self.current_batch = unmatched or empty_batch(self._node.columns)
                return IterationResult.FETCHED_DONE
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._left_done = result is IterationResult.FETCHED_DONE
            batch = self.source.current_batch
            if batch.row_count:
                self._ready = iter(self._joined(batch))

    def _read_build_side(self) -> bool:
        """Read the right side; False where it has to wait."""
        while True:
            result = self._right.advance()
            if result is IterationResult.WAIT:
                return False
            batch = self._right.current_batch
            if batch.row_count:
                self._keep(batch)
            if result is IterationResult.FETCHED_DONE:
                break
        self._is_built = True
        self._choose_way()
        return True

    def _keep(self, batch: RowBatch) -> None:
        """Hold a batch of the build side."""
        self._build.append(batch)
        if self._context.memory is not None:
            self._bytes += self._bytes_of(batch)
            self._context.hold(self._holder, "the join", self._bytes)

    def _bytes_of(self, batch: RowBatch) -> int:
        return bytes_held(batch) + BYTES_OF_ENTRY * batch.row_count

    def _choose_way(self) -> None:
        """Decide by the rows of the build side how the left side is joined, and whether it is read at all."""
        rows = sum(batch.row_count for batch in self._build)
        self._context.activity.decide("build side: right, {} rows", rows)
        self._context.weight.add(rows * self.weight_of_row)
        self._left_done = rows == 0 and self._node.kind.drops_unmatched_left
        if self._left_done:
            abandon_inputs(self._node.left, self._context)
        # Few tuples are joined row by row: starting Arrow's kernels would cost more than the whole join.
        if rows <= self._row_cutover and all(isinstance(batch, TupleBatch) for batch in self._build):
            self._find_rows = self.row_lookup([row for batch in self._build for row in batch.tuples()])
            self._context.activity.decide("row by row: {} build rows", rows)

    def _joined(self, left: RowBatch) -> Iterable[RowBatch]:
        find = self._find_rows
        if find is not None and isinstance(left, TupleBatch) and left.row_count <= self._row_cutover:
            rows = self._row_join.joined(left.tuples(), find, self._context.parameters.values)
            return (TupleBatch(self._node.columns, rows),)
        return self.joined(self._joiner(), left.arrow())

    def _joiner(self) -> JoinResult:
        """Made with the first batch that needs it: where there are few rows, perhaps none does."""
        if self._result is None:
            batches, self._build = [batch.arrow() for batch in self._build], []
            rows = concatenate(batches) if batches else empty_batch(self._node.right.columns).arrow()
            self._context.verify()
            build = BuildRows(rows)
            self._context.verify()
            build = self.build_table(build)
            self._context.verify()
            self._result = JoinResult(self._node, self._code, build, self._context.parameters)
        return self._result

    def _verified(self, found: Iterable[Pairs]) -> Iterator[Pairs]:
        """The pairs of one batch may be many: the query is looked after before each part of them."""
        for pairs in found:
            self._context.verify()
            yield pairs

    def prepare(self) -> bool:
        if not self._is_built and not self._read_build_side():
            return False
        self._prepare_built()
        return super().prepare()

    def _prepare_built(self) -> None:
        """Make what all forks share."""
        self._joiner()

    def fork(self, rows: int | None = None) -> Self:
        forked = super().fork(rows)
        forked._ready = iter(())
        return forked

    @abstractmethod
    def build_table(self, build: BuildRows) -> BuildRows:
        """Make what rows are found by; return the rows of the build side that are needed."""

    @abstractmethod
    def row_lookup(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        """Return a function from a left row to those of few right rows that it may match."""

    @abstractmethod
    def joined(self, result: JoinResult, left: pa.RecordBatch) -> Iterable[RowBatch]:
        """Join a batch of left rows."""


class HashJoinExec(JoinExec):
    """Finds the right rows of a left one in a table by their keys; beyond the limit of memory, a file at a time."""

    _node: HashJoin

    def __init__(self, node: HashJoin, left: Exec, right: Exec, code: ExpressionCache) -> None:
        if node.runtime_keys is not None and node.runtime_keys.side is JoinSide.LEFT:
            left = SpooledProbeExec(node, left)
        super().__init__(node, left, right, code)
        self._filter = None if node.runtime_keys is None else FilterKeys(node.runtime_keys)
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

    def setup(self, context: ExecContext) -> None:
        if self._filter is not None:
            context.runtime_filters[self._filter.number] = self._filter
        super().setup(context)

    def _read_build_side(self) -> bool:
        """With a runtime filter: made of the left side before the right one is read, or of the right one after it."""
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
        """Where the build side was spilled, spill the left side as well, then join one file after the other."""
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
        self._table = self._table_of(columns)
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

    def _table_of(self, columns: Sequence[pa.Array]) -> KeyTable:
        make_table = KeyTable if self._is_lookup else JoinTable
        return make_table(columns, [key.right.type for key in self._keys], self._null_safe)

    def row_lookup(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        if not self._keys:
            # The mark of few rows is compared with each: a row that is not found may still make it unknown.
            return lambda _: rows
        return RowTable(rows, self._right_keys, self._null_safe).lookup(self._left_keys)

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


class NestedLoopJoinExec(JoinExec):
    """Compares a left row with every right one, or with those that a branch of the condition finds for it."""

    weight_of_row = ROWS_OF_PAIRS

    def build_table(self, build: BuildRows) -> BuildRows:
        self._rows = build.rows
        self._finder = CandidateFinder(self._code.candidates, build, self._context.parameters, self._context.verify)
        return build

    def row_lookup(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        return lambda _: rows

    def joined(self, result: JoinResult, left: pa.RecordBatch) -> Iterable[RowBatch]:
        if self._node.kind in TESTED:
            return (result.tested(left, self._finder.find(left).until_settled),)
        if self._code.candidates.branches:
            return result.of(left, self._finder.find(left))
        return result.of(left, self._verified(all_pairs(left.num_rows, self._rows)))


def build_join(node: HashJoin, left: Exec, right: Exec, code: ExpressionCache) -> Exec:
    """Build the operator of a hash join; one that has no equality to look up by compares all pairs."""
    if node.keys or _compared_keys(node):
        return HashJoinExec(node, left, right, code)
    return NestedLoopJoinExec(node, left, right, code)


def _compared_keys(node: HashJoin) -> tuple[JoinKey, ...]:
    return compared_keys(node.compared, {column.id for column in node.right.columns})


def _compile(node: HashJoin | NestedLoopJoin) -> tuple[JoinExpressions, RowJoin]:
    return JoinExpressions(node), RowJoin(node)
