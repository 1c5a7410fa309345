"""Joins that hold their right side: the hash join, and the nested-loop join for conditions without an equality."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from remuda.exec.batch import RowBatch, Tuple, TupleBatch, empty_batch, layout_of, positional
from remuda.exec.exchange.exchange import abandon_inputs
from remuda.exec.join.candidate_pairs import CandidateFinder
from remuda.exec.join.join_result import TESTED, JoinExpressions, JoinResult
from remuda.exec.join.join_table import BuildRows, JoinTable, KeyTable, all_pairs, distinct_rows
from remuda.exec.join.mark_table import MarkKeys, MarkTable
from remuda.exec.join.row_join import FEW_ROWS, ROW_KINDS, RowJoin, RowTable
from remuda.exec.join.spooled_probe import LeftFirstExec
from remuda.exec.memory import bytes_held
from remuda.exec.offload import ROWS_OF_PAIRS
from remuda.exec.operator import Exec, IterationResult, PassingExec
from remuda.exec.sort.ordering import concatenate
from remuda.plan.joins import JoinKind, compared_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.join.filtered_sides import Asked
    from remuda.exec.join.join_table import Pairs
    from remuda.plan.joins import JoinKey
    from remuda.plan.physical import HashJoin, NestedLoopJoin

NOTHING_WITHOUT_RIGHT = {JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT}
"""Joins that deliver nothing, and so need not read their left side, where the right side is empty."""

MANY_ROWS = 8
"""Rows of one key, on average, above which repeated ones are looked for before a condition is asked of them."""
MOST_ASKED_FOR = 0.25
"""The right rows, for each row of the left side that would be asked, above which asking saves too little."""
BYTES_OF_ENTRY = 32
"""What a table takes for each row beside the row itself: slots, number, position."""


class JoinExec(PassingExec):
    """Reads the right side to its end, then passes the left side through, batch by batch.

    Right first, always: a sender of the left side waits until the right side is complete, never the other way round.
    """

    weight_of_row = 1

    def __init__(self, node: HashJoin | NestedLoopJoin, left: Exec, right: Exec, code: ExpressionCache) -> None:
        super().__init__(left, node.columns)
        self._node = node
        self._right = right
        self._code, self._row_join = code.of(node, _compile)
        self._waiting: list[RowBatch] = []
        self._bytes = 0
        self._find_few: Callable[[Tuple], Sequence[Tuple]] | None = None
        self._result: JoinResult | None = None
        self._ready: Iterator[RowBatch] = iter(())
        self._is_read = False
        self._left_done = False

    def setup(self, context: ExecContext) -> None:
        self._context = context
        self._right.setup(context)
        self.source.setup(context)

    def advance(self) -> IterationResult:
        if not self._is_read and not self._read_right():
            return IterationResult.WAIT
        if self._context.weight.should_offload:
            return IterationResult.WAIT
        while True:
            batch = next(self._ready, None)
            if batch is not None:
                self._context.verify()
                self._context.weight.add(batch.row_count)
                self.current_batch = batch
                return IterationResult.FETCHED
            if self._left_done:
                alone = self._joiner().right_rows_alone() if self._node.kind.keeps_right else None
                self.current_batch = alone or empty_batch(self._node.columns)
                return IterationResult.FETCHED_DONE
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._left_done = result is IterationResult.FETCHED_DONE
            batch = self.source.current_batch
            if batch.row_count:
                self._ready = iter(self._joined(batch))

    @property
    def can_fork(self) -> bool:
        """Not where, at the end, the right rows are asked for that no thread has met."""
        return not self._node.kind.keeps_right

    def prepare(self) -> bool:
        if not self._is_read and not self._read_right():
            return False
        self._joiner()
        return True

    def fork(self, source: Exec) -> Exec:
        forked = super().fork(source)
        assert isinstance(forked, JoinExec)
        forked._ready = iter(())
        return forked

    def _read_right(self) -> bool:
        """False where the right side has to wait, or the left one, where that is read first."""
        if isinstance(self.source, LeftFirstExec) and not self.source.read():
            return False
        while True:
            result = self._right.advance()
            if result is IterationResult.WAIT:
                return False
            batch = self._right.current_batch
            if batch.row_count:
                self._waiting.append(batch)
                if self._context.memory is not None:
                    self._bytes += bytes_held(batch) + BYTES_OF_ENTRY * batch.row_count
                    self._context.hold(self, "the join", self._bytes)
            if result is IterationResult.FETCHED_DONE:
                break
        self._is_read = True
        self._right_is_read()
        rows = sum(batch.row_count for batch in self._waiting)
        self._context.weight.add(rows * self.weight_of_row)
        self._left_done = rows == 0 and self._node.kind in NOTHING_WITHOUT_RIGHT
        if self._left_done:
            abandon_inputs(self._node.left, self._context)
        are_tuples = all(isinstance(batch, TupleBatch) for batch in self._waiting)
        if rows <= FEW_ROWS and are_tuples and self._node.kind in ROW_KINDS:
            self._find_few = self.finder([row for batch in self._waiting for row in batch.tuples()])
        return True

    def _joined(self, left: RowBatch) -> Iterable[RowBatch]:
        find = self._find_few
        if find is not None and isinstance(left, TupleBatch) and left.row_count <= FEW_ROWS:
            rows = self._row_join.joined(left.tuples(), find, self._context.parameters.values)
            return (TupleBatch(self._node.columns, rows),)
        return self.joined(self._joiner(), left.arrow())

    def _joiner(self) -> JoinResult:
        """Made with the first batch that needs it: where there are few rows, perhaps none does."""
        if self._result is None:
            batches, self._waiting = [batch.arrow() for batch in self._waiting], []
            rows = concatenate(batches) if batches else empty_batch(self._node.right.columns).arrow()
            self._context.verify()
            held = BuildRows(rows)
            self._context.verify()
            held = self.hold(held)
            self._context.verify()
            self._result = JoinResult(self._node, self._code, held, self._context.parameters)
        return self._result

    def _verified(self, found: Iterable[Pairs]) -> Iterator[Pairs]:
        """The pairs of one batch may be many: the query is looked after before each part of them."""
        for pairs in found:
            self._context.verify()
            yield pairs

    def _right_is_read(self) -> None:
        """Called once, before the left side is advanced."""

    @abstractmethod
    def hold(self, held: BuildRows) -> BuildRows:
        """The right side is complete; gives what of it is needed."""

    @abstractmethod
    def finder(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        """From a left row to those of few right rows that it may match."""

    @abstractmethod
    def joined(self, result: JoinResult, left: pa.RecordBatch) -> Iterable[RowBatch]:
        """What comes out for a batch of left rows."""


class NestedLoopJoinExec(JoinExec):
    weight_of_row = ROWS_OF_PAIRS

    def __init__(self, node: HashJoin | NestedLoopJoin, left: Exec, right: Exec, code: ExpressionCache) -> None:
        super().__init__(node, left, right, code)
        self._candidates = self._code.candidates

    def hold(self, held: BuildRows) -> BuildRows:
        self._rows = held.rows
        self._finder = CandidateFinder(self._candidates, held, self._context.parameters, self._context.verify)
        return held

    def finder(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        return lambda _: rows

    def joined(self, result: JoinResult, left: pa.RecordBatch) -> Iterable[RowBatch]:
        if self._node.kind in TESTED:
            return (result.tested(left, self._finder.find(left).until_settled),)
        if self._candidates.branches:
            return result.of(left, self._finder.find(left))
        return result.of(left, self._verified(all_pairs(left.num_rows, self._rows)))


class HashJoinExec(JoinExec):
    def __init__(
        self, node: HashJoin, left: Exec, right: Exec, code: ExpressionCache, asked: Asked | None = None
    ) -> None:
        super().__init__(node, left, right, code)
        self._asked = asked
        self._keys = node.keys
        self._compared = _compared_keys(node)
        assert self._keys or self._compared, "a hash join has an equality"
        left_layout, right_layout = layout_of(node.left.columns), layout_of(node.right.columns)
        self._left_places = [left_layout[key.left.id] for key in self._keys]
        self._right_places = [right_layout[key.right.id] for key in self._keys]
        self._left_compared = [left_layout[key.left.id] for key in self._compared]
        self._right_compared = [right_layout[key.right.id] for key in self._compared]
        self._null_safe = [key.null_safe for key in self._keys]
        plain = node.condition is None and node.compared is None
        self._is_lookup = plain and node.kind in TESTED
        """Whether it is enough to know that there is a match."""

    def hold(self, held: BuildRows) -> BuildRows:
        columns = [held.batch.column(place) for place in self._right_places]
        if self._compared:
            compared = [held.batch.column(place) for place in self._right_compared]
            types = [key.right.type for key in (*self._keys, *self._compared)]
            right = MarkKeys(columns, compared, held.rows)
            self._marks = MarkTable(right, types, self._null_safe, makes_pairs=self._node.condition is not None)
            return held
        self._table = self._table_of(columns)
        if self._node.kind in TESTED and isinstance(self._table, JoinTable) and self._table.rows_of_key > MANY_ROWS:
            # Rows that are the same in all that is asked of them are one: a few warehouses of many order lines.
            places = sorted({*self._right_places, *self._code.right_places})
            types = [self._node.right.columns[place].type for place in places]
            if not any(type_.is_floating for type_ in types):  # -0.0 and 0.0 are the same key and different texts
                fewer = distinct_rows(held, places, types)
                if fewer is not held:
                    held = fewer
                    self._table = self._table_of([held.batch.column(place) for place in self._right_places])
        return held

    def _table_of(self, columns: Sequence[pa.Array]) -> KeyTable:
        make_table = KeyTable if self._is_lookup else JoinTable
        return make_table(columns, [key.right.type for key in self._keys], self._null_safe)

    def _right_is_read(self) -> None:
        """Where much is done to the rows of the left side, they are asked first for the keys that are there."""
        asked = self._asked
        rows = sum(batch.row_count for batch in self._waiting)
        if asked is None or rows > MOST_ASKED_FOR * asked.rows:
            return
        batches = [batch.arrow() for batch in self._waiting] or [empty_batch(self._node.right.columns).arrow()]
        places = [self._right_places[number] for number in asked.keys]
        columns = concatenate([positional([batch.column(place) for place in places]) for batch in batches]).columns
        keys = [self._keys[number] for number in asked.keys]
        null_safe = [key.null_safe for key in keys]
        asked.wanted.table = KeyTable(columns, [key.right.type for key in keys], null_safe)

    def finder(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        if not self._keys:
            # The mark of few rows is compared with each: a row that is not found may still make it unknown.
            return lambda _: rows
        return RowTable(rows, self._right_places, self._null_safe).finder(self._left_places)

    def joined(self, result: JoinResult, left: pa.RecordBatch) -> Iterable[RowBatch]:
        columns = [left.column(place) for place in self._left_places]
        if self._compared:
            return (self._marked(result, left, columns),)
        if self._is_lookup:
            return (self._looked_up(result, left, columns),)
        assert isinstance(self._table, JoinTable), "made for pairs"
        return result.of_table(left, self._table, columns, self._verified)

    def _looked_up(self, result: JoinResult, left: pa.RecordBatch, columns: list[pa.Array]) -> RowBatch:
        found = self._table.contains(columns)
        if self._node.kind is not JoinKind.MARK:
            return result.chosen(left, found)
        return result.marked(left, found, None)

    def _marked(self, result: JoinResult, left: pa.RecordBatch, columns: list[pa.Array]) -> RowBatch:
        compared = [left.column(place) for place in self._left_compared]

        def meeting(pairs: Pairs) -> Pairs:
            self._context.verify()
            return result.meeting(left, pairs)

        condition = None if self._node.condition is None else meeting
        return result.marked(left, *self._marks.marks(MarkKeys(columns, compared, left.num_rows), condition))


def _compared_keys(node: HashJoin) -> tuple[JoinKey, ...]:
    return compared_keys(node.compared, {column.id for column in node.right.columns})


def build_join(node: HashJoin, left: Exec, right: Exec, code: ExpressionCache, asked: Asked | None = None) -> Exec:
    """A join that has no equality to look up by compares all pairs."""
    if node.keys or _compared_keys(node):
        return HashJoinExec(node, left, right, code, asked)
    return NestedLoopJoinExec(node, left, right, code)


def _compile(node: HashJoin | NestedLoopJoin) -> tuple[JoinExpressions, RowJoin]:
    return JoinExpressions(node), RowJoin(node)
