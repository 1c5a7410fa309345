"""MergeJoin: joins two inputs that come in the order of the keys, piece by piece, and holds no side.

Of both sides the rows are at hand that were read last. Up to the smaller of the two last keys all rows that can match
each other are there, so they are joined, as in a hash join of that piece; the rest waits for more:

    left: 1 2 2 4 | more     right: 2 3 7 | more     the smaller last key is 4: 1 2 2 and 2 3 are joined, 4 and 7 wait

What is held is a batch of each side, or all rows of one key where these are more.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cmp_to_key, partial
from typing import TYPE_CHECKING, Any

from remuda.exec.batch import empty_batch, layout_of
from remuda.exec.exchange.exchange import abandon_inputs
from remuda.exec.join.join_result import JoinExpressions, JoinResult
from remuda.exec.join.join_table import BuildRows, JoinTable
from remuda.exec.memory import bytes_of
from remuda.exec.operator import Exec, IterationResult
from remuda.exec.sort.ordering import concatenate
from remuda.types.arrow_arrays import stored_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.plan.physical import MergeJoin
    from remuda.plan.traits import Collation


class MergeJoinExec(Exec):
    def __init__(self, node: MergeJoin, left: Exec, right: Exec, code: ExpressionCache) -> None:
        self._node = node
        self._code = code.of(node, JoinExpressions)
        order = _key_of(node.collation)
        left_layout, right_layout = layout_of(node.left.columns), layout_of(node.right.columns)
        self._left = _Side(left, node.left, [left_layout[key.column] for key in node.collation], order)
        self._right = _Side(right, node.right, [right_layout[key.column] for key in node.right_collation], order)
        self._left_ordinals = [left_layout[key.left.id] for key in node.keys]
        self._right_ordinals = [right_layout[key.right.id] for key in node.keys]
        self._ready: Iterator[RowBatch] = iter(())
        self._is_done = False

    def setup(self, context: ExecContext) -> None:
        self._context = context
        self._left.source.setup(context)
        self._right.source.setup(context)

    def advance(self) -> IterationResult:
        if self._context.weight.should_offload:
            return IterationResult.WAIT
        while True:
            batch = next(self._ready, None)
            if batch is not None:
                self._context.verify()
                self._context.weight.add(batch.row_count)
                self.current_batch = batch
                return IterationResult.FETCHED
            if self._is_done:
                self.current_batch = empty_batch(self._node.columns)
                return IterationResult.FETCHED_DONE
            if not (self._left.read() and self._right.read()):
                return IterationResult.WAIT
            self._context.verify()
            self._merge()

    def _merge(self) -> None:
        """Join the rows whose matches are all at hand, and say which side has to bring more."""
        sides = (self._left, self._right)
        if self._ends_early():
            self._is_done = True
            return
        lasts = [side.last_key() for side in sides if not side.is_exhausted]
        limit = min(lasts) if lasts else None
        left, right = (side.take_below(limit) for side in sides)
        self._is_done = limit is None
        for side in sides:
            side.needs_input = not side.is_exhausted and side.last_key() == limit
        if self._context.memory is not None:
            held = sum(bytes_of(batch) for side in sides for batch in side.batches)
            self._context.hold(self, "the join", held)
        if left is not None or right is not None:
            self._ready = self._joined(left, right)

    def _ends_early(self) -> bool:
        """Test whether the rest of one side matches nothing and is not delivered without a match."""
        kind = self._node.kind
        if self._right.is_empty and kind.drops_unmatched_left:
            abandon_inputs(self._node.left, self._context)
            return True
        if self._left.is_empty and not kind.keeps_right:
            abandon_inputs(self._node.right, self._context)
            return True
        return False

    def _joined(self, left: pa.RecordBatch | None, right: pa.RecordBatch | None) -> Iterator[RowBatch]:
        node = self._node
        held = BuildRows(empty_batch(node.right.columns).arrow() if right is None else right)
        result = JoinResult(node, self._code, held, self._context.parameters)
        if left is not None:
            columns = [held.batch.column(ordinal) for ordinal in self._right_ordinals]
            table = JoinTable(columns, [key.right.type for key in node.keys], [key.null_safe for key in node.keys])
            yield from result.of_table(left, table, [left.column(ordinal) for ordinal in self._left_ordinals])
        alone = result.unmatched_right_rows()
        if alone is not None:
            yield alone


class _Side:
    """One input: the rows at hand, in order, and whether more have to be read before the next piece is joined."""

    def __init__(self, source: Exec, node: Any, ordinals: Sequence[int], order: Callable[[Any], Any]) -> None:
        self.source = source
        self.batches: list[pa.RecordBatch] = []
        self.is_exhausted = False
        self.needs_input = True
        self._node = node
        self._ordinals = ordinals
        self._order = order

    @property
    def is_empty(self) -> bool:
        """Whether nothing is at hand and nothing will come."""
        return self.is_exhausted and not self.batches

    def read(self) -> bool:
        """Read a batch where one is needed; False where the input has to wait."""
        while self.needs_input and not self.is_exhausted:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return False
            self.is_exhausted = result is IterationResult.FETCHED_DONE
            batch = self.source.current_batch
            if batch.row_count:
                self.batches.append(batch.arrow())
                self.needs_input = False
        return True

    def last_key(self) -> Any:
        return self._key(self.batches[-1], self.batches[-1].num_rows - 1)

    def take_below(self, limit: Any) -> pa.RecordBatch | None:
        """Take out the rows whose key is below the limit, or all of them without one; None where there are none."""
        taken: list[pa.RecordBatch] = []
        while self.batches:
            batch = self.batches[0]
            if limit is not None and not self._key(batch, batch.num_rows - 1) < limit:
                count = bisect_left(range(batch.num_rows), limit, key=partial(self._key, batch))
                if count:
                    taken.append(batch.slice(0, count))
                    self.batches[0] = batch.slice(count)
                break
            taken.append(self.batches.pop(0))
        return concatenate(taken) if taken else None

    def _key(self, batch: pa.RecordBatch, row: int) -> Any:
        columns = self._node.columns
        return self._order(
            [stored_list(batch.column(ordinal).slice(row, 1), columns[ordinal].type)[0] for ordinal in self._ordinals]
        )


def _key_of(collation: Collation) -> Callable[[Any], Any]:
    """Return the function from a row's values to its sort key: NULL where the order says, NaN above all numbers."""

    def compare(one: list[Any], other: list[Any]) -> int:
        for first, second, key in zip(one, other, collation, strict=True):
            if first is None or second is None:
                if first is not second:
                    return -1 if (first is None) == key.nulls_first else 1
                continue
            is_nan, other_is_nan = first != first, second != second
            if is_nan or other_is_nan:
                result = int(is_nan) - int(other_is_nan)
            else:
                result = int(first > second) - int(first < second)
            if result:
                return -result if key.descending else result
        return 0

    return cmp_to_key(compare)
