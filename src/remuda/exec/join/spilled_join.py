"""Hash join beyond `memory_limit`: both sides are spilled by the hash of their keys, and joined a file at a time.

    right rows, left rows  →  16 files of each side  →  a join of files 0, a join of files 1, ...

Rows with equal keys are in files of the same number, and a row without a match in its file has none.

`x IN (SELECT y ...)` is NULL, not FALSE, for an x without a match where some y is NULL, and for an x that is NULL where
there is any y. So one right row of each sort, NULL or not, is in every file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, empty_batch, layout_of
from remuda.exec.operator import Exec, IterationResult
from remuda.exec.spill.spilled_partitions import DEEPEST, SpilledPartitions
from remuda.plan.joins import compared_keys
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.spill.spill_folder import SpillFolder
    from remuda.expr import Column
    from remuda.plan.joins import JoinKey
    from remuda.plan.physical import HashJoin

    JoinOf = Callable[[Exec, Exec, int | None], Exec]


class SpilledJoin:
    """The files of one join. Forks share those of the right side, and have their own of the left side."""

    def __init__(self, node: HashJoin, context: ExecContext, folder: SpillFolder, level: int) -> None:
        self._node = node
        self._context = context
        self._folder = folder
        self._level = level
        keys = spread_by(node)
        self._right = self._partitions(node.right.columns, [key.right for key in keys])
        self._left = self._partitions(node.left.columns, [key.left for key in keys])
        self._is_fork = False
        self._compared = None if node.keys else layout_of(node.right.columns)[keys[0].right.id]
        self._samples: dict[bool, pa.RecordBatch] = {}
        """Of an IN, a right row whose compared column is NULL, and one where it is not."""

    def fork(self) -> SpilledJoin:
        """Return a join of the same right rows with other left ones."""
        forked = SpilledJoin(self._node, self._context, self._folder, self._level)
        forked._right = self._right
        forked._is_fork = True
        return forked

    def add_right(self, batch: RowBatch) -> None:
        rows = batch.arrow()
        self._right.add(rows)
        if self._compared is not None and len(self._samples) < len((True, False)):
            is_null = pc.is_null(rows.column(self._compared))
            for sort in {True, False} - self._samples.keys():
                ordinal = pc.index(is_null, sort).as_py()
                if ordinal >= 0:
                    self._samples[sort] = rows.slice(ordinal, 1)

    def finish_right(self) -> None:
        """Called once, before any fork is made."""
        for sample in self._samples.values():
            self._right.add_everywhere(sample)
        size = self._right.finish()
        self._context.activity.decide("spilled: {:,} build rows, {:,} bytes", sum(self._right.rows), size)

    def add_left(self, batch: RowBatch) -> None:
        self._left.add(batch.arrow())

    def joined(self, join_of: JoinOf) -> Iterator[RowBatch]:
        """Join file by file. `join_of` makes a join of two inputs, whose rows a level of the hash spreads, if any does.

        The last batch of each join may be empty.
        """
        size = self._left.finish()
        self._context.activity.decide("spilled: {:,} probe rows, {:,} bytes", sum(self._left.rows), size)
        for partition, (left, right) in enumerate(zip(self._left.rows, self._right.rows, strict=True)):
            if self._has_result(left, right):
                can_spread = right < sum(self._right.rows) and self._level < DEEPEST
                yield from self._joined(partition, join_of, self._level + 1 if can_spread else None)
            self._left.close(partition)
            if not self._is_fork:
                self._right.close(partition)

    def _joined(self, partition: int, join_of: JoinOf, level: int | None) -> Iterator[RowBatch]:
        node = self._node
        join = join_of(
            SpilledRows(node.left.columns, self._left.batches(partition)),
            SpilledRows(node.right.columns, self._right.batches(partition)),
            level,
        )
        result = IterationResult.FETCHED
        while result is not IterationResult.FETCHED_DONE:
            self._context.verify()
            result = join.advance()
            yield join.current_batch

    def _has_result(self, left: int, right: int) -> bool:
        kind = self._node.kind
        if not left:
            return right > 0 and kind.keeps_right
        return right > 0 or not kind.drops_unmatched_left

    def _partitions(self, columns: tuple[Column, ...], keys: Sequence[Column]) -> SpilledPartitions:
        memory = self._context.memory
        assert memory is not None, "without a limit nothing is spilled"
        layout = layout_of(columns)
        ordinals = [layout[key.id] for key in keys]
        return SpilledPartitions(self._folder, columns, ordinals, level=self._level, limit=memory.limit)


class SpilledRows(Exec):
    """Delivers the batches of a file: an input of the join of that file."""

    def __init__(self, columns: tuple[Column, ...], batches: Iterator[pa.RecordBatch]) -> None:
        self._columns = columns
        self._batches = batches

    def setup(self, context: ExecContext) -> None:
        """Do nothing: the join needs nothing of the context."""

    def advance(self) -> IterationResult:
        batch = next(self._batches, None)
        if batch is None:
            self.current_batch = empty_batch(self._columns)
            return IterationResult.FETCHED_DONE
        self.current_batch = ArrowBatch(self._columns, batch)
        return IterationResult.FETCHED


def spread_by(node: HashJoin) -> tuple[JoinKey, ...]:
    """Return the keys by which both sides can be spread over files; none where they cannot.

    Rows of equal keys must have equal hashes, and the join must promise no order, which files would destroy.
    """
    keys = node.keys
    if not keys and node.condition is None:
        keys = compared_keys(node.compared, {column.id for column in node.right.columns})
        keys = keys if len(keys) == 1 else ()
    have_equal_hashes = all(
        key.left.type.kind is key.right.type.kind and key.left.type.arrow == key.right.type.arrow for key in keys
    )
    return keys if have_equal_hashes and not node.traits.collation else ()
