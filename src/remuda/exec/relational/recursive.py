"""Recursive: rows found from the rows found last, round after round, until a round finds nothing new.

    first input:  1            round 1:  2, 3  (from 1)      round 2:  3, 4  (from 2, 3)     round 3:  ...
    delivered:    1                      2, 3                          4  where `distinct`, else 3, 4

The step is a tree of operators, which have state: it is built anew for every round. What it receives from members comes
once, so it is kept and played again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.exec.batch import ArrowBatch, RowBatch, TupleBatch, empty_batch, pieces
from remuda.exec.memory import bytes_held, bytes_of_tuples
from remuda.exec.offload import ROWS_OF_ROUND
from remuda.exec.operator import Exec, IterationResult
from remuda.exec.relational.union import Picker
from remuda.plan.physical import Receive
from remuda.plan.walk import walk
from remuda.types.normalized_key import hashable

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec.context import ExecContext, ReceivingEnd
    from remuda.exec.memory import MemoryLimit
    from remuda.plan.physical import Recursive, WorkingTable


class RecursiveExec(Exec):
    def __init__(self, node: Recursive, first: Exec, build_step: Callable[[], Exec]) -> None:
        self._node = node
        self._round = first
        self._build_step = build_step
        self._picker = Picker(node.columns, node.sources[0], node.inputs[0].columns)
        self._found: list[RowBatch] = []
        self._last_bytes = self._round_bytes = 0
        self._seen: set[tuple[Any, ...]] | None = set() if node.distinct else None
        self._memory: MemoryLimit | None = None
        """What the operators of this round hold: they go with it."""

    def setup(self, context: ExecContext) -> None:
        self._context = context
        received = {node.edge for node in walk(self._node.inputs[1]) if isinstance(node, Receive)}
        self._replays = {edge: tuple(map(ReplayedChannel, context.incoming[edge])) for edge in received}
        self._round.setup(context)

    def advance(self) -> IterationResult:
        self._context.verify()  # a round may be short and their number without an end
        if self._context.weight.should_offload:
            return IterationResult.WAIT
        result = self._round.advance()
        if result is IterationResult.WAIT:
            return result
        batch = self._new_rows(self._picker.pick(self._round.current_batch))
        if batch.row_count:
            self._found.append(batch)
            self._hold(batch)
        self.current_batch = batch
        if result is IterationResult.FETCHED_DONE:
            if not self._found:
                return result
            self._start_round()
        return IterationResult.FETCHED

    def _hold(self, batch: RowBatch) -> None:
        """Reserve memory for the rows of this round and of the one before, and with UNION for all that were seen."""
        if self._context.memory is not None:
            self._round_bytes += bytes_held(batch)
            seen = 0 if self._seen is None else bytes_of_tuples(len(self._seen), len(batch.columns))
            kept = sum(channel.bytes for channels in self._replays.values() for channel in channels)
            self._context.hold(self, "the recursive query", self._last_bytes + self._round_bytes + seen + kept)

    def _start_round(self) -> None:
        self._last_bytes, self._round_bytes = self._round_bytes, 0
        node, found = self._node, self._found
        self._context.weight.add(ROWS_OF_ROUND + sum(batch.row_count for batch in found))
        self._found = []
        for channels in self._replays.values():
            for channel in channels:
                channel.rewind()
        self._picker = Picker(node.columns, node.sources[1], node.inputs[1].columns)
        self._round = self._build_step()
        if self._context.memory is not None:
            if self._memory is not None:
                self._memory.release()
            self._memory = self._context.memory.part()
        self._round.setup(
            replace(
                self._context,
                memory=self._memory,
                incoming={**self._context.incoming, **self._replays},
                working_tables={**self._context.working_tables, node.table: found},
            )
        )

    def _new_rows(self, batch: RowBatch) -> RowBatch:
        """Return the rows that were not seen before, each once."""
        if self._seen is None or not batch.row_count:
            return batch
        rows: list[tuple[Any, ...]] = []
        for piece in pieces(batch, self._context):
            for row in piece.tuples():
                known = tuple([hashable(value) for value in row])
                if known not in self._seen:
                    self._seen.add(known)
                    rows.append(row)
        return TupleBatch(batch.columns, rows)


class WorkingTableExec(Exec):
    """The rows that the round before found."""

    def __init__(self, node: WorkingTable) -> None:
        self._node = node

    def setup(self, context: ExecContext) -> None:
        self._batches = list(context.working_tables[self._node.table])

    def advance(self) -> IterationResult:
        columns = self._node.columns
        if not self._batches:
            self.current_batch = empty_batch(columns)
            return IterationResult.FETCHED_DONE
        batch = self._batches.pop(0)
        if isinstance(batch, TupleBatch):
            self.current_batch = TupleBatch(columns, batch.tuples())
        else:
            self.current_batch = ArrowBatch(columns, batch.arrow())
        return IterationResult.FETCHED


class ReplayedChannel:
    """The receiving end of a channel that is read again from its beginning in every round."""

    def __init__(self, channel: ReceivingEnd) -> None:
        self._channel = channel
        self._kept: list[RowBatch] = []
        self._taken = 0
        self.bytes = 0

    def rewind(self) -> None:
        self._taken = 0

    def poll(self) -> RowBatch | None:
        if self._taken == len(self._kept):
            batch = self._channel.poll()
            if batch is None:
                return None
            self._kept.append(batch)
            self.bytes += bytes_held(batch)
        self._taken += 1
        return self._kept[self._taken - 1]

    def abandon(self) -> None:
        """Keep the channel: the next round may read what this one leaves."""

    @property
    def is_finished(self) -> bool:
        return self._taken == len(self._kept) and self._channel.is_finished
