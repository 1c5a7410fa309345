"""What joins have in common that hold their right side, the build side.

read the build side  →  choose: row by row, or Arrow  →  probe with the left side, batch by batch  →  unmatched rows
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Self

from remuda.exec.batch import RowBatch, Tuple, TupleBatch, empty_batch
from remuda.exec.exchange.exchange import abandon_inputs
from remuda.exec.join.join_result import JoinExpressions, JoinResult
from remuda.exec.join.join_table import BuildRows
from remuda.exec.join.row_join import RowJoin
from remuda.exec.memory import bytes_held
from remuda.exec.operator import Exec, IterationResult, PassingExec
from remuda.exec.sort.ordering import concatenate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.join.join_table import Pairs
    from remuda.plan.physical import HashJoin, NestedLoopJoin

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
        """Yield the verified pairs of one batch in parts, with a test for cancellation before each."""
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


def _compile(node: HashJoin | NestedLoopJoin) -> tuple[JoinExpressions, RowJoin]:
    return JoinExpressions(node), RowJoin(node)
